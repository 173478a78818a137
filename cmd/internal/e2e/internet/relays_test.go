//go:build e2e && linux

package internet

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/discovery/bed"
)

// TestInternetTwoRelays: a site behind a router has places at two relays. A person, who knows the
// site by one of these, and her agent reach it while that relay is dead, away, hung or slow, within
// a second more than while both are there.
func TestInternetTwoRelays(t *testing.T) {
	w := newTwoRelays(t)
	const tries = 3
	usual := make(map[string]time.Duration)
	check := func(state string) {
		t.Helper()
		for _, way := range w.ways() {
			var took []time.Duration
			for range tries {
				took = append(took, w.reach(t, state, way))
			}
			fastest := slices.Min(took)
			t.Logf("%s, %s: %v", state, way.name, took)
			if usual[way.name] == 0 {
				usual[way.name] = fastest
			}
			if more := fastest - usual[way.name]; more > time.Second {
				t.Errorf("%s: %s takes %v more than with both relays", state, way.name, more)
			}
		}
	}
	check("both")
	w.running(t)

	signal := func(s syscall.Signal) { _ = w.relay.Cmd.Process.Signal(s) }
	signal(syscall.SIGSTOP)
	check("one hung")
	signal(syscall.SIGCONT)

	slow, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { // it works for a tenth of the time
		defer close(ended)
		for slow.Err() == nil {
			signal(syscall.SIGSTOP)
			time.Sleep(900 * time.Millisecond)
			signal(syscall.SIGCONT)
			time.Sleep(100 * time.Millisecond)
		}
	}()
	check("one slow")
	stop()
	<-ended

	w.IP(w.relay.Host, "link set eth0 down")
	check("one away")
	w.IP(w.relay.Host, "link set eth0 up")

	w.relay.Kill()
	check("one dead")
}

// running has a running agentsite connect read and move while the relay that it goes over hangs or is
// away: each call is answered within 2.5 s more than before, also when the old connection ends.
func (w *twoRelays) running(t *testing.T) {
	seconds := 30
	for name, disturb := range map[string]func(of *harness.PublicRelay) (undo func()){
		"hangs": func(of *harness.PublicRelay) func() {
			_ = of.Cmd.Process.Signal(syscall.SIGSTOP)
			return func() { _ = of.Cmd.Process.Signal(syscall.SIGCONT) }
		},
		"away": func(of *harness.PublicRelay) func() {
			w.IP(of.Host, "link set eth0 down")
			return func() { w.IP(of.Host, "link set eth0 up") }
		},
	} {
		l := w.copyOf(t, w.ann)
		m := harness.ConnectSDK(t, l.Command(t.Context(), "connect", w.peer), "2026-07-28")
		call := func(tool string, args map[string]any, want string) time.Duration {
			t.Helper()
			begun := time.Now()
			said := m.Call(t, tool, args)
			took := time.Since(begun).Round(10 * time.Millisecond)
			if !strings.Contains(said, want) {
				t.Errorf("own relay %s: %s answers after %v: %s", name, tool, took, said)
			}
			return took
		}
		read := func() time.Duration {
			t.Helper()
			return call("read_points", map[string]any{"points": []string{"shed/den/temperature"}}, `"good"`)
		}
		w.from.Sent(w.relay.IP)
		usual := read()
		before := w.from.Sent(w.relay.IP)
		for range 20 {
			usual = max(usual, read())
		}
		own := &w.relay
		if w.from.Sent(w.relay.IP)-before < 20 {
			own = &w.other
		}
		undo := disturb(own)
		seconds++ // another key
		first := call("switch_output", map[string]any{"output": "shed/lamp/relay", "on": true, "for_seconds": seconds}, `"value":true`)
		longest := time.Duration(0)
		for begun := time.Now(); time.Since(begun) < 8*time.Second; {
			longest = max(longest, read())
		}
		undo()
		t.Logf("own relay %s: a move takes %v, and a read after it at most %v; %v before", name, first, longest, usual)
		if more := max(first, longest) - usual; more > 2500*time.Millisecond {
			t.Errorf("own relay %s: a running connect takes %v more", name, more)
		}
		m.Close()
	}
}

// twoRelays is a world with a site behind a router and two relays that have places for it.
type twoRelays struct {
	*way
	other harness.PublicRelay
}

func newTwoRelays(t *testing.T) *twoRelays {
	t.Helper()
	w := &twoRelays{way: &way{far: newFar(t), owner: harness.NewPerson(t)}}
	w.other.Host, w.other.IP = w.Public()
	w.other.Folder = harness.TempDir(t)
	w.other.Start(t)
	w.other.Kill() // until the owner and her agent have stored where the site is
	w.relay.Addresses = slices.Concat(w.relay.Addresses, w.other.Addresses)
	w.realm = w.newRealm(t, "home")
	w.home, w.from = w.Home(bed.Symmetric), w.Home(bed.Symmetric)
	w.site = w.far.site(t, w.home.Host())
	w.peer = "--peer=" + w.site.DID(t)
	w.ann = w.laptop(t, w.from.Host(), w.owner)
	harness.WaitFor(t, time.Minute, "the site is claimed", func() bool {
		_, err := w.ann.CLI(t, "claim", w.site.Invitation(t).String())
		return err == nil
	})
	w.ann.MustCLI(t, "agents", "allow")
	if at := w.ann.Addresses(t, "shed"); slices.ContainsFunc(at, func(a string) bool { return strings.Contains(a, w.other.IP) }) {
		t.Fatalf("the owner knows the other relay: %q", at)
	}
	w.other.Start(t)
	harness.WaitFor(t, time.Minute, "the site has a place at the other relay", func() bool {
		all := w.copyOf(t, w.ann).Find(t)
		return len(all) == 1 && slices.ContainsFunc(all[0].URLs, func(a string) bool { return strings.Contains(a, w.other.IP) })
	})
	return w
}

// reachWay is a command that reaches the site, and its name.
type reachWay struct {
	name string
	run  func(t *testing.T, l harness.Laptop) bool
}

func (w *twoRelays) ways() []reachWay {
	read := func(t *testing.T, l harness.Laptop, site string) bool {
		out, err := l.CLI(t, site, "read", "den/temperature")
		if err != nil {
			t.Log(err)
		}
		return err == nil && strings.Contains(out, "°C")
	}
	return []reachWay{
		{"--site", func(t *testing.T, l harness.Laptop) bool { return read(t, l, "--site=shed") }},
		{"--peer", func(t *testing.T, l harness.Laptop) bool { return read(t, l, w.peer) }},
		{"--peer, from where only its key is known", func(t *testing.T, l harness.Laptop) bool {
			return read(t, w.laptop(t, l.Host, w.owner), w.peer)
		}},
		{"connect", func(t *testing.T, l harness.Laptop) bool {
			m := harness.ConnectSDK(t, l.Command(t.Context(), "connect", w.peer), "2026-07-28")
			defer m.Close()
			said := m.Call(t, "read_points", map[string]any{"points": []string{"shed/den/temperature"}})
			if !strings.Contains(said, `"good"`) {
				t.Log(said)
			}
			return strings.Contains(said, `"good"`)
		}},
	}
}

// reach reaches the site by a way, from a laptop that has stored only the relay that is disturbed,
// and returns how long that takes.
func (w *twoRelays) reach(t *testing.T, state string, by reachWay) time.Duration {
	t.Helper()
	l := w.copyOf(t, w.ann)
	begun := time.Now()
	if !by.run(t, l) {
		t.Errorf("%s: %s does not reach the site, after %v", state, by.name, time.Since(begun).Round(10*time.Millisecond))
	}
	return time.Since(begun).Round(10 * time.Millisecond)
}

// copyOf returns a laptop on the same host with a copy of the folder.
func (w *twoRelays) copyOf(t *testing.T, l harness.Laptop) harness.Laptop {
	t.Helper()
	folder := filepath.Join(harness.TempDir(t), "config")
	harness.MustRun(t, "cp", "-a", l.Folder, folder)
	return harness.Laptop{Host: l.Host, Folder: folder}
}
