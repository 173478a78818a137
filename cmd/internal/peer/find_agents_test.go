package peer

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"agentsite/agents/task"
	"agentsite/node/acts"
)

// TestMatchingAgents: only skills with all tags are taken from a site's answer, up to a limit.
func TestMatchingAgents(t *testing.T) {
	f := &agentFinder{AgentsWanted: AgentsWanted{Tags: []string{"a", "b"}}}
	var many []task.Skill
	for range 100 {
		many = append(many, task.Skill{ID: "s", Tags: slices.Repeat([]string{"a", "b", "\x1b[2J"}, 100), Description: strings.Repeat("ä", 1000), Input: []byte(`{}`)})
	}
	all := []task.Agent{
		{Name: "half", Skills: []task.Skill{{ID: "x", Tags: []string{"a"}}, {ID: "y", Tags: []string{"b"}}}},
		{Name: "both", Skills: []task.Skill{{ID: "x", Tags: []string{"a"}}, {ID: "y", Tags: []string{"b", "c", "a"}}}},
		{Name: "none"},
	}
	got := f.matching(all)
	if len(got) != 1 || got[0].Name != "both" || len(got[0].Skills) != 1 || got[0].Skills[0].ID != "y" || len(all[1].Skills) != 2 {
		t.Errorf("%+v", got)
	}
	for range 100 {
		all = append(all, task.Agent{Name: "flood", Skills: many, Description: strings.Repeat("x", 1000)})
	}
	got = f.matching(all)
	flood := got[1]
	if len(got) != maxFoundAgents || len(flood.Skills) != maxFoundSkills || len(flood.Description) > maxFoundText || len(flood.Skills[0].Tags) != maxFoundTags ||
		slices.Contains(flood.Skills[0].Tags, "\x1b[2J") || len(flood.Skills[0].Description) > maxFoundText || flood.Skills[0].Input != nil || len(all[3].Skills) != 100 {
		t.Errorf("%d agents, %+v", len(got), flood)
	}
}

// TestFoundAgentsOrder: known sites come first, whatever others call themselves, and a site twice
// found is one. A known site without such an agent is left out.
func TestFoundAgentsOrder(t *testing.T) {
	f := &agentFinder{AgentsWanted: AgentsWanted{Tags: []string{"a"}}, sites: make(map[string]*foundSite)}
	site := func(did, name, known string) Found {
		return Found{Found: acts.Found{DID: did, Name: name}, Known: known}
	}
	f.add(site("stranger", "aaa", ""), Contact{}, "realm")
	f.add(site("mine", "", "shed"), Contact{}, "known")
	f.add(site("other", "", "attic"), Contact{}, "known")
	f.add(site("mine", "zzz", "shed"), Contact{}, "realm")
	f.sites["mine"].Agents = []task.Agent{{Name: "x"}}
	all := f.found()
	if len(all) != 2 || all[0].DID != "mine" || all[0].Name != "zzz" || !slices.Equal(all[0].Through, []string{"known", "realm"}) || all[1].DID != "stranger" {
		t.Errorf("%+v", all)
	}
	f.sites["other"].Err = errors.New("it does not answer")
	if all = f.found(); len(all) != 3 || all[0].DID != "other" {
		t.Errorf("%+v", all)
	}
	for i := range 1000 {
		f.add(site(strings.Repeat("x", i), "flood", ""), Contact{}, "realm")
	}
	if len(f.sites) != maxAskedSites {
		t.Errorf("%d sites are kept", len(f.sites))
	}
}
