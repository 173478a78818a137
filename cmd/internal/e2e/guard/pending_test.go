//go:build e2e

package guard

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// ask is one call, which may fail or be given up.
func askSite(r *harness.Site, wait time.Duration, tool, args string) (answer string, err error) {
	return askSiteIn(r, context.Background(), wait, tool, args)
}

func askSiteIn(r *harness.Site, ctx context.Context, wait time.Duration, tool, args string) (answer string, err error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", r.URL+"/mcp", strings.NewReader(harness.ToolCall(tool, args)))
	if err != nil {
		return "", err
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + r.Token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool,
	} {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return string(b), err
}

// askAndLeave asks and does not wait for the answer. It reports whether the site has the
// whole call.
func askAndLeave(r *harness.Site, after time.Duration, tool string) (asked bool) {
	var wrote atomic.Bool
	trace := &httptrace.ClientTrace{WroteRequest: func(i httptrace.WroteRequestInfo) { wrote.Store(i.Err == nil) }}
	askSiteIn(r, httptrace.WithClientTrace(context.Background(), trace), after, tool, "{}")
	return wrote.Load()
}

// holds reports whether moves are refused because of an emergency stop, once the outputs
// answer. One that nobody has answered yet has a quarter of a minute.
func holdsRelay(t *testing.T, r *harness.RelaySite, answered bool) bool {
	t.Helper()
	answer, begun := "", time.Now()
	for time.Since(begun) < time.Minute {
		answer, _ = askSite(r.Site, 10*time.Second, "switch_output", `{"output":"box/relay","on":true,"for_seconds":30}`)
		switch {
		case strings.Contains(answer, "emergency stop is latched"):
			return true
		case strings.Contains(answer, harness.MovedField) && (answered || time.Since(begun) > 15*time.Second):
			return false
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("moves are neither made nor refused: %s\n%s", answer, r.Log)
	return false
}

// TestStopsHold: an emergency stop holds, also for the next guard and the next site, whatever
// happens to the site, its guard and its disk at that moment, and however it was requested.
func TestStopsHold(t *testing.T) {
	site := harness.Need(t, "the program", harness.Program)
	if !harness.InMountNamespace(t) {
		return
	}
	data, dir := harness.TempDir(t), harness.TempDir(t)
	t.Setenv("RUNTIME_DIRECTORY", dir)
	harness.MustRun(t, "mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "none", data)
	t.Cleanup(func() { harness.MustRun(t, "umount", "--lazy", data) })
	button, witness := filepath.Join(dir, "pressed"), filepath.Join(dir, "outputs")
	config := func(more string) string {
		return "site: { name: stops }\ndevices:\n  box: { driver: sim, model: relay, min_off: 0s, outputs_file: " + witness + " }\n" +
			"  mushroom: { driver: sim, model: stop-button, every: 1s, pressed_file: " + button + " }\n" + more
	}
	r := &harness.RelaySite{Site: harness.StartIn(t, data, config(""), nil, site), Witness: witness}
	n, seed := 0, uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	reload := func(more string) {
		os.WriteFile(filepath.Join(data, "agentsite.yaml"), []byte(config(more)), 0o600)
		r.Cmd.Process.Signal(syscall.SIGHUP)
	}
	again := func() {
		r = &harness.RelaySite{Site: harness.StartIn(t, data, config(""), nil, site), Witness: witness}
	}
	events := []struct {
		name string
		do   func()
	}{
		{"nothing", func() {}},
		{"the guard is killed", func() { syscall.Kill(r.Guard(t), syscall.SIGKILL) }},
		{"the guard starts", func() { // after a pause
			syscall.Kill(r.Guard(t), syscall.SIGKILL)
			time.Sleep(time.Duration(90+random.IntN(80)) * time.Millisecond)
		}},
		{"the guard is frozen", func() { syscall.Kill(r.Guard(t), syscall.SIGSTOP) }},
		{"the guard is replaced", func() {
			reload(fmt.Sprintf("  other: { driver: sim, model: stop-button, pressed_file: %s/never%d }\n", dir, n))
		}},
		{"the plan is changed", func() { reload(fmt.Sprintf("  r%d: { driver: sim, model: relay }\n", n)) }},
		{"the button is pressed", func() {
			os.WriteFile(button, nil, 0o600)
			time.Sleep(time.Duration(random.IntN(30)) * time.Millisecond)
			os.Remove(button)
		}},
		{"the site is killed", func() { r.Cmd.Process.Kill() }},
		{"the disk is full", func() { harness.FillDisk(t, data) }},
	}
	lost, asked := map[string]int{}, 0
	for n = range harness.Workload(27, 1000) {
		event := events[n%len(events)]
		before, after := time.Duration(random.IntN(200))*time.Millisecond, time.Duration(random.IntN(20))*time.Millisecond
		if n%3 > 0 { // the guard is driving something
			r.SwitchOn(t)
		}
		event.do()
		if event.name != "the guard starts" { // else it is late already
			time.Sleep(before)
		}
		stopped, how := false, "by signal"
		switch n / len(events) % 3 {
		case 0:
			stopped = r.Cmd.Process.Signal(syscall.SIGUSR1) == nil
		case 1:
			how = "by a call"
			answer, err := askSite(r.Site, 20*time.Second, "emergency_stop", "{}")
			stopped = err == nil && strings.Contains(answer, `"emergency_stop":true`)
		case 2:
			how = "by a caller that leaves"
			stopped = askAndLeave(r.Site, 200*time.Millisecond, "emergency_stop") && event.name != "the site is killed"
		}
		time.Sleep(after)
		if event.name == "the site is killed" {
			<-r.Ended
			r.Cmd.Process = nil
			again()
			stopped = stopped && how == "by a call" // the others are not answered
		}
		if stopped {
			asked++
			what := event.name + ", " + how
			if !holdsRelay(t, r, how == "by a call") {
				lost[what]++
			} else if n%4 == 0 {
				syscall.Kill(r.Guard(t), syscall.SIGKILL)
				if !holdsRelay(t, r, true) {
					lost[what+", in the next guard"]++
				}
			} else if n%16 == 1 {
				r.Kill(t)
				again()
				if !holdsRelay(t, r, true) {
					lost[what+", in the next site"]++
				}
			}
		}
		os.Remove(filepath.Join(data, "filler"))
		harness.WaitFor(t, time.Minute, "the owner's reset", func() bool {
			_, err := r.CLI(t, "reset")
			return err == nil
		})
	}
	t.Logf("%d stops", asked)
	if len(lost) > 0 {
		t.Errorf("lost, with the seed %d: %v", seed, lost)
	}
}
