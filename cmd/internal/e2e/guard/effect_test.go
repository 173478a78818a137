//go:build e2e

package guard

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/cmd/internal/e2e/harness"

	"github.com/go-json-experiment/json"
)

// TestEffect: a relay whose effect does not come is off after five seconds, and stays so over a restart until an owner's
// reset. A person is told of it, the journal has it, and each answer says how it is. One whose effect comes goes on.
func TestEffect(t *testing.T) {
	var mu sync.Mutex
	var told strings.Builder
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		io.Copy(&told, io.LimitReader(r.Body, 64<<10))
	}))
	defer hook.Close()
	config, witness := harness.RelayConfig(t,
		"house: { driver: sim, every: 1s }",
		"lamp: { driver: sim, model: relay, min_off: 0s, expect: { point: house/temperature, above: -100 Cel, within: 5s } }",
		"agents:",
		"notify: { to: { hook: { webhook: \""+hook.URL+"\" } } }")
	config = strings.Replace(config, "min_off: 0s",
		"min_off: 0s, expect: { point: house/temperature, above: 80 Cel, within: 5s, else: latch }", 1)
	config = strings.Replace(config, "  agents:\n  notify", "notify", 1)
	r := &harness.RelaySite{Site: harness.Start(t, config, harness.Need(t, "the program", harness.Program)), Witness: witness}

	says := func(output, want string) {
		t.Helper()
		harness.WaitFor(t, 20*time.Second, output+" is "+want,
			func() bool { return why(t, r.Site, output).Output.Effect == want })
	}
	moved := func(output string) (effect string, err error) {
		out, err := r.CLI(t, "set", output, "on", "--json")
		var now agents.Output
		if err == nil {
			err = json.Unmarshal([]byte(out), &now)
		}
		return now.Effect, err
	}
	var all []time.Duration
	for range harness.Workload(2, 20) {
		all = append(all, harness.CheckDeadline(t, 5200*time.Millisecond, func() time.Duration {
			r.CLI(t, "reset")
			if effect, err := moved("box/relay"); err != nil || effect != agents.EffectAwaited {
				t.Fatalf("the answer of the move says %q: %v", effect, err)
			}
			_, on := harness.ReadWitness(witness)
			r.WaitForOff()
			_, off := harness.ReadWitness(witness)
			return off.Sub(on)
		}))
	}
	harness.LogDurations(t, "from on to off without an effect", all)
	says("box/relay", agents.EffectFailed)
	if _, err := moved("lamp/relay"); err != nil {
		t.Fatal(err)
	}
	says("lamp/relay", agents.EffectConfirmed)
	latched := func(when string) {
		t.Helper()
		w := why(t, r.Site, "box/relay")
		if _, err := moved("box/relay"); err == nil || !w.Output.Latched || !strings.Contains(w.Refused, "agentsite reset") || r.State() != "off" {
			t.Errorf("%s: it is moved: %v, %+v %s", when, err, w.Output, w.Refused)
		}
	}
	latched("before")
	if out, _ := r.CLI(t, "doctor"); !strings.Contains(out, "box/relay") {
		t.Errorf("doctor does not say it:\n%s", out)
	}
	syscall.Kill(r.Guard(t), syscall.SIGKILL)
	harness.WaitFor(t, 20*time.Second, "the next guard answers",
		func() bool { _, err := moved("lamp/relay"); return err == nil })
	latched("after the guard was killed")
	if out, err := r.CLI(t, "reset"); err != nil {
		t.Fatal(out, err)
	}
	if effect, err := moved("box/relay"); err != nil || effect != agents.EffectAwaited {
		t.Errorf("after the reset the move says %q: %v", effect, err)
	}
	journal, _ := r.CLI(t, "journal")
	for _, word := range []string{"box/relay went to safe", "lamp/relay: confirmed", "reset"} {
		if !strings.Contains(journal, word) {
			t.Errorf("the journal does not say %q:\n%s", word, journal)
		}
	}
	harness.WaitFor(t, 30*time.Second, "somebody is told", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Contains(told.String(), `"kind":"effect"`) && strings.Contains(told.String(), "box/relay")
	})
}
