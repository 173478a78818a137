//go:build e2e && linux

package guard

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/group"
	"agentsite/cmd/internal/e2e/harness"
	"agentsite/device"

	"github.com/go-json-experiment/json"
)

// whyOf asks why a point is so by every way, and fails the test where the answers differ.
func whyOf(t *testing.T, r *harness.Site, point string) agents.Why {
	t.Helper()
	out, err := r.CLI(t, "why", point, "--json")
	var w agents.Why
	if err == nil {
		err = json.Unmarshal([]byte(out), &w)
	}
	if err != nil {
		t.Fatal(err)
	}
	members := []group.Member{{Name: "home", Site: r.Client(t, true)}}
	home := group.New(func() []group.Member { return members })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	go home.Run(ctx)
	home.Settle(ctx)
	for name, ask := range map[string]func() (agents.Why, error){
		"JSON": func() (agents.Why, error) {
			return r.Client(t, false).Why(ctx, agents.Principal{}, agents.WhyRequest{Point: point})
		},
		"CBOR": func() (agents.Why, error) {
			return r.Client(t, true).Why(ctx, agents.Principal{}, agents.WhyRequest{Point: point})
		},
		"a group": func() (agents.Why, error) {
			return home.Why(ctx, agents.Principal{}, agents.WhyRequest{Point: "home/" + point})
		},
	} {
		got, err := ask()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if a, b := eventsOf(got), eventsOf(w); a != b || got.Value != w.Value || strings.TrimPrefix(got.Point, "home/") != point {
			t.Errorf("%s says %s, and the command\n%s", name, a, b)
		}
	}
	return w
}

// eventsOf renders the changes without their times.
func eventsOf(w agents.Why) string {
	var all []string
	for _, e := range w.Changes {
		all = append(all, strings.Join(strings.Fields(fmt.Sprintf("%v %s %s %s %s", e.Value, e.Holder, e.Cause, e.Tool, e.Outcome)), " "))
	}
	return strings.Join(all, "; ")
}

// TestWhy asks for the reason of an output's state after its interlock, a crash during a lease, and
// a crash between the intent and the result of a move.
func TestWhy(t *testing.T) {
	b := startBlind(t)
	b.on(t, "down")
	if w := whyOf(t, b.Site, "down/relay"); w.Output.Holder != "token" || w.Name == "" || w.Output.Left < 30 || w.Held <= 0 || w.Other != device.Bool(false) || w.Refused != "" ||
		!strings.HasPrefix(eventsOf(w), "on token switch_output done; off the site was started") {
		t.Errorf("held: %+v %+v\n%s", w, w.Output, eventsOf(w))
	}
	if w := whyOf(t, b.Site, "up/relay"); !strings.Contains(w.Refused, "interlocked with down/relay") || w.Other != device.Bool(true) {
		t.Errorf("its partner: %+v", w)
	}
	// Somebody else moves the partner.
	file := b.file("up")
	if err := os.WriteFile(file+".hand", fmt.Appendf(nil, "relay on %d\n", time.Now().UnixNano()), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".hand", file); err != nil {
		t.Fatal(err)
	}
	harness.WaitFor(t, 20*time.Second, "both are safe", func() bool { return b.shows("up") == "off" && b.shows("down") == "off" })
	const cause = "another output of its interlock was not known to be safe"
	if w := whyOf(t, b.Site, "down/relay"); w.Output.Why != cause || !strings.HasPrefix(eventsOf(w), "off "+cause+"; on token switch_output done") {
		t.Errorf("after its interlock: %+v\n%s", w.Output, eventsOf(w))
	}

	// A crash while it is held.
	config, err := os.ReadFile(filepath.Join(b.Folder, "agentsite.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	begin := func() {
		b.Site = harness.StartIn(t, b.Folder, string(config), nil, harness.Need(t, "the program", harness.Program))
	}
	b.on(t, "down")
	b.Kill(t)
	harness.WaitFor(t, 20*time.Second, "it is safe", func() bool { return b.shows("down") == "off" })
	begin()
	if w := whyOf(t, b.Site, "down/relay"); w.Output.Holder != "" || !strings.HasPrefix(eventsOf(w), "off the site was started; on ") || !strings.Contains(eventsOf(w), "switch_output done") {
		t.Errorf("after a crash: %+v\n%s", w.Output, eventsOf(w))
	}

	// A crash between intent and result: the driver hangs in its write meanwhile.
	harness.WaitFor(t, 20*time.Second, "it may be moved", func() bool { return whyOf(t, b.Site, "down/relay").Refused == "" })
	fifo := b.file("down.new")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		tryCall(b.Site, harness.KeyedMove("down/relay", "hung"), "switch_output")
	}()
	harness.WaitFor(t, 20*time.Second, "the intent is written", func() bool {
		out, _ := b.CLI(t, "journal")
		return strings.Contains(out, "no result")
	})
	b.Kill(t)
	<-asked
	hung, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0) // ends the write
	if err != nil {
		t.Fatal(err)
	}
	defer hung.Close()
	if err := os.Remove(fifo); err != nil {
		t.Fatal(err)
	}
	begin()
	if w := whyOf(t, b.Site, "down/relay"); w.Output.Holder != "" || !strings.HasPrefix(eventsOf(w), "off the site was started; on switch_output unknown_outcome") {
		t.Errorf("after an unknown outcome: %+v\n%s", w.Output, eventsOf(w))
	}
}
