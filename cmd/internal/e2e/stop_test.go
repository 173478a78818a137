//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// refuses fails unless a move is refused in those words.
func (r *relay) refuses(t *testing.T, says string) {
	t.Helper()
	_, answer := r.post(t, call("switch_output", `{"output":"box/relay","on":true}`), "Mcp-Name", "switch_output")
	if !strings.Contains(answer, says) || r.shows() != "off" {
		t.Errorf("the relay is %s, and a move says %s; want %s", r.shows(), answer, says)
	}
}

func (r *relay) reset(t *testing.T) {
	t.Helper()
	if out, err := r.agentsite(t, "reset"); err != nil {
		t.Fatal(out, err)
	}
}

// TestStopButton: the guard's own button stops the outputs, whatever the site does.
func TestStopButton(t *testing.T) {
	button := filepath.Join(folder(t), "pressed")
	press := func() { os.WriteFile(button, nil, 0o600) }
	release := func() { os.Remove(button) }
	config := "mushroom: { driver: sim, model: stop-button, every: 1s, pressed_file: " + button + " }"
	r := startRelay(t, config)
	t.Run("pressed", func(t *testing.T) {
		var all []time.Duration
		for range times(20) {
			all = append(all, within(t, 100*time.Millisecond, func() time.Duration {
				r.on(t)
				press()
				took := r.off()
				release()
				return took
			}))
			r.refuses(t, "agentsite reset")
			r.reset(t)
		}
		told(t, "pressed to safe", all)
	})

	t.Run("while the site stands still", func(t *testing.T) {
		var all []time.Duration
		for range times(20) {
			all = append(all, within(t, 100*time.Millisecond, func() time.Duration {
				r.on(t)
				r.Cmd.Process.Signal(syscall.SIGSTOP)
				defer r.Cmd.Process.Signal(syscall.SIGCONT)
				press()
				took := r.off()
				release()
				return took
			}))
			r.refuses(t, "agentsite reset")
			r.reset(t)
		}
		told(t, "pressed to safe", all)
	})

	t.Run("held", func(t *testing.T) {
		r.on(t)
		press()
		r.off()
		if out, err := r.agentsite(t, "reset"); err == nil || !strings.Contains(err.Error(), "mushroom/pressed is pressed") {
			t.Errorf("%s %v", out, err)
		}
		r.refuses(t, "mushroom/pressed is pressed")
		until(t, time.Minute, "whoever reads it sees it pressed", func() bool {
			_, answer := r.post(t, call("read_points", `{"points":["mushroom/pressed"]}`))
			return strings.Contains(answer, `"value":true`)
		})
	})

	t.Run("pressed while nobody is there", func(t *testing.T) {
		release()
		r.reset(t)
		r.Stop(t)
		press()
		r = startRelay(t, config)
		r.refuses(t, "mushroom/pressed is pressed")
		release()
		r.refuses(t, "emergency stop is latched")
		r.reset(t)
		r.on(t)
	})
}

// TestStopSignal: SIGUSR1 is an emergency stop, for the site and for its guard.
func TestStopSignal(t *testing.T) {
	r := startRelay(t)
	stopped := func(t *testing.T) {
		r.refuses(t, "emergency stop is latched")
		r.reset(t)
		r.on(t)
	}
	t.Run("the site", func(t *testing.T) {
		within(t, 100*time.Millisecond, func() time.Duration {
			r.on(t)
			r.Cmd.Process.Signal(syscall.SIGUSR1)
			took := r.off()
			stopped(t)
			return took
		})
	})
	t.Run("the guard, while the site stands still", func(t *testing.T) {
		within(t, 100*time.Millisecond, func() time.Duration {
			r.on(t)
			r.Cmd.Process.Signal(syscall.SIGSTOP)
			syscall.Kill(r.guard(t), syscall.SIGUSR1)
			took := r.off()
			r.Cmd.Process.Signal(syscall.SIGCONT)
			stopped(t)
			return took
		})
	})
}

// TestGuardEnds: SIGTERM has the guard go to safe and end, and the site starts another.
func TestGuardEnds(t *testing.T) {
	r := startRelay(t)
	within(t, 100*time.Millisecond, func() time.Duration {
		r.on(t)
		before := r.guard(t)
		syscall.Kill(before, syscall.SIGTERM)
		took := r.off()
		r.on(t)
		if r.guard(t) == before {
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
	r := startRelay(t)
	within(t, 2*time.Second, func() time.Duration {
		r.on(t)
		begun := time.Now()
		if out, err := r.agentsite(t, "safe"); err != nil || r.shows() != "off" {
			t.Errorf("%s %v, and the relay is %s", out, err, r.shows())
		}
		return time.Since(begun)
	})
	r.on(t)
	if strings.Contains(r.Log.String(), "killed") {
		t.Errorf("the guard did not end in order:\n%s", r.Log)
	}
}
