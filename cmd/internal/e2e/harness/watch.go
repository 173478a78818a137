//go:build e2e && linux

package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// Discovered is a line of agentsite discover --watch --json.
type Discovered struct {
	Change, Name, DID string
	URLs              []string
	Known             string `json:"known_as"`
	Public            []struct {
		Kind   string
		Points []string
	}
}

// Watch is a running agentsite discover --watch.
type Watch struct {
	t     testing.TB
	Cmd   *exec.Cmd
	Begun time.Time
	Lines chan Discovered
	End   context.CancelFunc
}

// Watch starts agentsite discover --watch on the laptop. It ends with the test.
func (l Laptop) Watch(t testing.TB) *Watch {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watch{t: t, Cmd: l.Command(ctx, "discover", "--watch", "--json"), Lines: make(chan Discovered, 1000)}
	w.Cmd.Cancel = func() error { return w.Cmd.Process.Signal(os.Interrupt) }
	out, err := w.Cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.Cmd.Stderr = os.Stderr
	w.Begun = time.Now()
	if err := w.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(w.Lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			var e Discovered
			if err := json.Unmarshal(s.Bytes(), &e); err != nil {
				t.Errorf("%v in %s", err, s.Bytes())
			}
			w.Lines <- e
		}
	}()
	w.End = func() {
		cancel()
		for range w.Lines {
		}
		w.Cmd.Wait()
	}
	t.Cleanup(w.End)
	return w
}

// Await waits for a line, and returns it and how long that took.
func (w *Watch) Await(within time.Duration, what string, is func(Discovered) bool) (Discovered, time.Duration) {
	w.t.Helper()
	begun, end := time.Now(), time.After(within)
	for {
		select {
		case e, ok := <-w.Lines:
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

// AwaitSites waits until each of the sites has appeared, and returns how long that took from
// the start of the command.
func (w *Watch) AwaitSites(within time.Duration, dids ...string) time.Duration {
	w.t.Helper()
	left := slices.Clone(dids)
	w.Await(within, fmt.Sprintf("%d sites are found", len(dids)), func(e Discovered) bool {
		if e.Change == "appeared" {
			left = slices.DeleteFunc(left, func(did string) bool { return did == e.DID })
		}
		return len(left) == 0
	})
	return time.Since(w.Begun)
}
