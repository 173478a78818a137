package protocols

import (
	"maps"
	"slices"
	"testing"

	"agentsite/node/config"
)

// TestAdapters: there is an adapter for each protocol that a configuration may list, and none
// that it cannot.
func TestAdapters(t *testing.T) {
	if got, want := slices.Sorted(maps.Keys(adapters)), slices.Sorted(slices.Values(config.Protocols)); !slices.Equal(got, want) {
		t.Errorf("adapters %q, configuration %q", got, want)
	}
}

// TestServices: a site is found by what it speaks, and by nothing else.
func TestServices(t *testing.T) {
	if all := Services(&config.Site{Protocols: config.Protocols}); len(all) != len(services) {
		t.Errorf("%d services of all protocols, and %d are known", len(all), len(services))
	}
	if all := Services(&config.Site{Protocols: []string{"openapi"}}); all != nil {
		t.Errorf("plain HTTP is found by %v", all)
	}
}

// TestDirectory: a directory is found as one.
func TestDirectory(t *testing.T) {
	c := &config.Site{Protocols: []string{"wot"}}
	if all := Services(c); len(all) != 1 || all[0].Subtype != "" {
		t.Error(all)
	}
	c.WoT.Directory = true
	if all := Services(c); len(all) != 1 || all[0].Subtype != "_directory" || !slices.Contains(all[0].Text, "type=Directory") {
		t.Error(all)
	}
}
