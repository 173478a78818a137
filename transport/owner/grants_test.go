package owner_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/acts"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/owner"
	"agentsite/transport/owner/client"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
)

func (s *site) token(t *testing.T, key identity.Key, name, words string) (acts.MadeToken, error) {
	t.Helper()
	all, err := s.owner().Access(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n, err := client.SignToken(all, signer(key), name, words, time.Now().Add(time.Hour))
	if err != nil {
		return acts.MadeToken{}, err
	}
	return s.owner().AddToken(t.Context(), n)
}

// TestTokens: the stored form of tokens, and tokens of another's key.
func TestTokens(t *testing.T) {
	key, d := identity.New(), new(disk)
	mine, other := identity.New(), identity.New()
	s := newSite(t, key, d)
	m, err := s.token(t, mine, "a", "read x, set x/y 1/h")
	if err != nil || !state.IsToken(m.Token) || m.Owner != mine.ID().String() {
		t.Fatal(m, err)
	}
	again := newSite(t, key, d)
	p := again.Access
	who, err := p.Bearer(m.Token)
	if err != nil || !strings.HasPrefix(who.ID, "token:a.") || who.Owner {
		t.Fatal(who, err)
	}
	for url, token := range map[string]string{"v": m.Token, "u": strings.Repeat("0", 64), "": m.Token + "00"} {
		p.URL = url
		if _, err := p.Bearer(token); device.AsFault(err).Kind != device.Denied {
			t.Error(url, err)
		}
	}
	p.URL = "u"
	set := agents.Ask{Tool: "set_level", Points: []string{"x/y"}}
	if _, err := p.Take(who, set, false); err != nil {
		t.Error(err)
	}
	if _, err := p.Take(who, set, false); device.AsFault(err).Kind != device.Busy {
		t.Error("a rate that is used up:", err)
	}
	if _, err := p.May(who, agents.Ask{Tool: "set_level", Points: []string{"z/y"}}); device.AsFault(err).Kind != device.Denied {
		t.Error(err)
	}

	o := again.owner()
	if _, err := again.token(t, other, "b", "read *"); code(t, err) != rpc.CodeInvalidParams {
		t.Error("another key's:", err)
	}
	for what, ids := range map[string][2]identity.ID{
		"of another site": {key.ID(), other.ID()}, "for somebody else": {other.ID(), key.ID()}, "": {key.ID(), key.ID()},
	} {
		b, err := client.NewBlock(ids[0], ids[1], "read *", time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		g, err := access.Issue(mine, b)
		if err != nil {
			t.Fatal(err)
		}
		for cut, refused := range map[int]bool{0: what != "", 40: true} {
			n := acts.NewToken{Name: "c", Grant: g.Bytes()[:len(g.Bytes())-cut], Until: time.Now().Add(time.Hour)}
			if _, err := o.AddToken(t.Context(), n); (err != nil) != refused {
				t.Errorf("a grant %s without %d bytes: %v", what, cut, err)
			}
		}
	}
	if _, err := client.Call(t.Context(), o, acts.AddOwnerAct, acts.Name{Name: other.ID().String()}); err != nil {
		t.Error(err)
	}
	m, err = again.token(t, other, "b", "read *")
	if err != nil || m.Owner != "" {
		t.Error(m, err)
	}
	b, err := p.Bearer(m.Token)
	if err != nil {
		t.Error(err)
	}
	if _, err := client.Call(t.Context(), o, acts.RemoveOwnerAct, acts.Name{Name: other.ID().String()}); err != nil || again.Access.Version(b) != 0 {
		t.Error("what an owner granted who is none any more", err)
	}
	all, err := o.Access(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Call(t.Context(), o, acts.RevokeAct, acts.Name{Name: all.Grants[0].ID}); err != nil || again.Access.Version(who) != 0 {
		t.Error("by the grant's ID:", err)
	}
	if _, err := client.Call(t.Context(), o, acts.RevokeAct, acts.Name{Name: key.ID().String()}); err == nil {
		t.Error("the site's own key can be revoked, and every token with it")
	}
}

// TestNamedKeys: an owner names the holder of a key, once at a site. The name ends all permissions of the key, and that
// of a token only the token; no name that a holder gave the key to which it passed its grant on is one here.
func TestNamedKeys(t *testing.T) {
	key, mine := identity.New(), identity.New()
	s := newSite(t, key, new(disk))
	o := s.owner()
	told := func() client.Access {
		t.Helper()
		all, err := o.Access(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	grant := func(to identity.ID, name, words string) error {
		t.Helper()
		signed, _, err := client.SignGrant(told(), signer(mine), to.String(), name, words, time.Now().Add(time.Hour))
		if err != nil {
			return err
		}
		_, err = client.Call(t.Context(), o, acts.GrantAct, signed)
		return err
	}
	revoke := func(name string) error {
		_, err := client.Call(t.Context(), o, acts.RevokeAct, acts.Name{Name: name})
		return err
	}
	holds := func(id identity.ID) bool {
		return s.Access.Version(agents.Principal{Kind: principal.Key, ID: id.String()}) != 0
	}
	if _, err := s.token(t, mine, "kitchen", "read *"); err != nil {
		t.Fatal(err)
	}
	before := told()
	anna, bob, plain := identity.New(), identity.New(), identity.New()
	for _, err := range []error{grant(anna.ID(), "anna", "read *, set *"), grant(anna.ID(), "anna", "read x"),
		grant(bob.ID(), "bob", "read *"), grant(plain.ID(), "", "read *")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"bob", "kitchen", "Anna", "a b", "\x1b[2J"} {
		if err := grant(plain.ID(), name, "read *"); err == nil {
			t.Errorf("another key is called %q, too", name)
		}
	}
	names := make(map[string]string)
	for _, g := range told().Grants {
		names[g.To] = g.Name
	}
	if names[anna.ID().String()] != "anna" || names[bob.ID().String()] != "bob" || names[plain.ID().String()] != "" ||
		s.Access.NameOf(anna.ID().String()) != "anna" {
		t.Errorf("they are called %v", names)
	}
	// A holder names the key of its agent as it likes.
	g := s.Access.Grants()[slices.IndexFunc(s.Access.Grants(), func(g *access.Grant) bool { return g.Audience() == bob.ID() })]
	b, err := client.NewBlock(plain.ID(), key.ID(), "read *", time.Now().Add(time.Hour))
	b.Name = "anna"
	passed, err2 := g.Delegate(bob, b)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	if _, err := s.Access.Present(plain.ID(), passed.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := revoke("anna"); err != nil || holds(anna.ID()) || !holds(bob.ID()) || !holds(plain.ID()) {
		t.Errorf("by the name: %v", err)
	}
	if err := revoke("anna"); err == nil {
		t.Error("a name that nobody has any more is revoked")
	}
	if err := revoke(""); err == nil {
		t.Error("no name is one")
	}
	// Two with one name, as of two owners at a time: none of them is meant.
	if _, err := s.token(t, mine, "bob", "read *"); err == nil {
		t.Error("a token is called as a key")
	}
	n, err := client.SignToken(before, signer(mine), "bob", "read *", time.Now().Add(time.Hour))
	if err == nil {
		_, err = o.AddToken(t.Context(), n)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.SignToken(told(), signer(mine), "bob", "read x", time.Now().Add(time.Hour)); err != nil {
		t.Error("it cannot be changed:", err)
	}
	if err := revoke("bob"); err == nil || !holds(bob.ID()) {
		t.Errorf("a token and a key of one name: %v", err)
	}
}

// TestClaim: one caller claims by the secret, and only for the key that it proved. The file with
// the secret is removed with the claim, and later callers are refused.
func TestClaim(t *testing.T) {
	s := newSite(t, identity.New(), new(disk))
	claimed := 0
	c := owner.Claim{Node: s.Node, Access: s.Access, Key: s.Key, Name: s.Name, File: filepath.Join(t.TempDir(), state.ClaimFile), Claimed: func() { claimed++ }}
	methods, i, err := c.Open("", []string{"192.0.2.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := state.ReadUntrusted(c.File, 4096)
	if kept, err2 := access.FindInvitation(text); err != nil || err2 != nil || kept.String() != i.String() {
		t.Fatalf("%s: %v, %v", text, err, err2)
	}
	as := func(key identity.Key) *client.Client {
		return client.New(caller{methods, rpc.Sender{Key: key.ID().PeerID()}}, s.Key.ID(), "")
	}
	ann, eve := identity.New(), identity.New()
	if _, err := as(eve).Claim(t.Context(), eve, access.ClaimSecret{1}); code(t, err) != 403 {
		t.Error("a wrong secret:", err)
	}
	if _, err := as(eve).Claim(t.Context(), ann, i.Secret); code(t, err) != 403 {
		t.Error("for a key that the caller did not prove:", err)
	}
	if _, err := client.New(caller{methods, theOwner}, s.Key.ID(), "").Claim(t.Context(), ann, i.Secret); code(t, err) != rpc.CodeMethodNotFound {
		t.Error("without a key:", err)
	}
	challenge, err := caller{methods, rpc.Sender{Key: ann.ID().PeerID()}}.CallMethod(t.Context(), string(owner.ChallengeMethod), acts.None{})
	if err != nil {
		t.Fatal(err)
	}
	var given struct {
		Challenge [32]byte `json:"challenge"`
	}
	if err := json.Unmarshal(challenge, &given); err != nil {
		t.Fatal(err)
	}
	forwarded := access.Prove(ann, s.Key.ID(), i.Secret, given.Challenge)
	if _, err := (caller{methods, rpc.Sender{Key: eve.ID().PeerID()}}).CallMethod(t.Context(), string(owner.ProveMethod), forwarded); code(t, err) != 403 {
		t.Error("another key's proof:", err)
	}
	if s.Access.Claimed() || claimed != 0 {
		t.Fatal("somebody owns it")
	}
	if name, err := as(ann).Claim(t.Context(), ann, i.Secret); err != nil || name != "greenhouse" || !s.Access.Owns(ann.ID().String()) || claimed != 1 {
		t.Error(name, err)
	}
	if text, err := state.ReadUntrusted(c.File, 4096); text != nil || err != nil {
		t.Errorf("the secret stays: %q %v", text, err)
	}
	if _, err := as(eve).Claim(t.Context(), eve, i.Secret); code(t, err) != 403 {
		t.Error("after the claim:", err)
	}
	if _, i, err := c.Open("", nil); err != nil || i.Secret != (access.ClaimSecret{}) {
		t.Error("an owned site shows a secret:", err)
	}
}
