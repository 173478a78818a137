//go:build e2e && linux

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/discovery/bed"
	"agentsite/node/state"
)

// What the network has to do within a time is printed, and fails at thirty times that: no
// output depends on it, and machines are busy.

// startOn starts a site on a host, which listens there for the network.
func startOn(t testing.TB, host, data, name string, more ...string) *running {
	t.Helper()
	config := "site: { name: " + name + " }\ndevices:\n  climate: { driver: sim, model: climate }\n" + strings.Join(more, "\n") + "\n"
	return startIn(t, data, config, nil, append(bed.On(host, need(t, "the program", program)), "run", "--listen-https", ":8474")...)
}

// did is the site's identity.
func (r *running) did(t testing.TB) string {
	t.Helper()
	id, err := state.Folder(r.Folder).Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id.DID
}

// laptop is somebody with a key and a command line on a host.
type laptop struct{ host, folder string }

func (l laptop) command(ctx context.Context, args ...string) *exec.Cmd {
	argv := bed.On(l.host, append([]string{program}, args...)...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+l.folder)
	return cmd
}

// agentsite runs a command, and returns what it printed.
func (l laptop) agentsite(t testing.TB, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	cmd := l.command(ctx, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.String())
	}
	return string(out), err
}

// must is agentsite for what has to go well.
func (l laptop) must(t testing.TB, args ...string) string {
	t.Helper()
	out, err := l.agentsite(t, args...)
	if err != nil {
		t.Fatal(args, err)
	}
	return out
}

// claim makes the laptop's user own a site, by the address that it shows.
func (l laptop) claim(t testing.TB, r *running, name string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.Folder, "agentsite-claim.txt"))
	if err != nil {
		t.Fatal(err)
	}
	l.must(t, "claim", shown.FindString(string(text)), "--name", name)
}

// reads reports whether the laptop reads the site, and how long that took it. What it says
// otherwise is logged.
func (l laptop) reads(t testing.TB, name string) (time.Duration, bool) {
	t.Helper()
	begun := time.Now()
	out, err := l.agentsite(t, "--site", name, "read", "climate/temperature")
	if err != nil {
		t.Logf("%s after %v: %v", name, time.Since(begun).Round(time.Millisecond), err)
	}
	return time.Since(begun), err == nil && strings.Contains(out, "°C")
}

// knows is where the laptop takes a site to be, the best first.
func (l laptop) knows(t testing.TB, name string) []string {
	t.Helper()
	for line := range strings.Lines(l.must(t, "sites", "--json")) {
		var k peer.Contact
		if err := json.Unmarshal([]byte(line), &k); err != nil {
			t.Fatal(err)
		}
		if k.Name == name {
			return k.Addresses
		}
	}
	t.Fatalf("%s is not known", name)
	return nil
}

// seen is a line of agentsite discover --watch --json.
type seen struct {
	Change, Name, DID string
	URLs              []string
	Known             string `json:"known_as"`
	Public            []struct {
		Kind   string
		Points []string
	}
}

// watching is agentsite discover --watch.
type watching struct {
	t     testing.TB
	cmd   *exec.Cmd
	begun time.Time
	lines chan seen
	end   context.CancelFunc
}

func (l laptop) watch(t testing.TB) *watching {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &watching{t: t, cmd: l.command(ctx, "discover", "--watch", "--json"), lines: make(chan seen, 1000)}
	w.cmd.Cancel = func() error { return w.cmd.Process.Signal(os.Interrupt) }
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.cmd.Stderr = os.Stderr
	w.begun = time.Now()
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(w.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			var e seen
			if err := json.Unmarshal(s.Bytes(), &e); err != nil {
				t.Errorf("%v in %s", err, s.Bytes())
			}
			w.lines <- e
		}
	}()
	w.end = func() {
		cancel()
		for range w.lines {
		}
		w.cmd.Wait()
	}
	t.Cleanup(w.end)
	return w
}

// await waits for a line, and returns it and how long that took.
func (w *watching) await(within time.Duration, what string, is func(seen) bool) (seen, time.Duration) {
	w.t.Helper()
	begun, end := time.Now(), time.After(within)
	for {
		select {
		case e, ok := <-w.lines:
			if !ok {
				w.t.Fatalf("%s: discover ended", what)
			}
			if is(e) {
				return e, time.Since(begun)
			}
		case <-end:
			w.t.Fatalf("%s: not within %v", what, within)
		}
	}
}

// all waits until each of the sites was found, and returns how long that took from the
// start of the command.
func (w *watching) all(within time.Duration, dids ...string) time.Duration {
	w.t.Helper()
	left := slices.Clone(dids)
	w.await(within, fmt.Sprintf("%d sites are found", len(dids)), func(e seen) bool {
		if e.Change == "appeared" {
			left = slices.DeleteFunc(left, func(did string) bool { return did == e.DID })
		}
		return len(left) == 0
	})
	return time.Since(w.begun)
}

func gone(did string) func(seen) bool {
	return func(e seen) bool { return e.Change == "gone" && e.DID == did }
}

// at reports whether a site is seen at an address.
func at(did, address string) func(seen) bool {
	return func(e seen) bool {
		return e.DID == did && slices.ContainsFunc(e.URLs, func(u string) bool { return strings.Contains(u, address) })
	}
}

// TestLANFound: three sites and a laptop on one bridge.
func TestLANFound(t *testing.T) {
	t.Parallel()
	b := bed.New(t)
	l := laptop{b.Host("10.77.0.100/24"), folder(t)}
	var dids []string
	for i := range 3 {
		r := startOn(t, b.Host(fmt.Sprintf("10.77.0.%d/24", i+1)), folder(t), fmt.Sprintf("site-%d", i+1))
		dids = append(dids, r.did(t))
	}
	var took []time.Duration
	for range times(20) {
		w := l.watch(t)
		took = append(took, w.all(30*time.Second, dids...))
		w.end()
	}
	told(t, "from the start of discover --watch until three sites are found (at most 1 s)", took)
	out := l.must(t, "discover")
	for i, did := range dids {
		if !strings.Contains(out, did) || !strings.Contains(out, fmt.Sprintf("https://10.77.0.%d:8474/mcp", i+1)) || strings.Count(out, "not yours") != 3 {
			t.Errorf("discover says\n%s", out)
		}
	}
}

// TestLANLives: sites are claimed, move, lose their cables, and are stopped.
func TestLANLives(t *testing.T) {
	t.Parallel()
	b := bed.New(t)
	l := laptop{b.Host("10.77.0.100/24 10.88.0.100/24"), folder(t)}
	shed, barn := b.Host("10.77.0.1/24"), b.Host("10.77.0.2/24")
	one, two := startOn(t, shed, folder(t), "shed"), startOn(t, barn, folder(t), "barn")
	l.claim(t, one, "shed")
	l.claim(t, two, "byre") // what the user calls it
	for _, name := range []string{"shed", "byre"} {
		if took, ok := l.reads(t, name); !ok {
			t.Fatalf("%s is not read after its claim", name)
		} else {
			t.Logf("%s is read in %v", name, took.Round(time.Millisecond))
		}
	}
	w := l.watch(t)
	for range 2 {
		e, _ := w.await(30*time.Second, "what is known", func(e seen) bool { return e.Change == "appeared" })
		if want := map[string]string{"shed": "shed", "barn": "byre"}[e.Name]; e.Known != want {
			t.Errorf("%+v", e)
		}
	}

	// Another address on the same network, on another, and on both ends of a cable.
	change := func(what, to string, how func()) {
		t.Helper()
		begun := time.Now()
		how()
		for {
			if _, ok := l.reads(t, "shed"); ok {
				break
			}
			if time.Since(begun) > 30*time.Second {
				t.Fatalf("%s: the site is not reached", what)
			}
		}
		t.Logf("%s: read again after %v (at most 3 s)", what, time.Since(begun).Round(time.Millisecond))
		ofLink := func(at string) bool { return strings.HasPrefix(at, "[fe80:") } // which may be quicker
		if at := slices.DeleteFunc(l.knows(t, "shed"), ofLink); at[0] != to+":8474" || !slices.Contains(at, "10.77.0.1:8474") {
			t.Errorf("%s: it is known at %v", what, at)
		}
		w.await(30*time.Second, what+", and seen", at(one.did(t), to))
	}
	change("another address", "10.77.0.77", func() { b.IP(shed, "addr del 10.77.0.1/24 dev eth0", "addr add 10.77.0.77/24 dev eth0") })
	change("another network", "10.88.0.1", func() { b.IP(shed, "addr del 10.77.0.77/24 dev eth0", "addr add 10.88.0.1/24 dev eth0") })
	b.IP(shed, "link set eth0 down", "addr add 10.77.0.3/24 dev eth0", "addr del 10.88.0.1/24 dev eth0")
	if _, ok := l.reads(t, "shed"); ok {
		t.Error("a site is read whose cable is out")
	}
	change("the cable out and in", "10.77.0.3", func() { b.IP(shed, "link set eth0 up") })

	// One whose address changed while it was away.
	two.Stop(t)
	if out := l.must(t, "discover"); strings.Contains(out, two.did(t)) {
		t.Errorf("a stopped site is found:\n%s", out)
	}
	if took, ok := l.reads(t, "byre"); ok || took > 20*time.Second {
		t.Errorf("a stopped site is read, or missed after %v", took)
	}
	b.IP(barn, "addr del 10.77.0.2/24 dev eth0", "addr add 10.77.0.22/24 dev eth0")
	startOn(t, barn, two.Folder, "barn")
	if _, ok := l.reads(t, "byre"); !ok {
		t.Error("it is not reached where it is now")
	}
}
