//go:build e2e

package protocols

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// TestOpenAPIDocuments: linters, schemas and clients of others take the documents of each reader. The
// schema of agents.json is the published one, which testdata/agents-json.json is
// (wild-card-ai/agents-json, Apache License 2.0).
func TestOpenAPIDocuments(t *testing.T) {
	r := harness.Start(t, `site: { name: zorilla }
devices:
  greenhouse: { driver: sim, every: 1s, points: { vent: { min_off: 0s } } }
agents:
  airing: { kind: routine, may: set greenhouse/vent, description: lets air in, steps: [ { set: { greenhouse/vent: 20 }, for: 100ms } ] }
`, harness.Need(t, "the program", harness.Program))
	harness.WaitFor(t, time.Minute, "the routine can be asked", func() bool {
		out, err := r.CLI(t, "call", "ask_agent", "{}")
		return err == nil && strings.Contains(out, "airing")
	})
	small, _ := r.AddToken(t, "small", "read greenhouse/temperature+greenhouse/vent, set greenhouse/vent")
	schema, err := os.ReadFile("testdata/agents-json.json")
	if err != nil {
		t.Fatal(err)
	}
	t.Log(script(t, 3*time.Minute, "openapi_documents.mjs", r.URL, string(schema), r.Token, small))
}

// TestOpenAPIFuzz: no request generated from the document makes the site fail, all answers match
// the document, and outputs without the caller's permission do not move.
func TestOpenAPIFuzz(t *testing.T) {
	witness := filepath.Join(harness.TempDir(t), "witness")
	r := harness.Start(t, `site: { name: zorilla }
devices:
  greenhouse: { driver: sim, every: 1s, points: { vent: { min_off: 0s }, heater: { min_off: 0s }, pump: { min_off: 0s, confirm: owner }, lamp: { min_off: 0s } } }
  bystander: { driver: sim, model: relay, min_off: 0s, outputs_file: `+witness+` }
agents:
  airing: { kind: routine, may: set greenhouse/lamp, steps: [ { set: { greenhouse/lamp: on }, for: 10ms } ] }
  other: { kind: routine, may: set bystander, steps: [ { set: { bystander/relay: on }, for: 1m } ] }
`, harness.Need(t, "the program", harness.Program))
	token, _ := r.AddToken(t, "fuzz", "read greenhouse, set greenhouse/vent+greenhouse/heater+greenhouse/pump+greenhouse/lamp, show greenhouse, capture greenhouse, ask airing")
	value, since := harness.ReadWitness(witness)
	seed := time.Now().UnixNano() & 0x7fffffff
	t.Logf("seed %d", seed)
	t.Log(script(t, harness.Workload(5*time.Minute, 30*time.Minute), "openapi_fuzz.mjs", r.URL, token, strconv.Itoa(harness.Workload(10_000, 100_000)), strconv.FormatInt(seed, 10)))
	if v, at := harness.ReadWitness(witness); v != "off" || v != value || at != since {
		t.Errorf("an output that the caller may not move was %s since %v, and is %s since %v", value, since, v, at)
	}
	out, err := r.CLI(t, "journal")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out) {
		if strings.Contains(line, " switch_output ") && strings.Contains(line, "greenhouse/pump") && !strings.Contains(line, "refused") {
			t.Errorf("what an owner has to approve was moved: %s", line)
		}
	}
	if log := r.Log.String(); strings.Contains(log, "level=ERROR") {
		t.Errorf("the site logged an error:\n%s", log)
	}
}
