package a2a_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"agentsite/agents/task/tasktest"
	"agentsite/transport/adapter/adaptertest"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// verify reports how many of a card's signatures are the site's over the card as it came.
func verify(t *testing.T, s *adaptertest.Site, text string) (good int) {
	t.Helper()
	var card map[string]jsontext.Value
	if err := json.Unmarshal([]byte(text), &card); err != nil {
		t.Fatal(err, text)
	}
	var all []struct {
		Protected string `json:"protected"`
		Signature string `json:"signature"`
	}
	if err := json.Unmarshal(card["signatures"], &all); err != nil {
		t.Fatal(err)
	}
	delete(card, "signatures")
	payload, err := json.Marshal(card)
	if err == nil {
		err = (*jsontext.Value)(&payload).Canonicalize()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range all {
		header, err := base64.RawURLEncoding.DecodeString(of.Protected)
		if err != nil || string(header) != `{"alg":"EdDSA","kid":"`+s.Key.ID().String()+`","typ":"JOSE"}` {
			t.Errorf("%s, %v", header, err)
		}
		signature, err := base64.RawURLEncoding.DecodeString(of.Signature)
		if err != nil {
			t.Error(err)
		}
		if ed25519.Verify(s.Key.Private().Public().(ed25519.PublicKey), []byte(of.Protected+"."+base64.RawURLEncoding.EncodeToString(payload)), signature) {
			good++
		}
	}
	return good
}

// TestCards: a card shows its reader what that reader may use, and a stranger that a site is there.
func TestCards(t *testing.T) {
	s := newSite(t)
	reader, _ := s.Token(t, "reader", "read greenhouse/temperature")
	const path, ofAgent = "/.well-known/agent-card.json", "/a2a/agents/helper/.well-known/agent-card.json"
	secrets := []string{s.Name, s.Version, "greenhouse", "temperature", "vent", tasktest.Helper.Name, "Cel", `"read"`}
	for name, c := range map[string]struct {
		token, path string
		status      int
		has, hasNot []string
	}{
		"a stranger":                    {"", path, http.StatusOK, []string{`"extendedAgentCard":true`, s.URL + "/a2a"}, secrets},
		"a reader":                      {reader, path, http.StatusOK, []string{`greenhouse/temperature`, `"id":"read"`, s.Name}, []string{"vent", `"id":"move"`, `"id":"stop"`, tasktest.Helper.Name}},
		"all":                           {adaptertest.SiteToken, path, http.StatusOK, []string{`"id":"move"`, `"id":"stop"`, s.URL + ofAgent}, nil},
		"of an agent, to a stranger":    {"", ofAgent, http.StatusUnauthorized, nil, secrets},
		"of an agent, to a reader":      {reader, ofAgent, http.StatusNotFound, nil, []string{"echo"}},
		"of an agent":                   {adaptertest.SiteToken, ofAgent, http.StatusOK, []string{`"id":"echo"`, s.URL + "/a2a/agents/helper"}, []string{"greenhouse"}},
		"of an agent that there is not": {adaptertest.SiteToken, "/a2a/agents/nobody/.well-known/agent-card.json", http.StatusNotFound, nil, nil},
		"of an agent whose name is no name of ours": {adaptertest.SiteToken, "/a2a/agents/%2e%2e%2f/.well-known/agent-card.json", http.StatusNotFound, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for version, signatures := range map[string]int{"": 2, "0.3": 2, "1.0": 1} {
				res, text := s.Ask(t, "GET", c.path, c.token, "", "A2A-Version", version)
				if res.StatusCode != c.status {
					t.Fatalf("%d %s", res.StatusCode, text)
				}
				for _, want := range c.has {
					if !strings.Contains(text, want) {
						t.Errorf("there is no %s in %s", want, text)
					}
				}
				for _, not := range c.hasNot {
					if strings.Contains(text, not) {
						t.Errorf("there is %s in %s", not, text)
					}
				}
				if res.StatusCode != http.StatusOK {
					continue
				}
				if strings.Count(text, `"protected"`) != signatures || verify(t, s, text) != 1 {
					t.Errorf("%q: %d signatures are good: %s", version, verify(t, s, text), text)
				}
				if legacy := strings.Contains(text, `"preferredTransport"`); legacy != (version != "1.0") {
					t.Errorf("%q: %s", version, text)
				}
				again, _ := s.Ask(t, "GET", c.path, c.token, "", "A2A-Version", version, "If-None-Match", res.Header.Get("ETag"))
				if again.StatusCode != http.StatusNotModified || res.Header.Get("Cache-Control") == "" {
					t.Error(again.StatusCode, res.Header)
				}
			}
		})
	}
}

// TestUnion: a reader of 1.0 that drops unknown members verifies the first signature of a card of
// both versions. The rest of that card equals the card of 1.0.
func TestUnion(t *testing.T) {
	s := newSite(t)
	first := func(version string) string {
		_, text := s.Ask(t, "GET", "/.well-known/agent-card.json", adaptertest.SiteToken, "", "A2A-Version", version)
		var card struct {
			Signatures []struct {
				Signature string `json:"signature"`
			} `json:"signatures"`
		}
		if err := json.Unmarshal([]byte(text), &card); err != nil {
			t.Fatal(err)
		}
		return card.Signatures[0].Signature
	}
	if a, b := first("1.0"), first(""); a != b {
		t.Error(a, b)
	}
}
