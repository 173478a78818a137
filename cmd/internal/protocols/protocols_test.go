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
