package peer

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"agentsite/agents/group"
	"agentsite/device"
	"agentsite/node/identity"
	"agentsite/node/state"
)

// TestMembers: an agent's contacts are read again when their file has changed. A site whose address
// alone is another stays the same, and nothing is lost with a file that cannot be read.
func TestMembers(t *testing.T) {
	p := Person{state.Folder(t.TempDir())}
	h := &members{person: p, socket: state.AgentSocket, key: identity.New(), folder: state.Folder(t.TempDir()), version: "test"}
	at := time.Now()
	write := func(text string) {
		t.Helper()
		file := p.Folder.Path(contactsName)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		at = at.Add(time.Second)
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	attic, cellar := identity.New().ID(), identity.New().ID()
	one := func(name, id, address, grant string) string {
		return fmt.Sprintf(`{"name":%q,"did":%q,"addresses":[%q],"grant":%q}`, name, id, address, grant)
	}
	names := func(all []group.Member) (names []string) {
		for _, m := range all {
			names = append(names, m.Name)
		}
		return names
	}
	if got := h.list(); got != nil {
		t.Error("before there is a file:", got)
	}
	write("[" + one("attic", attic.String(), "10.0.0.1:1", "Zw==") + "," + one("cellar", cellar.String(), "10.0.0.2:1", "Zw==") + "," + one("odd", "no key", "10.0.0.3:1", "") + "," + one("IGNORE ALL", cellar.String(), "10.0.0.3:1", "") + "]")
	first := h.list()
	if got := names(first); !slices.Equal(got, []string{"attic", "cellar"}) { // which stands there twice
		t.Fatal(got)
	}
	write("[" + one("attic", attic.String(), "10.0.0.9:1", "Zw==") + "," + one("cellar", cellar.String(), "10.0.0.2:1", "Z2c=") + "]")
	second := h.list()
	if second[0].Site != first[0].Site || second[0].Site.(*remoteSite).contact().Addresses[0] != "10.0.0.9:1" {
		t.Error("a site that moved is another one")
	}
	if second[1].Site == first[1].Site {
		t.Error("a site with another grant is the same")
	}
	write("[nonsense")
	if got := h.list(); len(got) != 2 || got[0].Site != second[0].Site || got[1].Site != second[1].Site {
		t.Error("what cannot be read changes", got)
	}
	write("[]")
	if got := h.list(); got != nil {
		t.Error(got)
	}
}

// TestNames: no two sites have one name, and none loses the name that it has. A site from
// elsewhere that is called as the one on this machine hides nothing, and neither does one whose
// name is none.
func TestNames(t *testing.T) {
	p := Person{state.Folder(t.TempDir())}
	h := &members{person: p, socket: state.AgentSocket, key: identity.New(), folder: state.Folder(t.TempDir()), version: "test"}
	here, evil, other := identity.New().ID(), identity.New().ID(), identity.New().ID()
	if err := os.WriteFile(h.folder.SocketPath(state.AgentSocket), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	made, _ := state.VersionOf(h.folder.SocketPath(state.AgentSocket))
	local := &localSite{name: "shed", did: here.String(), made: made}
	know := func(all ...Contact) {
		t.Helper()
		if err := writeJSON(p.Folder, contactsName, all); err != nil {
			t.Fatal(err)
		}
		h.read = state.FileVersion{} // the clock of files may be slower than this test
	}
	at := func() map[string]string {
		all := make(map[string]string)
		for _, m := range h.list() {
			did := here.String()
			if s, ok := m.Site.(*remoteSite); ok {
				did = s.contact().DID
			}
			if device.CheckName(m.Name) != nil || all[m.Name] != "" {
				t.Errorf("%q", m.Name)
			}
			all[m.Name] = did
		}
		return all
	}
	h.local = local
	know(Contact{Name: "shed", DID: evil.String()}, Contact{Name: "IGNORE ALL", DID: other.String()})
	want := map[string]string{"shed": here.String(), "shed-" + evil.Short(): evil.String(), "site-" + other.Short(): other.String()}
	if got := at(); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	know(Contact{Name: "shed", DID: evil.String()}, Contact{Name: "shed-" + other.Short(), DID: evil.String()}, Contact{Name: "shed", DID: other.String()})
	if got := at(); got["shed"] != here.String() || len(got) != 3 || got["shed-"+evil.Short()] != evil.String() {
		t.Errorf("%v", got)
	}

	// One that was first stays so when the one on this machine comes.
	h.local, h.names = nil, nil
	os.Remove(h.folder.SocketPath(state.AgentSocket))
	know(Contact{Name: "shed", DID: evil.String()})
	if got := at(); got["shed"] != evil.String() {
		t.Errorf("%v", got)
	}
	if err := os.WriteFile(h.folder.SocketPath(state.AgentSocket), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	local.made, _ = state.VersionOf(h.folder.SocketPath(state.AgentSocket))
	h.local = local
	if got := at(); got["shed"] != evil.String() || got["shed-"+here.Short()] != here.String() {
		t.Errorf("%v", got)
	}
	local.did = "" // its key is another user's
	h.names = map[string]string{"shed": evil.String()}
	if got := at(); got["shed-here"] != here.String() {
		t.Errorf("%v", got)
	}
}
