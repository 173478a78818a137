package node

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/device"
	"agentsite/device/guard"
)

// farSite is another site, whose output is moved as move says.
type farSite struct {
	move func(agents.MoveRequest) (agents.Output, error)
}

// moveBy moves its output for a hosted agent of a node.
func (f *farSite) moveBy(n *Node, p agents.Principal, r agents.MoveRequest) (out agents.Output, err error) {
	c := MoveOf(r)
	c.With, c.Back = []Part{{principal.Agent("remote", "shed"), c.Ask}}, f
	if earlier, err := n.Begin(context.Background(), p, &c); earlier != nil || err != nil {
		return Replayed[agents.Output](earlier, err)
	}
	defer c.End()
	out, err = f.move(r)
	return out, c.Done(out, err)
}

func (f *farSite) Move(_ context.Context, _ agents.Principal, r agents.MoveRequest) (agents.Output, error) {
	return f.move(r)
}

// TestRecallElsewhere: an output of another site that an agent moves for an asker returns to safe when
// the asker's permission ends, also if that happens during the move, if the move was not answered, if
// the lease was renewed since, if the other site does not answer for a while, and if this site has
// started since. It is asked no longer than the lease lasts.
func TestRecallElsewhere(t *testing.T) {
	for _, when := range []string{"after", "during", "unanswered", "renewed", "offline", "offline for the lease", "restarted", "restarted, and stored no more"} {
		t.Run(when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const output = "shed/lever/a"
				beds := principal.Agent("llm", "beds")
				d := newDesk()
				l := &leaves{may: map[string][]string{beds.ID: {"set_level " + output}, "remote:shed": {"set_level " + output}, ann.ID: {"ask_agent beds", "set_level " + output}}}
				d.access = l
				d.ReplaceAgents(map[string]Hosted{beds.ID: {}})
				away, asked := false, 0
				var offline atomic.Bool
				offline.Store(when == "offline" || when == "offline for the lease")
				revoke := func() {
					l.may[ann.ID] = nil
					d.Recheck()
					synctest.Wait()
				}
				far := &farSite{}
				far.move = func(r agents.MoveRequest) (agents.Output, error) {
					if r.Value.IsZero() {
						if asked++; offline.Load() {
							return agents.Output{}, device.Faultf(device.Offline, "no answer")
						}
					}
					if away = !r.Value.IsZero(); away && when == "during" {
						revoke()
					}
					if away && when == "unanswered" {
						return agents.Output{}, device.Faultf(device.UnknownOutcome, "no answer")
					}
					return agents.Output{Output: r.Output, Value: r.Value, Left: 300}, nil
				}
				r := agents.MoveRequest{Output: output, Value: device.Number(1)}
				r.Behalf.Asker = ann
				switch when {
				case "restarted, and stored no more":
					l.may[ann.ID] = nil
					fallthrough
				case "restarted":
					away = true
					if err := d.MovedBefore(beds, ann, output, device.Number(1), false, 5*time.Minute, far); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Second)
					if synctest.Wait(); away != (l.may[ann.ID] != nil) {
						t.Errorf("%s: away after the start: %v", when, away)
					}
				default:
					if _, err := far.moveBy(d.Node, beds, r); when != "during" && when != "unanswered" && err != nil {
						t.Fatal(err)
					}
				}
				if when == "renewed" {
					time.Sleep(4 * time.Minute)
					r.Held = true
					if _, err := far.moveBy(d.Node, beds, r); err != nil {
						t.Fatal(err)
					}
					time.Sleep(2 * time.Minute)
				}
				if when != "during" && when != "restarted, and stored no more" {
					if !away {
						t.Fatal("it was not moved")
					}
					revoke()
				}
				time.Sleep(time.Second)
				if when == "offline" {
					time.Sleep(time.Minute)
					offline.Store(false)
					time.Sleep(time.Minute)
				}
				if when == "offline for the lease" {
					time.Sleep(time.Hour)
					if synctest.Wait(); asked < 5 || asked > 20 {
						t.Errorf("asked %d times", asked)
					}
					return
				}
				if synctest.Wait(); away {
					t.Errorf("revoked %s the move: it stays away from safe", when)
				}
			})
		})
	}
}

// unansweredLever moves, and does not say so.
type unansweredLever struct {
	*lever
	mu     sync.Mutex
	holder string
	to     float64
}

func (l *unansweredLever) StatusOf(output string) (guard.Status, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return guard.Status{Output: output, Holder: l.holder, Value: device.Number(l.to)}, true
}

func (l *unansweredLever) Move(_ context.Context, who, _ string, v device.Value, _ time.Duration) (guard.Status, error) {
	if l.during != nil {
		l.during()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holder, l.to = who, v.Number()
	return guard.Status{}, device.Faultf(device.UnknownOutcome, "no answer")
}

func (l *unansweredLever) Renew(_ context.Context, who, output string, v device.Value, _ time.Duration) (guard.Status, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if who != l.holder || v != device.Number(0) {
		return guard.Status{}, device.Faultf(device.Expired, "not held")
	}
	l.holder, l.to = "", 0
	return guard.Status{Output: output}, nil
}

func (l *unansweredLever) value() float64 {
	s, _ := l.StatusOf(arm)
	return s.Value.Number()
}

// TestRecallUnanswered: an output of this site that an agent may have moved for an asker returns to
// safe when the asker's permission ends.
func TestRecallUnanswered(t *testing.T) {
	for _, during := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			beds := principal.Agent("llm", "beds")
			d := newDesk()
			out := &unansweredLever{lever: d.lever}
			d.site.Outputs = out
			d.setSite()
			l := &leaves{may: map[string][]string{beds.ID: {"set_level " + arm}, ann.ID: {"ask_agent beds", "set_level " + arm}}}
			d.access = l
			d.ReplaceAgents(map[string]Hosted{beds.ID: {}})
			r := agents.MoveRequest{Output: arm, Value: device.Number(5)}
			r.Behalf.Asker = ann
			if during {
				out.during = func() { l.may[ann.ID] = nil; d.Recheck() }
			}
			if _, err := d.Node.Move(t.Context(), beds, r); device.AsFault(err).Kind != device.UnknownOutcome {
				t.Fatal(err)
			}
			if !during {
				if out.value() != 5 {
					t.Fatalf("at %v", out.value())
				}
				l.may[ann.ID] = nil
				d.Recheck()
			}
			if synctest.Wait(); out.value() != 0 {
				t.Errorf("during %v: it stays at %v", during, out.value())
			}
		})
	}
}
