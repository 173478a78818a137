package op

import (
	"testing"

	"agentsite/agents"
)

// TestTools: each tool has a name and a list of an offer of its own. Of two tools with one list, one would
// be offered where only the other may be used.
func TestTools(t *testing.T) {
	var offer agents.Offer
	lists, flags, names := map[*[]string]string{}, map[*bool]string{}, map[string]bool{}
	for _, tool := range Tools {
		if names[tool.Name] || tool.Name == "" {
			t.Errorf("%q is twice, or has no name", tool.Name)
		}
		names[tool.Name] = true
		if tool.Points != nil {
			if other := lists[tool.Points(&offer)]; other != "" {
				t.Errorf("%s shares its list with %s", tool.Name, other)
			}
			lists[tool.Points(&offer)] = tool.Name
		}
		if tool.Whole != nil {
			if other := flags[tool.Whole(&offer)]; other != "" {
				t.Errorf("%s shares its flag with %s", tool.Name, other)
			}
			flags[tool.Whole(&offer)] = tool.Name
		}
	}
}
