//go:build e2e

package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// TestLeaseOutlivesReloads: a lease goes on over ten reloads that bring, change and take
// away other outputs, and its output is not even written.
func TestLeaseOutlivesReloads(t *testing.T) {
	config, witness := harness.RelayConfig(t)
	r := &harness.RelaySite{Site: harness.Start(t, config, harness.Need(t, "the program", harness.Program)), Witness: witness}
	r.SwitchOn(t)
	guard := r.Guard(t)
	_, since := harness.ReadWitness(witness)
	var took []time.Duration
	for i := range 10 {
		more := ""
		if i%4 > 0 {
			more = fmt.Sprintf("  pump: { driver: sim, model: relay, max_on: %dm }\n", 1+i)
		}
		if i%4 == 3 {
			more += "  lamp: { driver: sim, model: dimmer }\n"
		}
		if err := os.WriteFile(filepath.Join(r.Folder, "agentsite.yaml"), []byte(config+more), 0o600); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if out, err := r.CLI(t, "reload"); err != nil {
			t.Fatal(out, err)
		}
		took = append(took, time.Since(begun))
		if more != "" {
			_, answer := r.Post(t, harness.ToolCall("switch_output", `{"output":"pump/relay","on":true,"for_seconds":1}`), "Mcp-Name", "switch_output")
			if !strings.Contains(answer, "rests at safe") {
				t.Errorf("what is new does not begin as after a start: %s", answer)
			}
		}
	}
	if value, at := harness.ReadWitness(witness); value != "on" || !at.Equal(since) {
		t.Errorf("the relay is %s, written %v after it was switched on", value, at.Sub(since))
	}
	if now := r.Guard(t); now != guard {
		t.Errorf("the guard is the process %d, and was %d", now, guard)
	}
	_, answer := r.Post(t, harness.ToolCall("switch_output", `{"output":"box/relay","on":true,"for_seconds":60}`), "Mcp-Name", "switch_output")
	if !strings.Contains(answer, harness.MovedField) {
		t.Errorf("its holder cannot renew it: %s", answer)
	}
	harness.LogDurations(t, "reload", took)
}

// TestNothingLeftByADeadGuard: outputs that a killed guard left on go off, although the site ends,
// or its configuration drops the output, before the next guard runs.
func TestNothingLeftByADeadGuard(t *testing.T) {
	for name, then := range map[string]func(t *testing.T, r *harness.RelaySite, config string){
		"the site ends": func(t *testing.T, r *harness.RelaySite, _ string) { r.Stop(t) },
		"a reload takes the output away": func(t *testing.T, r *harness.RelaySite, config string) {
			without := config[:strings.Index(config, "  box:")] + "  pump: { driver: sim, model: relay }\n"
			if err := os.WriteFile(filepath.Join(r.Folder, "agentsite.yaml"), []byte(without), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := r.CLI(t, "reload"); err != nil {
				t.Error(out, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range harness.Workload(2, 20) {
				config, witness := harness.RelayConfig(t)
				r := &harness.RelaySite{Site: harness.Start(t, config, harness.Need(t, "the program", harness.Program)), Witness: witness}
				r.SwitchOn(t)
				syscall.Kill(r.Guard(t), syscall.SIGKILL)
				then(t, r, config)
				if value := r.State(); value != "off" {
					t.Errorf("the relay is %s", value)
				}
			}
		})
	}
}
