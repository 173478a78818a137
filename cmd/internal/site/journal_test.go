package site

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/things"
	"agentsite/device"
	"agentsite/device/guard"
	"agentsite/device/sim"
	"agentsite/node"
	"agentsite/node/history"
	"agentsite/node/journal"
	"agentsite/node/state"
	"agentsite/transport/rpc"
)

// TestJournalFaults: what callers are told of the journal's errors.
func TestJournalFaults(t *testing.T) {
	w := &written{}
	for _, tt := range []struct {
		err  error
		kind device.FaultKind
		says string
	}{
		{journal.ErrReused, device.Invalid, "take a new key"},
		{journal.ErrPending, device.Busy, "ask again"},
		{journal.ErrUnknown, device.UnknownOutcome, "look where things are"},
		{&fs.PathError{Op: "write", Path: "/secret/journal", Err: syscall.ENOSPC}, device.Unavailable, "cannot be written (no space left on device), so nothing moves away from safe"},
		{errors.New("anything"), device.Unavailable, "cannot be written (its disk does not take it)"},
	} {
		f := device.AsFault(w.fault(tt.err))
		if f.Kind != tt.kind || !strings.Contains(f.Msg, tt.says) || strings.Contains(f.Msg, "/secret") {
			t.Errorf("%v: %s: %s", tt.err, f.Kind, f.Msg)
		}
	}
	if err := w.fault(nil); err != nil {
		t.Error(err)
	}
}

// TestDamagedJournal: it is not written on, and all but moves away from safe goes on.
func TestDamagedJournal(t *testing.T) {
	f := state.Folder(t.TempDir())
	w := &written{}
	w.open(f)
	if _, _, err := w.Begin(node.Asked{Who: "ann", Tool: "switch_output"}); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	w.Run(ended)
	files, err := filepath.Glob(filepath.Join(f.Path(state.JournalFolder), "*.journal"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-50] ^= 1
	if err := os.WriteFile(files[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	w = &written{}
	w.open(f)
	for range 2 {
		_, _, err := w.Begin(node.Asked{Who: "ann", Tool: "switch_output", Key: "k"})
		if err == nil || device.AsFault(err).Kind != device.Unavailable || !strings.Contains(err.Error(), "it is damaged: agentsite journal --verify says where") {
			t.Error(err)
		}
	}
	if _, err := w.Replay(node.Asked{Who: "ann", Tool: "switch_output", Key: "k"}); err == nil {
		t.Error("a damaged journal is believed")
	}
	w.Add(node.Asked{}, node.Outcome{})
	w.Deny("ann", "switch_output", device.Denied)
	w.Run(t.Context())
	if after, err := os.ReadFile(files[0]); err != nil || string(after) != string(b) {
		t.Errorf("it was written on: %v", err)
	}
}

// movable is a door to one simulated relay, with that journal.
func movable(t testing.TB, j node.Journal) (door *node.Node) {
	t.Helper()
	c := sim.Driver().Config().(*sim.Config)
	c.Model = "relay"
	dev, err := c.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	latch := guard.Latch{File: filepath.Join(t.TempDir(), "armed")}
	if err := latch.Arm(); err != nil {
		t.Fatal(err)
	}
	policy := guard.NewPolicy("box", dev.Describe().Points[0])
	policy.MinOff, policy.Rest = 0, 0
	g, err := guard.New([]guard.Actuated{{Actuator: dev.(device.Actuator), Policies: []guard.Policy{policy}}}, latch)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done; dev.Close() })
	if err := g.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	past := history.New(nil)
	hub := node.NewHub(nil, past, things.URI)
	agent, err := things.New(things.Site{Name: "x", Readings: hub, History: past, Outputs: g, Things: []things.Thing{{Name: "box", Device: dev, Description: dev.Describe()}}})
	if err != nil {
		t.Fatal(err)
	}
	return node.New(hub, "", j, agent)
}

// unwritten is a journal that keeps nothing.
type unwritten struct{}

func (unwritten) Replay(node.Asked) (*node.Outcome, error) { return nil, nil }
func (unwritten) Begin(node.Asked) (func(node.Outcome), *node.Outcome, error) {
	return func(node.Outcome) {}, nil, nil
}
func (unwritten) Add(node.Asked, node.Outcome)          {}
func (unwritten) Deny(string, string, device.FaultKind) {}

// BenchmarkMove is a move without a journal and with one, beside a bare write and sync
// of as many bytes on the same disk. The medians say more than the means: a disk has
// its moments.
func BenchmarkMove(b *testing.B) {
	median := func(b *testing.B, do func()) {
		var all []time.Duration
		for b.Loop() {
			begun := time.Now()
			do()
			all = append(all, time.Since(begun))
		}
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds()), "µs/median")
	}
	move := func(b *testing.B, door *node.Node) func() {
		who := agents.Principal{ID: "ann"}
		call := agents.Call{Tool: "switch_output", Args: rpc.RawJSON([]byte(`{"output":"box/relay","on":true,"for_seconds":60}`)), Note: func(agents.Note) {}}
		return func() {
			if _, err := door.Call(b.Context(), who, call); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("no journal", func(b *testing.B) { median(b, move(b, movable(b, unwritten{}))) })
	bytes := 0
	b.Run("journal", func(b *testing.B) {
		f := state.Folder(b.TempDir())
		w := &written{}
		w.open(f)
		do := move(b, movable(b, w))
		size := func() (sum int) {
			files, _ := filepath.Glob(filepath.Join(f.Path(state.JournalFolder), "*.journal"))
			for _, file := range files {
				if info, err := os.Stat(file); err == nil {
					sum += int(info.Size())
				}
			}
			return sum
		}
		before := size()
		do()
		bytes = size() - before
		median(b, do)
		b.ReportMetric(float64(bytes), "bytes/move")
	})
	b.Run("bare write and sync", func(b *testing.B) {
		f, err := os.Create(filepath.Join(b.TempDir(), "bare"))
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		line := make([]byte, bytes)
		median(b, func() {
			if _, err := f.Write(line); err != nil {
				b.Fatal(err)
			}
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
		})
	})
}
