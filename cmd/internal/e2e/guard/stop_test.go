//go:build e2e

package guard

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// refuses fails unless a move is refused in those words.
func checkRefused(t *testing.T, r *harness.RelaySite, says string) {
	t.Helper()
	_, answer := r.Post(t, harness.ToolCall("switch_output", `{"output":"box/relay","on":true}`), "Mcp-Name", "switch_output")
	if !strings.Contains(answer, says) || r.State() != "off" {
		t.Errorf("the relay is %s, and a move says %s; want %s", r.State(), answer, says)
	}
}

func resetStop(t *testing.T, r *harness.RelaySite) {
	t.Helper()
	if out, err := r.CLI(t, "reset"); err != nil {
		t.Fatal(out, err)
	}
}

// TestStopButton: the guard's own button stops the outputs, whatever the site does.
func TestStopButton(t *testing.T) {
	button := filepath.Join(harness.TempDir(t), "pressed")
	press := func() { os.WriteFile(button, nil, 0o600) }
	release := func() { os.Remove(button) }
	config := "mushroom: { driver: sim, model: stop-button, every: 1s, pressed_file: " + button + " }"
	r := harness.StartRelay(t, config)
	t.Run("pressed", func(t *testing.T) {
		var all []time.Duration
		for range harness.Workload(20, 200) {
			all = append(all, harness.CheckDeadline(t, 100*time.Millisecond, func() time.Duration {
				r.SwitchOn(t)
				press()
				took := r.WaitForOff()
				release()
				return took
			}))
			checkRefused(t, r, "agentsite reset")
			resetStop(t, r)
		}
		harness.LogDurations(t, "pressed to safe", all)
	})

	t.Run("while the site stands still", func(t *testing.T) {
		var all []time.Duration
		for range harness.Workload(20, 200) {
			all = append(all, harness.CheckDeadline(t, 100*time.Millisecond, func() time.Duration {
				r.SwitchOn(t)
				r.Cmd.Process.Signal(syscall.SIGSTOP)
				defer r.Cmd.Process.Signal(syscall.SIGCONT)
				press()
				took := r.WaitForOff()
				release()
				return took
			}))
			checkRefused(t, r, "agentsite reset")
			resetStop(t, r)
		}
		harness.LogDurations(t, "pressed to safe", all)
	})

	t.Run("held", func(t *testing.T) {
		r.SwitchOn(t)
		press()
		r.WaitForOff()
		if out, err := r.CLI(t, "reset"); err == nil || !strings.Contains(err.Error(), "mushroom/pressed is pressed") {
			t.Errorf("%s %v", out, err)
		}
		checkRefused(t, r, "mushroom/pressed is pressed")
		harness.WaitFor(t, time.Minute, "whoever reads it sees it pressed", func() bool {
			_, answer := r.Post(t, harness.ToolCall("read_points", `{"points":["mushroom/pressed"]}`))
			return strings.Contains(answer, `"value":true`)
		})
	})

	t.Run("pressed while nobody is there", func(t *testing.T) {
		release()
		resetStop(t, r)
		r.Stop(t)
		press()
		r = harness.StartRelay(t, config)
		checkRefused(t, r, "mushroom/pressed is pressed")
		release()
		checkRefused(t, r, "emergency stop is latched")
		resetStop(t, r)
		r.SwitchOn(t)
	})
}

// TestStopSignal: SIGUSR1 is an emergency stop, for the site and for its guard.
func TestStopSignal(t *testing.T) {
	r := harness.StartRelay(t)
	stopped := func(t *testing.T) {
		checkRefused(t, r, "emergency stop is latched")
		resetStop(t, r)
		r.SwitchOn(t)
	}
	t.Run("the site", func(t *testing.T) {
		harness.CheckDeadline(t, 100*time.Millisecond, func() time.Duration {
			r.SwitchOn(t)
			r.Cmd.Process.Signal(syscall.SIGUSR1)
			took := r.WaitForOff()
			stopped(t)
			return took
		})
	})
	t.Run("the guard, while the site stands still", func(t *testing.T) {
		harness.CheckDeadline(t, 100*time.Millisecond, func() time.Duration {
			r.SwitchOn(t)
			r.Cmd.Process.Signal(syscall.SIGSTOP)
			syscall.Kill(r.Guard(t), syscall.SIGUSR1)
			took := r.WaitForOff()
			r.Cmd.Process.Signal(syscall.SIGCONT)
			stopped(t)
			return took
		})
	})
}

// TestGuardEnds: on SIGTERM the guard drives outputs to safe and ends, and the site starts another.
func TestGuardEnds(t *testing.T) {
	r := harness.StartRelay(t)
	harness.CheckDeadline(t, 100*time.Millisecond, func() time.Duration {
		r.SwitchOn(t)
		before := r.Guard(t)
		syscall.Kill(before, syscall.SIGTERM)
		took := r.WaitForOff()
		r.SwitchOn(t)
		if r.Guard(t) == before {
			t.Error("the guard has not ended")
		}
		return took
	})
	if strings.Contains(r.Log.String(), "was killed") || strings.Contains(r.Log.String(), "exit status") {
		t.Errorf("it did not end in order:\n%s", r.Log)
	}
}

// TestSafeBesideASite: agentsite safe does not wait for a site that runs, which goes on.
func TestSafeBesideASite(t *testing.T) {
	r := harness.StartRelay(t)
	harness.CheckDeadline(t, 2*time.Second, func() time.Duration {
		r.SwitchOn(t)
		begun := time.Now()
		if out, err := r.CLI(t, "safe"); err != nil || r.State() != "off" {
			t.Errorf("%s %v, and the relay is %s", out, err, r.State())
		}
		return time.Since(begun)
	})
	r.SwitchOn(t)
	if strings.Contains(r.Log.String(), "killed") {
		t.Errorf("the guard did not end in order:\n%s", r.Log)
	}
}
