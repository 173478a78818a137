package hosted

import (
	"context"
	"testing"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/node/config"
)

// named is an agent whose definition names a point.
type named struct {
	Point string `json:"point"`
}

func (*named) Run(context.Context, agents.Principal, agents.Site) error { return nil }
func (n *named) Define() (agent.Definition, error) {
	return agent.Definition{Reads: []string{n.Point}}, nil
}

// TestNamesAreNoPermissions: what a definition names is read and nothing else, whatever words are
// in the name.
func TestNamesAreNoPermissions(t *testing.T) {
	kinds := func(*config.Site) []agent.Kind {
		return []agent.Kind{{Name: "named", New: func() agent.Agent { return new(named) }}}
	}
	for name, ok := range map[string]bool{
		"net/x": true, "net/x, set *": false, "net/x+*": false, "net/x max 5m": false, "net/*": false, "net": false, "*": false,
		"net/X": false, "net/\\e[31m": false, "net/x, set house+pump": false,
	} {
		cfg, err := config.Parse("a.yaml", []byte("site: { name: a }\nagents: { a: { kind: named, point: \""+name+"\" } }"), nil)
		if err != nil {
			t.Fatal(err)
		}
		all, err := decode(cfg, kinds)
		if (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
		if ok && (len(all) != 1 || len(all[0].may) != 1) {
			t.Errorf("%q: %v", name, all[0].may)
		}
	}
}
