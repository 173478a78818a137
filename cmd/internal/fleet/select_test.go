package fleet

import (
	"slices"
	"strings"
	"testing"

	"agentsite/cmd/internal/peer"
)

func TestSelection(t *testing.T) {
	known := []peer.Contact{
		{Name: "shed", Owner: true, Tags: []string{"garden"}},
		{Name: "green-2", Owner: true, Tags: []string{"garden", "warm"}},
		{Name: "green-1", Owner: true},
		{Name: "friend"},
	}
	for _, c := range []struct {
		sites, tags []string
		want        string // names, or of an error a word that it has
	}{
		{nil, nil, "green-1 green-2 shed"},
		{[]string{"green*"}, nil, "green-1 green-2"},
		{[]string{"green-?", "friend"}, nil, "friend green-1 green-2"},
		{nil, []string{"garden"}, "green-2 shed"},
		{[]string{"green*"}, []string{"warm", "garden"}, "green-2"},
		{[]string{"blue*"}, nil, "green-1, green-2"},
		{[]string{"green*", "bleu"}, nil, `"bleu"`},
		{[]string{"["}, nil, "pattern"},
		{nil, []string{"cold"}, "garden, warm"},
		{[]string{"green-1"}, []string{"warm"}, "green-2 (garden warm)"},
	} {
		chosen, err := Selection{c.sites, c.tags}.From(known)
		var names []string
		for _, k := range chosen {
			names = append(names, k.Name)
		}
		if got := strings.Join(names, " "); err == nil && got != c.want {
			t.Errorf("%v %v: %s", c.sites, c.tags, got)
		}
		if err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v %v: %v", c.sites, c.tags, err)
		}
	}
	for _, none := range [][]peer.Contact{nil, slices.Clone(known[3:])} {
		if _, err := (Selection{}).From(none); err == nil {
			t.Errorf("%v: no error", none)
		}
	}
}
