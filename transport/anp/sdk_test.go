package anp

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentsite/node/identity"
	"agentsite/transport/anp/did"
	"agentsite/transport/httpsig"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// TestSDK: a document and a request that were made by the protocol's own SDK (anp-interop
// auth-fixture of commit 3db6ee8) are verified, and no changed ones.
func TestSDK(t *testing.T) {
	text, err := os.ReadFile("testdata/sdk.json")
	if err != nil {
		t.Fatal(err)
	}
	var sdk struct {
		Document jsontext.Value    `json:"did_document"`
		Headers  map[string]string `json:"headers"`
		Method   string            `json:"method"`
		URL      string            `json:"request_url"`
		Body     string            `json:"body"`
	}
	if err := json.Unmarshal(text, &sdk); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(sdk.Method, sdk.URL, strings.NewReader(sdk.Body))
	r.RequestURI = r.URL.RequestURI()
	for name, value := range sdk.Headers {
		r.Header.Set(name, value)
	}
	sig, err := httpsig.Parse(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sig.CheckTime(sig.Created), sig.CheckBody([]byte(sdk.Body))); err != nil {
		t.Error(err)
	}
	name, _ := did.Split(sig.KeyID)
	if err := did.Check(name); err != nil {
		t.Error(err)
	}
	doc, err := did.Parse(name, sdk.Document)
	if err != nil {
		t.Fatal(err)
	}
	key, err := doc.Key(sig.KeyID)
	if err != nil || !sig.Verify(key[:]) {
		t.Error(key, err)
	}
	for old, with := range map[string]string{
		`"proofValue": "`: `"proofValue": "A`, "eddsa-jcs-2022": "eddsa-rdfc-2022", `"X25519KeyAgreementKey2019"`: `"X25519KeyAgreementKey2020"`,
		`"proof"`: `"proof2"`, `"assertionMethod": [`: `"assertionMethod2": [`, `"proofPurpose": "assertionMethod"`: `"proofPurpose": "authentication"`,
	} {
		changed := bytes.ReplaceAll(sdk.Document, []byte(old), []byte(with))
		if bytes.Equal(changed, sdk.Document) {
			t.Fatal(old, "is not in the document")
		}
		if _, err := did.Parse(name, changed); err == nil {
			t.Errorf("%s was changed to %s, and nobody minds", old, with)
		}
	}
}

// TestOurs: requests that this site signed, some changed afterwards, with the recorded results of
// the protocol's own SDK for Go (DidWbaVerifier of commit 3db6ee8). This site's results are the
// same, and its signatures and description have not changed since.
func TestOurs(t *testing.T) {
	text, err := os.ReadFile("testdata/ours.json")
	if err != nil {
		t.Fatal(err)
	}
	var ours struct {
		At       int64          `json:"at"`
		Document jsontext.Value `json:"did_document"`
		Requests []struct {
			Name    string            `json:"name"`
			Method  string            `json:"method"`
			URL     string            `json:"request_url"`
			Headers map[string]string `json:"headers"`
			Body    string            `json:"body"`
			Verdict string            `json:"verdict"`
		} `json:"requests"`
	}
	if err := json.Unmarshal(text, &ours); err != nil {
		t.Fatal(err)
	}
	const domain = "garden.example.org"
	doc, err := did.Parse(did.Of(domain), ours.Document)
	if err != nil {
		t.Fatal(err)
	}
	key, err := doc.Key(did.KeyID(domain))
	if err != nil {
		t.Fatal(err)
	}
	if now := did.Own(domain, key); now.Canonicalize() != nil || ours.Document.Canonicalize() != nil || string(now) != string(ours.Document) {
		t.Errorf("the document is %s now, and was %s", now, ours.Document)
	}
	at, nonces, verdicts := time.Unix(ours.At, 0), make(map[string]bool), make(map[string]int)
	inputs := regexp.MustCompile(`created=\d+;expires=\d+;nonce="[^"]*"`)
	for _, c := range ours.Requests {
		r := httptest.NewRequest(c.Method, c.URL, strings.NewReader(c.Body))
		r.RequestURI = r.URL.RequestURI()
		for name, value := range c.Headers {
			r.Header.Set(name, value)
		}
		sig, err := httpsig.Parse(r)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		verdict := "http_signatures"
		switch {
		case !sig.Verify(key[:]) || sig.CheckBody([]byte(c.Body)) != nil: // the SDK has one word for both
			verdict = "invalid_signature"
		case sig.CheckTime(at) != nil:
			verdict = "invalid_timestamp"
		case nonces[sig.Nonce]:
			verdict = "invalid_nonce"
		}
		nonces[sig.Nonce] = true
		if verdicts[verdict]++; verdict != c.Verdict {
			t.Errorf("%s: %s, and the SDK says %s", c.Name, verdict, c.Verdict)
		}
		again, err := http.NewRequest(c.Method, c.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := httpsig.Sign(again, []byte(c.Body), sig.KeyID, identity.New().Private(), at); err != nil {
			t.Fatal(err)
		}
		was, is := r.Header.Get("Signature-Input"), again.Header.Get("Signature-Input")
		if inputs.ReplaceAllString(was, "") != inputs.ReplaceAllString(is, "") || len(again.Header) != len(c.Headers) {
			t.Errorf("%s: it is signed with %s now, and was with %s", c.Name, is, was)
		}
	}
	if len(verdicts) != 4 || verdicts["http_signatures"] < 2 {
		t.Error(verdicts)
	}
}
