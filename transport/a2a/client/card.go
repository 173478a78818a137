package client

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/node/identity"
	"agentsite/transport/web/outbound"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxCard       = 128 << 10
	maxSkills     = 64
	maxSignatures = 8
)

// termsExtension is on the cards of sites of ours: a message with the messageId of another one is that
// message.
const termsExtension = "urn:agentsite:a2a:terms:1"

// card is an AgentCard as far as it is read here. The last members are those of 0.3.
type card struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Interfaces  []struct {
		URL     string `json:"url"`
		Binding string `json:"protocolBinding"`
		Version string `json:"protocolVersion"`
		Tenant  string `json:"tenant"`
	} `json:"supportedInterfaces"`
	Capabilities struct {
		Extensions []struct {
			URI      string `json:"uri"`
			Required bool   `json:"required"`
		} `json:"extensions"`
	} `json:"capabilities"`
	Skills []struct {
		ID          string `json:"id"`
		Description string `json:"description"`
	} `json:"skills"`

	URL       string `json:"url"`
	Version   string `json:"protocolVersion"`
	Transport string `json:"preferredTransport"`
}

// described is the content of an accepted card.
type described struct {
	url, tenant string
	legacy      bool // it speaks 0.3
	repeats     bool // it takes a message that is repeated as the same
	agent       task.Agent
}

// fetch fetches the card, and refuses it if the owner has not accepted it.
func (h *Host) fetch(ctx context.Context) (*described, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, h.URL, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	if err := h.authorize(r, "1.0"); err != nil {
		return nil, err
	}
	text, err := outbound.Do(h.HTTP, r, maxCard)
	if err != nil {
		return nil, err
	}
	if err := h.accepted(text); err != nil {
		return nil, err
	}
	var c card
	if err := json.Unmarshal(text, &c); err != nil || c.Name == "" {
		return nil, errors.New("its card is not one of A2A")
	}
	return h.describe(&c)
}

// accepted refuses a card that neither has the digest that the owner wrote nor is signed by the key
// that the owner wrote.
func (h *Host) accepted(text []byte) error {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(text, &members); err != nil {
		return errors.New("its card is not JSON")
	}
	var signatures []struct {
		Protected string `json:"protected"`
		Signature string `json:"signature"`
	}
	if raw, ok := members["signatures"]; ok && (json.Unmarshal(raw, &signatures) != nil || len(signatures) > maxSignatures) {
		return errors.New("the signatures of its card are not those of A2A")
	}
	delete(members, "signatures")
	body, err := json.Marshal(members)
	plain := jsontext.Value(body)
	if err == nil {
		err = plain.Canonicalize() // RFC 8785, as section 8.4 has it
	}
	if err != nil {
		return errors.New("its card is not JSON")
	}
	sum := sha256.Sum256(plain)
	digest := hex.EncodeToString(sum[:])
	if h.SignedBy == (identity.ID{}) {
		if digest != h.Pin {
			return fmt.Errorf("nobody has accepted its card; read it, and write card_digest: %s", digest)
		}
		return nil
	}
	b64 := base64.RawURLEncoding
	for _, s := range signatures {
		var header struct {
			Alg  string   `json:"alg"`
			Crit []string `json:"crit"`
		}
		protected, err := b64.DecodeString(s.Protected)
		if err != nil || json.Unmarshal(protected, &header) != nil || header.Alg != "EdDSA" || header.Crit != nil {
			continue
		}
		signature, err := b64.DecodeString(s.Signature)
		if err == nil && ed25519.Verify(h.SignedBy[:], []byte(s.Protected+"."+b64.EncodeToString(plain)), signature) {
			return nil
		}
	}
	return fmt.Errorf("its card is not signed by %s", h.SignedBy)
}

// describe reads the agent's skills and its address from a card.
func (h *Host) describe(c *card) (*described, error) {
	d := new(described)
	for _, e := range c.Capabilities.Extensions {
		d.repeats = d.repeats || e.URI == termsExtension
		if e.Required && e.URI != termsExtension {
			return nil, fmt.Errorf("it needs the extension %.80q, which this site does not have", e.URI)
		}
	}
	for _, version := range []string{"1.0", "0.3"} {
		for _, i := range c.Interfaces {
			if d.url == "" && i.Binding == "JSONRPC" && (i.Version == version || strings.HasPrefix(i.Version, version+".")) {
				d.url, d.tenant, d.legacy = i.URL, i.Tenant, version == "0.3"
			}
		}
	}
	if d.url == "" && strings.HasPrefix(c.Version, "0.3") && (c.Transport == "" || c.Transport == "JSONRPC") {
		d.url, d.legacy = c.URL, true
	}
	if d.url == "" {
		return nil, errors.New("it speaks neither A2A 1.0 nor 0.3 over JSON-RPC")
	}
	u, err := url.Parse(d.url)
	if err != nil || u.Host != h.host || u.Scheme != h.scheme || u.User != nil {
		return nil, fmt.Errorf("its card leads to %.80q, and only %s was named by the owner", d.url, h.host)
	}
	d.agent = task.Agent{Name: AgentName, Description: c.Description}
	for _, s := range c.Skills[:min(len(c.Skills), maxSkills)] {
		if device.CheckName(s.ID) == nil {
			d.agent.Skills = append(d.agent.Skills, task.Skill{ID: s.ID, Description: s.Description})
		}
	}
	return d, nil
}

// authorize adds the token and the version of the protocol to a request.
func (h *Host) authorize(r *http.Request, version string) error {
	r.Header.Set("A2A-Version", version)
	if h.Token == nil {
		return nil
	}
	token, err := h.Token()
	if err != nil {
		return err
	}
	if token = strings.TrimSpace(token); token == "" || bytes.ContainsFunc([]byte(token), func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("the file of its token has no token")
	}
	r.Header.Set("Authorization", "Bearer "+token)
	return nil
}
