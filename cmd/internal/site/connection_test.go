package site

import (
	"context"
	"slices"
	"testing"
	"time"

	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/transport/mcp/client"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
)

// answering answers owners' methods as a site.
type answering func(method string, params AccessParams) any

func (a answering) Call(_ context.Context, r rpc.Request, _ func(string, rpc.Raw)) (rpc.Raw, error) {
	p, _ := r.Params.(AccessParams)
	text, err := json.Marshal(a(r.Method, p))
	return rpc.RawJSON(text), err
}

// TestAccessNamesTheDialledKey: what a site says of its key counts where the key was
// dialled, or where the site proves that it has it, and nothing is signed otherwise.
func TestAccessNamesTheDialledKey(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	site, victim := identity.New(), identity.New()
	var stale []byte // a proof of before
	for name, c := range map[string]struct {
		dialled identity.ID
		says    string
		prove   func(challenge []byte) []byte
		ok      bool
	}{
		"dialled":                      {site.ID(), site.ID().String(), nil, true},
		"dialled, by the peer ID":      {site.ID(), site.ID().PeerID(), nil, true},
		"dialled, says another":        {site.ID(), victim.ID().String(), nil, false},
		"dialled, says nothing":        {site.ID(), "", nil, false},
		"a socket, proves":             {says: site.ID().String(), prove: func(c []byte) []byte { return access.ProveSite(site, c) }, ok: true},
		"a socket, proves another":     {says: victim.ID().String(), prove: func(c []byte) []byte { return access.ProveSite(site, c) }},
		"a socket, proves nothing":     {says: victim.ID().String()},
		"a socket, proves what it had": {says: site.ID().String(), prove: func([]byte) []byte { return stale }},
	} {
		stale = access.ProveSite(site, make([]byte, 32))
		caller := answering(func(_ string, p AccessParams) any {
			all := Access{Site: c.says, Name: "x", At: []string{"'; touch x", "192.0.2.1:1", "/ip4/192.0.2.1/tcp/1", "/ip4/192.0.2.1/tcp/1'; touch x", "/dns4/$(touch x)/tcp/1"}}
			if c.prove != nil {
				all.Proof = c.prove(p.Challenge)
			}
			return all
		})
		all, err := (&Connection{Client: client.New(caller, "t", "1"), dialled: c.dialled}).Access(t.Context())
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		signed, _, err := SignGrant(all, victim.ID().String(), "read *", time.Time{})
		if (err == nil) != c.ok {
			t.Errorf("%s: it is signed: %v", name, err)
		}
		if _, err := SignToken(all, "t", "read *", time.Time{}); (err == nil) != c.ok {
			t.Errorf("%s: a token is signed: %v", name, err)
		}
		if !c.ok {
			continue
		}
		if g, err := access.Open(signed.Grant); err != nil || g.Blocks[0].Node != site.ID() {
			t.Errorf("%s: %v", name, err)
		}
		if want := []string{"192.0.2.1:1", "/ip4/192.0.2.1/tcp/1"}; !slices.Equal(all.At, want) {
			t.Errorf("%s: %q", name, all.At)
		}
	}
}

// TestAnswersThatAreNone: a token and a code go into files and onto paper.
func TestAnswersThatAreNone(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	c := &Connection{Client: client.New(answering(func(string, AccessParams) any {
		return map[string]any{"token": "$(touch x)", "code": "'; touch x"}
	}), "t", "1")}
	if m, err := c.AddToken(t.Context(), NewToken{}); err == nil {
		t.Error(m)
	}
	if m, err := c.NewRecovery(t.Context()); err == nil || m.Code != "" {
		t.Error(m)
	}
}

// TestRenewal: what a site lists is suggested for a shell only where it is a permission.
func TestRenewal(t *testing.T) {
	to := identity.New().ID().String()
	for may, want := range map[string]string{
		"read *":                     "grant " + to + " 'read *'",
		"set a/b max 10m 10/h":       "grant " + to + " 'set a/b max 10m 10/h'",
		"read *'; touch x; '":        "",
		"read *\nrun x":              "",
		"read $(touch x)":            "",
		"use '; on a":                "",
		"read * until \x1b[31m":      "",
		"stop, read *,read a/b`x`":   "",
		"read a/b,  set a/b confirm": "grant " + to + " 'read a/b, set a/b confirm'",
	} {
		words, ok := Granted{To: to, May: []string{may}}.Renewal()
		if ok != (want != "") || ok && words != want {
			t.Errorf("%q: %q", may, words)
		}
	}
	for _, g := range []Granted{{To: "x'; touch x", May: []string{"read *"}}, {To: to}, {To: to, May: []string{"read *", "read *"}}, {To: to, Token: "t", May: []string{"read *"}}} {
		if words, ok := g.Renewal(); ok {
			t.Errorf("%+v: %q", g, words)
		}
	}
}
