package client

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/node/access"
	"agentsite/node/acts"
	"agentsite/node/identity"

	"github.com/go-json-experiment/json"
)

// answering answers owners' methods as a site.
type answering func(params acts.AccessParams) any

func (a answering) CallMethod(_ context.Context, _ string, params any) ([]byte, error) {
	p, _ := params.(acts.AccessParams)
	return json.Marshal(a(p))
}

// mine is the key that signs.
func mine() (identity.Key, error) { return identity.New(), nil }

// TestAccessNamesTheDialledKey: the key that a site names counts only if it was dialled or the site
// proves it, and nothing is signed otherwise.
func TestAccessNamesTheDialledKey(t *testing.T) {
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
		caller := answering(func(p acts.AccessParams) any {
			all := acts.Access{Site: c.says, Name: "x", At: []string{"'; touch x", "192.0.2.1:1", "/ip4/192.0.2.1/tcp/1", "/ip4/192.0.2.1/tcp/1'; touch x", "/dns4/$(touch x)/tcp/1"}}
			if c.prove != nil {
				all.Proof = c.prove(p.Challenge)
			}
			return all
		})
		all, err := New(caller, c.dialled, "").Access(t.Context())
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		signed, _, err := SignGrant(all, mine, victim.ID().String(), "", "read *", time.Time{})
		if (err == nil) != c.ok {
			t.Errorf("%s: it is signed: %v", name, err)
		}
		if _, err := SignToken(all, mine, "t", "read *", time.Time{}); (err == nil) != c.ok {
			t.Errorf("%s: a token is signed: %v", name, err)
		}
		if !c.ok {
			continue
		}
		if g, err := access.ParseGrant(signed.Grant); err != nil || g.Blocks[0].Node != site.ID() {
			t.Errorf("%s: %v", name, err)
		}
		if want := []string{"192.0.2.1:1", "/ip4/192.0.2.1/tcp/1"}; !slices.Equal(all.At, want) {
			t.Errorf("%s: %q", name, all.At)
		}
	}
}

// TestAnswersThatAreNone: a token and a code go into files and onto paper.
func TestAnswersThatAreNone(t *testing.T) {
	c := New(answering(func(acts.AccessParams) any {
		return map[string]any{"token": "$(touch x)", "code": "'; touch x"}
	}), identity.ID{}, "")
	if m, err := c.AddToken(t.Context(), acts.NewToken{}); err == nil {
		t.Error(m)
	}
	if m, err := c.NewRecovery(t.Context()); err == nil || m.Code != "" {
		t.Error(m)
	}
}

// TestGrantEnds: a signed grant ends no sooner than requested, although it ends at a whole second.
func TestGrantEnds(t *testing.T) {
	said := time.Unix(1_800_000_000, 1)
	for until, want := range map[time.Time]int64{said: said.Unix() + 1, {}: 0} {
		b, err := NewBlock(identity.New().ID(), identity.New().ID(), "read *", until)
		if err != nil || b.Until != want {
			t.Errorf("%v: %d, want %d (%v)", until, b.Until, want, err)
		}
	}
}

// TestRenewal: a text that a site lists is suggested for a shell only if it is a permission.
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
		words, ok := Renewal(acts.Granted{To: to, May: []string{may}})
		if ok != (want != "") || ok && words != want {
			t.Errorf("%q: %q", may, words)
		}
	}
	for _, g := range []acts.Granted{{To: "x'; touch x", May: []string{"read *"}}, {To: to}, {To: to, May: []string{"read *", "read *"}}, {To: to, Token: "t", May: []string{"read *"}}} {
		if words, ok := Renewal(g); ok {
			t.Errorf("%+v: %q", g, words)
		}
	}
}

// TestFreeName: a phone gets a name that nothing has at the site, whatever the site says that it would be.
func TestFreeName(t *testing.T) {
	long := strings.Repeat("a", 24)
	on := Access{Access: acts.Access{Owners: []acts.Owner{{DID: "did:key:z", Name: "Safari-on-iPad"}}}}
	for _, tt := range [][2]string{{"", "phone"}, {"", "phone-2"}, {"Evil; rm", "phone-3"}, {"safari-on-iphone", "safari-on-iphone"},
		{"safari-on-ipad", "safari-on-ipad-2"},
		{long, long}, {long, long[:22] + "-2"}} {
		got := on.freeName(tt[0], "phone")
		if got != tt[1] {
			t.Errorf("%q becomes %q, not %q", tt[0], got, tt[1])
		}
		on.Grants = append(on.Grants, acts.Granted{Name: got})
	}
}

// TestSignInName: a program's token has a name that neither a key nor an owner has, and is no flag of a command.
func TestSignInName(t *testing.T) {
	on := Access{Access: acts.Access{
		Owners: []acts.Owner{{DID: "did:key:z", Name: "Ann"}}, Grants: []acts.Granted{{Name: "claude", ID: "00112233aabbccdd"}, {Token: "go-sdk"}},
	}}
	for client, want := range map[string]string{
		"Claude": "claude-2", "ann": "ann-2", "00112233AABBCCDD": "00112233aabbccdd-2", "Go SDK": "go-sdk-2", "--all": "all", "-": "program", "程序": "program", "n8n": "n8n",
	} {
		if got := SignInName(on, acts.SignIn{Client: client}); got != want {
			t.Errorf("%q becomes %q, not %q", client, got, want)
		}
	}
	if got := SignInName(on, acts.SignIn{Client: "Claude", Replaces: "mine"}); got != "mine" {
		t.Errorf("the same program's token becomes %q", got)
	}
}
