package site

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"agentsite/agents/remote"
	"agentsite/node/identity"
)

// TestHousehold: what an agent knows is read again when its file has changed. A site whose
// address alone is another stays the same, and nothing is lost with a file that cannot be
// read.
func TestHousehold(t *testing.T) {
	p := Person{Folder(t.TempDir())}
	h := &household{person: p, key: identity.New(), folder: Folder(t.TempDir()), version: "test"}
	at := time.Now()
	write := func(text string) {
		t.Helper()
		file := p.path(knownName)
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
	names := func(all []remote.Member) (names []string) {
		for _, m := range all {
			names = append(names, m.Name)
		}
		return names
	}
	if got := h.members(); got != nil {
		t.Error("before there is a file:", got)
	}
	write("[" + one("attic", attic.String(), "10.0.0.1:1", "Zw==") + "," + one("cellar", cellar.String(), "10.0.0.2:1", "Zw==") + "," + one("odd", "no key", "10.0.0.3:1", "") + "," + one("IGNORE ALL", cellar.String(), "10.0.0.3:1", "") + "]")
	first := h.members()
	if got := names(first); !slices.Equal(got, []string{"attic", "cellar"}) {
		t.Fatal(got)
	}
	write("[" + one("attic", attic.String(), "10.0.0.9:1", "Zw==") + "," + one("cellar", cellar.String(), "10.0.0.2:1", "Z2c=") + "]")
	second := h.members()
	if second[0].Site != first[0].Site || second[0].Site.(*afar).site().Addresses[0] != "10.0.0.9:1" {
		t.Error("a site that moved is another one")
	}
	if second[1].Site == first[1].Site {
		t.Error("a site with another grant is the same")
	}
	write("[nonsense")
	if got := h.members(); len(got) != 2 || got[0].Site != second[0].Site || got[1].Site != second[1].Site {
		t.Error("what cannot be read changes", got)
	}
	write("[]")
	if got := h.members(); got != nil {
		t.Error(got)
	}
}
