package access

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/principal"
)

// TestEndlessToken: a token may count for ever, over starts and beside others that end.
func TestEndlessToken(t *testing.T) {
	k := keys(2)
	s := shelf{}
	b := s.open(t, k[0].ID())
	wants(t, b.Claim(Owner{ID: k[1].ID()}), "")
	g := grant(t, "read fan", k[1], k[0])
	token, err := b.AddToken("kept", g.Bytes(), time.Time{})
	wants(t, err, "")
	_, err = b.AddToken("ends", grant(t, "read fan", k[1], k[0]).Bytes(), soon(b, time.Hour))
	wants(t, err, "")
	b = s.open(t, k[0].ID())
	p, err := b.Bearer(token)
	wants(t, err, "")
	_, err = b.May(p, readFan())
	wants(t, err, "")
	wants(t, b.Revoke(Revocation{Token: "kept"}), "")
	_, err = b.Bearer(token)
	wants(t, err, "unknown or revoked token")
}

// TestTokenNames: no name makes a token a principal of another kind, and none brings a right.
func TestTokenNames(t *testing.T) {
	k := keys(2)
	b := new(shelf).open(t, k[0].ID())
	wants(t, b.Claim(Owner{ID: k[1].ID()}), "")
	wants(t, b.SetHosted(map[string][]Permission{"rule:frost": words(t, "set *")}), "")
	g := grant(t, "read fan", k[1], k[0]).Bytes()
	for _, name := range []string{"local", "local-agent", "token", "rule", "llm", "did", "site", "key"} {
		token, err := b.AddToken(name, g, time.Time{})
		wants(t, err, "")
		p, err := b.Bearer(token)
		wants(t, err, "")
		if p.Kind != principal.Token || p.Owner || principal.Parse(p.ID).Kind != p.Kind || b.Hosts(p.ID) || b.MayHold(p.ID, "fan/on") {
			t.Errorf("the token %s is %+v", name, p)
		}
		p.Owner = true
		if _, err := b.May(p, setFan()); err == nil {
			t.Errorf("the token %s is an owner", name)
		}
	}
	for _, name := range []string{"rule:frost", "did:key:z6Mk", "local:x", ":", "token:x"} {
		if _, err := b.AddToken(name, g, time.Time{}); err == nil {
			t.Errorf("a token is called %s", name)
		}
	}
}

func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keys(3)
		s := shelf{}
		b := s.open(t, k[0].ID())
		wants(t, b.Claim(Owner{ID: k[1].ID()}), "")
		fan := grant(t, "set fan", k[1], k[0]).Bytes()
		token, err := b.AddToken("desk", fan, soon(b, aDay))
		wants(t, err, "")
		if len(token) != 64 || bytes.Contains(s.book, []byte(token)) {
			t.Error("it is kept, or no token: ", token)
		}
		_, err = b.AddToken("desk", fan, soon(b, aDay))
		wants(t, err, "a token desk already")
		_, err = b.AddToken("Desk", fan, soon(b, aDay))
		wants(t, err, "is not a name")
		_, err = b.AddToken("eve", grant(t, "set fan", k[2], k[0]).Bytes(), soon(b, aDay))
		wants(t, err, "not an owner")
		_, err = b.AddToken("bob", grant(t, "set fan", k[1], k[2]).Bytes(), soon(b, aDay))
		wants(t, err, "the site itself")

		b = s.open(t, k[0].ID())
		p, err := b.Bearer(token)
		wants(t, err, "")
		if !strings.HasPrefix(p.ID, "token:desk.") || p.Owner {
			t.Error(p)
		}
		may := func(p agents.Principal) error {
			_, err := b.May(p, setFan())
			return err
		}
		wants(t, may(p), "")
		for _, wrong := range []string{"", "desk", token[:62], token + "00", strings.Repeat("0", 64), strings.ToUpper(token) + "x"} {
			_, err := b.Bearer(wrong)
			wants(t, err, "unknown or revoked token")
		}
		b.URL = "https://boiler.local:8473"
		_, err = b.Bearer(token)
		b.URL = "u"
		wants(t, err, "for another address")
		time.Sleep(aDay)
		_, err = b.Bearer(token)
		wants(t, err, "has ended")
		wants(t, may(p), "your permission ended")

		former := p
		token, err = b.AddToken("desk", fan, soon(b, time.Hour)) // in the place of what has ended
		wants(t, err, "")
		p, err = b.Bearer(token)
		wants(t, err, "")
		if p == former || b.Version(former) != 0 { // also of the same grant
			t.Errorf("the principal of a former token of the name is another's: %s", p.ID)
		}
		s.full = errors.New("disk full") // revoked all the same
		wants(t, b.Revoke(Revocation{Token: "desk"}), "it is revoked, but")
		wants(t, may(p), "revoked")
		s.full = nil
		wants(t, b.Revoke(Revocation{Token: "desk"}), "")
		_, err = b.Bearer(token)
		wants(t, err, "unknown or revoked token")
		if len(b.Tokens()) != 0 {
			t.Error(b.Tokens())
		}
	})
}
