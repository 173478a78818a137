package site

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/things"
	"agentsite/device"
	"agentsite/node"
	"agentsite/node/access"
	"agentsite/node/history"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
)

// TestOwnersMethodsAreTheOwners: every one that there is, whoever else asks.
func TestOwnersMethodsAreTheOwners(t *testing.T) {
	door := node.New(node.NewHub(nil, history.New(nil), things.URI), "secret", nil)
	book, err := openAccess(state.Folder(t.TempDir()), identity.New().ID(), nil)
	if err != nil {
		t.Fatal(err)
	}
	methods := map[string]rpc.Method{}
	addOwner(methods, door, nil, nil)
	addRoutes(methods, door, nil)
	addGrants(methods, door, book, whereabouts{url: "u", at: func() []string { return nil }})
	for name, method := range methods {
		for _, e := range []rpc.Evidence{{}, {Bearer: "secret"}, {Local: rpc.LocalAgent}, {Peer: "12D3"}} {
			var refused *rpc.Error
			if _, err := method(t.Context(), &rpc.Call{Evidence: e}); !errors.As(err, &refused) || refused.Code != rpc.CodeMethodNotFound {
				t.Errorf("%s by %+v: %v", name, e, err)
			}
		}
	}
	if len(methods) != 16 {
		t.Errorf("%d methods", len(methods))
	}
}

// granting is a folder's book behind the owner's methods.
type granting struct {
	t       *testing.T
	book    *access.Book
	methods map[string]rpc.Method
}

func newGranting(t *testing.T, f state.Folder) *granting {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(string(f), "config"))
	key, err := f.KeyLocked()
	if err != nil {
		t.Fatal(err)
	}
	g := &granting{t: t, methods: map[string]rpc.Method{}}
	if g.book, err = openAccess(f, key.ID(), nil); err != nil {
		t.Fatal(err)
	}
	addGrants(g.methods, node.New(node.NewHub(nil, history.New(nil), things.URI), "secret", nil), g.book, whereabouts{url: "u", at: func() []string { return nil }})
	return g
}

func (g *granting) own(method string, params any) (any, error) {
	text, err := json.Marshal(params)
	if err != nil {
		g.t.Fatal(err)
	}
	return g.methods[method](g.t.Context(), &rpc.Call{Params: rpc.RawJSON(text), Evidence: rpc.Evidence{Local: rpc.LocalOwner}})
}

func (g *granting) token(name, words string) (MadeToken, error) {
	n, err := SignToken(Access{id: g.book.Site}, name, words, time.Now().Add(time.Hour))
	if err != nil {
		return MadeToken{}, err
	}
	m, err := g.own(TokenMethod, n)
	made, _ := m.(MadeToken)
	return made, err
}

// TestTokens: what a folder keeps of them, and what somebody else's key makes.
func TestTokens(t *testing.T) {
	f := state.Folder(t.TempDir())
	g := newGranting(t, f)
	m, err := g.token("a", "read x, set x/y 1/h")
	if err != nil || !state.IsToken(m.Token) || m.Owner == "" {
		t.Fatal(m, err)
	}
	again := newGranting(t, f)
	p := permissions{again.book, "u"}
	who, err := p.Bearer(m.Token)
	if err != nil || who.ID != "token:a" || who.Owner {
		t.Fatal(who, err)
	}
	for url, token := range map[string]string{"v": m.Token, "u": strings.Repeat("0", 64), "": m.Token + "00"} {
		if _, err := (permissions{again.book, url}).Bearer(token); device.AsFault(err).Kind != device.Denied {
			t.Error(url, err)
		}
	}
	if err := again.book.Tell(time.Now()); err != nil { // the system of a test may know no time
		t.Fatal(err)
	}
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
	for _, name := range []string{state.AccessFile, state.CountsFile} {
		if info, err := os.Stat(f.Path(name)); err != nil || state.OthersCanRead(info.Mode()) {
			t.Error(name, info, err)
		}
	}

	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	if _, err := again.token("b", "read *"); err == nil || !strings.Contains(err.Error(), "agentsite owners add did:key:") {
		t.Error(err)
	}
	other, err := OwnerIdentity()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.own(AddOwnerMethod, About{Name: other.DID}); err != nil {
		t.Error(err)
	}
	if m, err := again.token("b", "read *"); err != nil || m.Owner != "" {
		t.Error(m, err)
	}
	if _, err := again.own(RemoveOwnerMethod, About{Name: other.DID}); err != nil || again.book.Standing(agents.Principal{ID: "token:b"}) != 0 {
		t.Error("what an owner granted who is none any more", err)
	}
	grants := list(again.book, whereabouts{url: "u", at: func() []string { return nil }}).Grants
	if _, err := again.own(RevokeMethod, About{Name: grants[0].ID}); err != nil || again.book.Standing(who) != 0 {
		t.Error("by the grant's ID:", err)
	}
	if _, err := again.own(RevokeMethod, About{Name: again.book.Site.String()}); err == nil {
		t.Error("the site's own key can be revoked, and every token with it")
	}
}

// TestGrantEnds: what is signed ends no sooner than was said, though it ends at a whole second.
func TestGrantEnds(t *testing.T) {
	said := time.Unix(1_800_000_000, 1)
	for until, want := range map[time.Time]int64{said: said.Unix() + 1, {}: 0} {
		b, err := block(identity.New().ID(), identity.New().ID(), "read *", until)
		if err != nil || b.Until != want {
			t.Errorf("%v: %d, want %d (%v)", until, b.Until, want, err)
		}
	}
}

func TestBookThatCannotBeRead(t *testing.T) {
	f := state.Folder(t.TempDir())
	if err := os.WriteFile(f.Path(state.AccessFile), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openAccess(f, identity.New().ID(), nil); err == nil || !strings.Contains(err.Error(), "move both away") {
		t.Error(err)
	}
}
