//go:build e2e

package guard

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// try is post where the site may end in the middle; ok is false where no answer came.
func tryCall(r *harness.Site, body, tool string) (answer string, ok bool) {
	req, err := http.NewRequest("POST", r.URL+"/mcp", strings.NewReader(body))
	if err != nil {
		return "", false
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + r.Token, "Content-Type": "application/json", "Mcp-Protocol-Version": "2026-07-28",
		"Mcp-Method": "tools/call", "Mcp-Name": tool,
	} {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", false
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return string(b), err == nil && res.StatusCode == 200
}

// TestKilledActsOnce kills the site while callers move a relay each, again and again.
// Whatever they were told, asking again with the same key moves nothing that has moved.
// The witness is a file for each relay that has every value it was driven to.
func TestKilledActsOnce(t *testing.T) {
	const callers = 3
	dir, data := harness.TempDir(t), harness.TempDir(t)
	config := "site: { name: once }\ndevices:\n"
	for i := range callers {
		config += fmt.Sprintf("  r%d: { driver: sim, model: relay, min_off: 0s, max_on: unlimited, outputs_file: %s/%[1]d }\n", i, dir)
	}
	shows := func(i int) string { v, _ := harness.ReadWitness(filepath.Join(dir, fmt.Sprint(i))); return v }
	for i := range callers {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i, ".log")), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// went counts how often a relay went on.
	went := func(i int) (n int) {
		b, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(i, ".log")))
		if err != nil {
			t.Fatal(err)
		}
		was := "off"
		for line := range strings.Lines(string(b)) {
			now := strings.Fields(line)[1]
			if now == "on" && was == "off" {
				n++
			}
			was = now
		}
		return n
	}
	prog := harness.Need(t, "the program", harness.Program)
	begin := func() *harness.Site {
		r := harness.StartIn(t, data, config, nil, prog)
		harness.WaitFor(t, 30*time.Second, "all relays are known to be off", func() bool {
			answer, ok := tryCall(r, harness.ToolCall("read_points", `{}`), "read_points")
			return ok && strings.Count(answer, `"value":false,`) == callers
		})
		return r
	}
	r := begin()
	told := make(map[string]bool)                     // keys whose call was answered with success
	var answered, acted, unknown, begun, replayed int // what came of all rounds
	for round := range harness.Workload(50, 500) {
		var before [callers]int
		var first [callers]string
		for i := range callers {
			harness.WaitFor(t, 20*time.Second, "the relays are off", func() bool { return shows(i) == "off" })
			before[i] = went(i)
		}
		key := func(i int) string { return fmt.Sprintf("k%d-%d", round, i) }
		var calling sync.WaitGroup
		for i := range callers {
			calling.Go(func() {
				first[i], _ = tryCall(r, harness.KeyedMove(fmt.Sprintf("r%d/relay", i), key(i)), "switch_output")
			})
		}
		time.Sleep(rand.N(time.Millisecond << rand.N(6))) // up to 32 ms, and mostly soon
		r.Cmd.Process.Kill()
		<-r.Ended
		r.Cmd.Process = nil
		calling.Wait()
		var moved [callers]bool
		for i := range callers {
			harness.WaitFor(t, 20*time.Second, "the relays go off", func() bool { return shows(i) == "off" })
		}

		r = begin()
		for i := range callers {
			output, key := fmt.Sprintf("r%d/relay", i), key(i)
			now := went(i)
			moved[i] = now > before[i]
			var again string
			harness.WaitFor(t, 30*time.Second, "an answer that lasts", func() bool {
				var ok bool
				again, ok = tryCall(r, harness.KeyedMove(output, key), "switch_output")
				return ok && !strings.Contains(again, `"agentsite/fault":"unavailable"`) && !strings.Contains(again, `"agentsite/fault":"offline"`)
			})
			done, lost := strings.Contains(again, harness.MovedField), strings.Contains(again, `"agentsite/fault":"unknown_outcome"`)
			movedNow := went(i) > now
			switch {
			case !done && !lost:
				t.Errorf("%s %s: %s", output, key, again)
			case moved[i] && movedNow:
				t.Errorf("%s %s moved twice: first %q, then %q", output, key, first[i], again)
			case strings.Contains(first[i], harness.MovedField) && !done:
				t.Errorf("%s %s was answered %q and is now %s", output, key, first[i], again)
			case done && !moved[i] && !movedNow:
				t.Errorf("%s %s never moved, and is said to: %s", output, key, again)
			case lost && movedNow:
				t.Errorf("%s %s moved, and nobody is to know: %s", output, key, again)
			}
			if strings.Contains(first[i], harness.MovedField) {
				answered++
			}
			if moved[i] {
				acted++
			}
			switch {
			case lost:
				unknown++
			case movedNow:
				begun++
			default:
				replayed++
			}
			told[fmt.Sprint(output, " ", key)] = done
			if shows(i) == "on" {
				r.Post(t, harness.ToolCall("release_output", fmt.Sprintf(`{"output":%q}`, output)), "Mcp-Name", "release_output")
			}
			now = went(i)
			if third, _ := tryCall(r, harness.KeyedMove(output, key), "switch_output"); strings.Contains(third, harness.MovedField) != done {
				t.Errorf("%s %s: %q, and the third time %s", output, key, again, third)
			}
			if shows(i) != "off" || went(i) != now {
				t.Errorf("%s %s: the third call moved it", output, key)
			}
		}
	}
	t.Logf("%d kills, %d calls: %d were answered before, %d had moved; asked again, %d were told so, %d were not known, %d moved then",
		harness.Workload(50, 500), harness.Workload(50, 500)*callers, answered, acted, replayed, unknown, begun)
	if acted == 0 || replayed == 0 || begun+unknown == 0 {
		t.Error("the kills came at one moment only: this shows too little")
	}
	if out, err := r.CLI(t, "journal", "--verify"); err != nil || !strings.Contains(out, "unchanged") {
		t.Errorf("%s %v", out, err)
	}
	out, err := r.CLI(t, "journal", "--json", "--limit", "1000000")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out) {
		var e struct {
			Key, Outcome string
			Arguments    struct{ Output string }
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if e.Key != "" && e.Outcome == "done" {
			delete(told, e.Arguments.Output+" "+e.Key)
		}
	}
	for what, done := range told {
		if done {
			t.Errorf("%s was made, and the journal does not say so", what)
		}
	}
}
