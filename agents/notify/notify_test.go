package notify

import (
	"fmt"
	"slices"
	"testing"

	"agentsite/agents"
)

// TestBounded: pending changes of a watcher are bounded, and are emitted in the order of the
// resources that it joined for.
func TestBounded(t *testing.T) {
	var all Watchers
	w := all.Join(agents.Change{Tools: true}, []string{"u:2", "u:1"})
	for range 1000 {
		all.Announce(agents.Change{URI: "u:1"})
		all.Announce(agents.Change{URI: "u:2"})
		all.Announce(agents.Change{URI: "u:3"})
		all.Announce(agents.Change{Tools: true, Prompts: true})
	}
	<-w.C
	all.Announce(agents.Change{URI: "u:1"}) // while its watcher is on the way to take the others
	want := []agents.Change{{Tools: true}, {URI: "u:2"}, {URI: "u:1"}}
	if got := w.Take(); !slices.Equal(got, want) || len(w.resources) != 2 || len(w.C) != 0 {
		t.Errorf("%+v of %d, want %+v of 2", got, len(w.resources), want)
	}
	if got := w.Take(); got != nil {
		t.Errorf("%+v a second time", got)
	}
	if n, coalesced := all.Counts(); n != 1 || coalesced != 1999 {
		t.Errorf("%d watchers, %d coalesced", n, coalesced)
	}
	w.Leave()
	all.Announce(agents.Change{URI: "u:1"})
	if n, _ := all.Counts(); n != 0 || len(w.C) != 0 {
		t.Errorf("%d watchers are left", n)
	}
}

// TestMany: a watcher of many resources is told of them as one of few is.
func TestMany(t *testing.T) {
	var all Watchers
	var uris []string
	for i := range 2 * few {
		uris = append(uris, fmt.Sprint("u:", i))
	}
	w := all.Join(agents.Change{}, uris[:1])
	w.Replace(uris)
	for _, uri := range []string{uris[few], "u:other", uris[0], uris[few]} {
		all.Announce(agents.Change{URI: uri})
	}
	want := []agents.Change{{URI: uris[0]}, {URI: uris[few]}}
	if got := w.Take(); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	w.Replace(uris[:1])
	if all.Announce(agents.Change{URI: uris[few]}); w.Take() != nil {
		t.Error("it is told of what it does not watch any more")
	}
}
