package node

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
)

// applied is an actuator that follows at once.
type applied struct{}

func (applied) Apply(context.Context, string, device.Value) error { return nil }

var boss = agents.Principal{ID: "boss", Owner: true}

// withGuard runs do with a desk whose lever a real guard drives, and which has rested.
func withGuard(t *testing.T, do func(d *desk), bend ...func(*guard.Policy)) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		policy := guard.NewPolicy("lever", device.Point{Name: "arm", Kind: device.KindLevel, Range: device.Range{Max: 100}, Safe: device.Number(0)})
		for _, b := range bend {
			b(&policy)
		}
		latch := guard.Latch{File: t.TempDir() + "/armed"}
		if err := latch.Arm(); err != nil {
			t.Fatal(err)
		}
		g, err := guard.New([]guard.Actuated{{Actuator: applied{}, Policies: []guard.Policy{policy}}}, latch)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- g.Run(ctx) }()
		defer func() { cancel(); <-ended }()
		d.site.Outputs = g
		d.setSite()
		time.Sleep(guard.DefaultRest + time.Second)
		d.ReplaceAgents(map[string]Hosted{"rule:low": {Rank: 1}, "rule:high": {Rank: 2, Reads: []string{"lever/a"}}})
		do(d)
	})
}

func (d *desk) heldBy(t *testing.T, who string, v float64) {
	t.Helper()
	if s := d.site.Outputs.Status()[0]; s.Holder != who || s.Goal.Number() != v {
		t.Errorf("%s holds it at %v; want %s at %v", s.Holder, s.Goal, who, v)
	}
}

func (d *desk) asks(p agents.Principal, v float64, want device.FaultKind) {
	_, err := d.Node.Move(context.Background(), p, agents.MoveRequest{Output: arm, Value: device.Number(v)})
	if kind := kindOf(err); kind != want {
		panic(string("" + kind + ", wanted " + want))
	}
}

func kindOf(err error) device.FaultKind {
	if err == nil {
		return ""
	}
	return device.AsFault(err).Kind
}

// TestRanks: an owner takes over from an agent, an agent from one of a lower rank, and nobody
// else from anybody.
func TestRanks(t *testing.T) {
	low, high := agents.Principal{ID: "rule:low"}, agents.Principal{ID: "rule:high"}
	withGuard(t, func(d *desk) {
		d.asks(low, 10, "")
		d.asks(ann, 20, device.Busy)
		d.heldBy(t, low.ID, 10)
		d.asks(high, 30, "")
		d.heldBy(t, high.ID, 30)
		d.asks(low, 40, device.Busy)
		d.asks(boss, 50, "")
		d.heldBy(t, boss.ID, 50)
		d.asks(high, 60, device.Busy)
		if _, err := d.Node.Move(context.Background(), boss, agents.MoveRequest{Output: arm}); err != nil {
			t.Error(err)
		}
		d.asks(ann, 70, "")
		d.asks(boss, 80, device.Busy) // another's lease takes an owner's own word, set --take-over
		d.heldBy(t, ann.ID, 70)
	})
}

// TestUsedBy: why names the agents that use a point.
func TestUsedBy(t *testing.T) {
	d := newDesk()
	d.ReplaceAgents(map[string]Hosted{"rule:b": {Reads: []string{"lever/a"}}, "rule:a": {Reads: []string{"lever/b", "lever/a"}}})
	w, err := d.Node.Why(t.Context(), boss, agents.WhyRequest{Point: "lever/a"})
	if err != nil || !slices.Equal(w.Used, []string{"rule:a", "rule:b"}) {
		t.Errorf("%q, %v", w.Used, err)
	}
}

// TestRefusedTakeOver: a move that the guard refuses leaves the output to its holder.
func TestRefusedTakeOver(t *testing.T) {
	low := agents.Principal{ID: "rule:low"}
	withGuard(t, func(d *desk) {
		d.asks(low, 10, "")
		long := 3600.0
		if _, err := d.Node.Move(context.Background(), boss, agents.MoveRequest{Output: arm, Value: device.Number(20), For: &long}); kindOf(err) != device.Invalid {
			t.Error(err)
		}
		d.heldBy(t, low.ID, 10)
	})
}

// TestRenewals: a renewal is not charged and needs no disk. Without the lease it is a move, which
// is charged and needs the disk.
func TestRenewals(t *testing.T) {
	withGuard(t, func(d *desk) {
		d.asks(ann, 10, "")
		begun := len(d.book.asked)
		d.book.full = device.Faultf(device.Unavailable, "the disk is full")
		time.Sleep(40 * time.Second)
		d.asks(ann, 10, "")
		if left := d.site.Outputs.Status()[0].Left; left != time.Minute {
			t.Errorf("%v is left after a renewal", left)
		}
		if len(d.book.asked) != begun || len(d.book.added) != 1 {
			t.Errorf("%d calls begun, %d added", len(d.book.asked)-begun, len(d.book.added))
		}
		d.asks(ann, 20, device.Unavailable) // another value is a move
		key := "1"
		if _, err := d.Node.Move(context.Background(), ann, agents.MoveRequest{Output: arm, Value: device.Number(10), Terms: agents.Terms{Key: &key}}); kindOf(err) != device.Unavailable {
			t.Errorf("a call that is to act once was not written down: %v", err)
		}
		time.Sleep(2 * time.Minute)
		d.asks(ann, 10, device.Unavailable)
		d.heldBy(t, "", 0)
	})
}

// TestHeldRelease: it ends the caller's own lease and nobody else's.
func TestHeldRelease(t *testing.T) {
	withGuard(t, func(d *desk) {
		release := func(p agents.Principal) error {
			_, err := d.Node.Move(context.Background(), p, agents.MoveRequest{Output: arm, Terms: agents.Terms{Held: true}})
			return err
		}
		if err := release(ann); kindOf(err) != device.Expired {
			t.Error(err)
		}
		d.asks(boss, 10, "")
		if err := release(ann); kindOf(err) != device.Expired {
			t.Error(err)
		}
		d.heldBy(t, boss.ID, 10)
		renew := func(p agents.Principal) error {
			_, err := d.Node.Move(context.Background(), p, agents.MoveRequest{Output: arm, Value: device.Number(10), Terms: agents.Terms{Held: true}})
			return err
		}
		if err := renew(ann); kindOf(err) != device.Expired {
			t.Error(err)
		}
		if err := renew(boss); err != nil {
			t.Error(err)
		}
		if err := release(boss); err != nil {
			t.Error(err)
		}
		d.heldBy(t, "", 0)
		if err := renew(boss); kindOf(err) != device.Expired {
			t.Error(err)
		}
		d.heldBy(t, "", 0)
	})
}

// TestReleasers: an agent's return to safe is not somebody else's for agents below it in rank.
func TestReleasers(t *testing.T) {
	low, high := agents.Principal{ID: "rule:low"}, agents.Principal{ID: "rule:high"}
	withGuard(t, func(d *desk) {
		for _, tt := range []struct {
			by, sees agents.Principal
			others   bool
		}{{boss, low, false}, {ann, low, true}, {high, low, false}, {low, high, true}} {
			d.asks(boss, 10, "")
			if _, err := d.Node.Move(context.Background(), tt.by, agents.MoveRequest{Output: arm}); err != nil {
				t.Fatal(err)
			}
			s, _ := d.Node.site.Load().Outputs.StatusOf(arm)
			if got := d.Node.others(tt.sees, s); got != tt.others {
				t.Errorf("released by %s, as %s sees it: others %t", tt.by.ID, tt.sees.ID, got)
			}
		}
	})
}
