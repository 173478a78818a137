package peer

import (
	"errors"
	"slices"
	"testing"
	"time"

	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/node/state"
)

// TestAcceptKeepsWhatIsGood: a grant that somebody made who may own nothing takes the place
// of none, nor do its addresses and its name.
func TestAcceptKeepsWhatIsGood(t *testing.T) {
	p := Person{state.Folder(t.TempDir())}
	key, err := p.Key()
	if err != nil {
		t.Fatal(err)
	}
	owner, between, eve, site := identity.New(), identity.New(), identity.New(), identity.New().ID()
	block := func(to, on identity.ID, words string, until int64) access.Block {
		may, err := access.ParsePermissions(words)
		if err != nil {
			t.Fatal(err)
		}
		return access.Block{Audience: to, Node: on, Permissions: may, Until: until}
	}
	issue := func(by identity.Key, b access.Block) *access.Grant {
		g, err := access.Issue(by, b)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	pass := func(g *access.Grant, at ...string) string {
		return access.GrantLink{Site: site, Name: "boiler", Addresses: at, Grant: g}.String()
	}
	good := issue(owner, block(key.ID(), site, "read *", 0))
	if _, err := p.Accept(pass(good, "192.0.2.1:1"), "mine"); err != nil {
		t.Fatal(err)
	}
	passed, err := issue(owner, block(between.ID(), site, "read *", 0)).Delegate(between, block(key.ID(), site, "read a/b", 0))
	if err != nil {
		t.Fatal(err)
	}
	for name, g := range map[string]*access.Grant{
		"issued by whoever likes":     issue(eve, block(key.ID(), site, "read *", 0)),
		"passed on by a grantee":      passed,
		"for another site in the end": issue(owner, block(key.ID(), identity.New().ID(), "read *", 0)),
	} {
		if _, err := p.Accept(pass(g, "203.0.113.1:1"), ""); !errors.As(err, new(state.Mistake)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	check := func(want *access.Grant, at ...string) {
		t.Helper()
		if k, err := p.Contacts().Get("mine"); err != nil || string(k.Grant) != string(want.Bytes()) || !slices.Equal(k.Addresses, at) {
			t.Errorf("%+v %v", k, err)
		}
	}
	check(good, "192.0.2.1:1")
	better := issue(owner, block(key.ID(), site, "read *, set *", time.Now().Add(-time.Minute).Unix()))
	if _, err := p.Accept(pass(better, "192.0.2.2:1", "192.0.2.1:1"), ""); err != nil {
		t.Error(err)
	}
	check(better, "192.0.2.1:1", "192.0.2.2:1")
	if _, err := p.Accept(pass(passed), ""); err != nil { // the one before is over
		t.Error(err)
	}
	check(passed, "192.0.2.1:1", "192.0.2.2:1")
	if err := p.Contacts().Forget("mine"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Accept(pass(good), "mine"); err != nil {
		t.Error(err)
	}
}
