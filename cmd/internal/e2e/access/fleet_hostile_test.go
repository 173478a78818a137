//go:build e2e

package access

import (
	"slices"
	"strings"
	"testing"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/node/identity"
)

// fleetCommands are the commands that call several sites, without --sites. HOLDER stands for somebody's key, YAML for
// a configuration.
var fleetCommands = [][]string{
	{"fleet"}, {
		"fleet", "status",
	}, {"fleet", "read"}, {"fleet", "read", "a/t"}, {"fleet", "doctor", "--all"}, {"fleet", "journal"},
	{
		"fleet", "backup", "OUT", "--passphrase-file", "YAML",
	}, {"fleet", "allow", "HOLDER", "read *"}, {"fleet", "allow", "HOLDER", "set a/t"},
	{
		"fleet", "revoke", "HOLDER",
	}, {"fleet", "apply", "YAML", "--keep-going"}, {"fleet", "apply", "YAML", "--dry-run"}, {"fleet", "update"},
	{
		"fleet", "update", "--check",
	}, {"fleet", "realm", "new", "farm", "--keep-going"}, {"fleet", "realm", "join", "public", "--dry-run"},
}

// TestFleetHostile runs the fleet's commands at a compromised site and at one that is not there. No row of the table is
// long, and none has what a terminal interprets. It takes more than 20 s: some sites do not answer, sixteen times.
func TestFleetHostile(t *testing.T) {
	for _, how := range []string{asAnother, asItself, refusing, failing, mistyped, endless, silent, stuck} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			l := &liar{how: how, key: identity.New(), victim: identity.New().ID()}
			at := harness.ServeAs(t, l.key, l.serve)
			for i, w := range fleetCommands {
				t.Run(strings.Join(w, " "), func(t *testing.T) {
					t.Parallel()
					said := l.against(t, at, append(slices.Clone(w), "--timeout", "3s"), i%5 == 4)
					for line := range strings.Lines(said) {
						if i%5 != 4 && len(line) > 8<<10 {
							t.Errorf("a row has %d bytes: %.200s", len(line), line)
						}
					}
					if i%5 != 4 && !strings.Contains(said, "boiler") && !slices.Contains(w, "realm") {
						t.Errorf("the other site has no row:\n%s", said)
					}
				})
			}
		})
	}
}
