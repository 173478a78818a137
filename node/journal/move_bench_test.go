package journal_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
	"agentsite/device/sim"
	"agentsite/node"
	"agentsite/node/history"
	"agentsite/node/journal"
)

// movable returns a node with one simulated relay and that journal.
func movable(t testing.TB, j node.Journal) (site *node.Node) {
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
	hub := node.NewHub(nil, past, agents.PointURI)
	n := node.New(node.Parts{Hub: hub, Journal: j})
	if err := n.Replace(node.Site{Name: "x", History: past, Outputs: g, Devices: []node.Device{{Name: "box", Device: dev, Description: dev.Describe()}}}); err != nil {
		t.Fatal(err)
	}
	return n
}

// discard is a journal that keeps nothing.
type discard struct{}

func (discard) Replay(node.Asked) (*node.Outcome, error) { return nil, nil }
func (discard) Begin(node.Asked) (func(node.Outcome), *node.Outcome, error) {
	return func(node.Outcome) {}, nil, nil
}
func (discard) Add(node.Asked, node.Outcome)          {}
func (discard) Deny(string, string, device.FaultKind) {}
func (discard) Recent(string) []node.Recorded         { return nil }

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
	move := func(b *testing.B, site *node.Node) func() {
		who := agents.Principal{ID: "ann"}
		r := agents.MoveRequest{Output: "box/relay", Value: device.Bool(true), For: new(60.0)}
		return func() {
			if _, err := site.Move(b.Context(), who, r); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("no journal", func(b *testing.B) { median(b, move(b, movable(b, discard{}))) })
	bytes := 0
	b.Run("journal", func(b *testing.B) {
		folder := filepath.Join(b.TempDir(), "journal")
		w := journal.NewRecorder()
		w.Open(folder)
		do := move(b, movable(b, w))
		size := func() (sum int) {
			files, _ := filepath.Glob(filepath.Join(folder, "*.journal"))
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
