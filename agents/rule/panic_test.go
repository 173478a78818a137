package rule_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/rule"
	"agentsite/device"
	"agentsite/node"
)

// broken is a site on which the answer to a move of one rule is a panic, after the move.
type broken struct {
	*node.Node
	who    agents.Principal
	breaks atomic.Bool
}

func (s *broken) Move(ctx context.Context, p agents.Principal, r agents.MoveRequest) (agents.Output, error) {
	out, err := s.Node.Move(ctx, p, r)
	if p == s.who && s.breaks.Swap(false) {
		panic("a defect")
	}
	return out, err
}

// TestPanic: a panic in a rule's turn ends that rule and releases its outputs, and the others go on.
func TestPanic(t *testing.T) { inHouse(t, panicking) }

func TestPanicWatched(t *testing.T) { inHouse(t, func(h *house) { h.watch = true; panicking(h) }) }

func panicking(h *house) {
	t := h.t
	h.node.ReplaceAgents(map[string]node.Hosted{self.ID: {Rank: 1}, far.ID: {Rank: 2}})
	site := &broken{Node: h.node, who: far}
	site.breaks.Store(true)
	ctx, cancel := context.WithCancel(context.Background())
	kind := rule.Kind(h.world())
	run := func(who agents.Principal, condition string, hold map[string]device.Value) chan error {
		r, ended := kind.New().(*rule.Rule), make(chan error, 1)
		r.When, r.Hold = condition, hold
		go func() {
			if h.watch {
				ended <- r.Run(ctx, who, struct{ agents.Site }{site})
			} else {
				ended <- r.Run(ctx, who, site)
			}
		}()
		synctest.Wait()
		return ended
	}
	h.temperature(20)
	breaks := run(far, temperature+" < 5 Cel", map[string]device.Value{lamp: device.Number(90)})
	goesOn := run(self, temperature+" < 4 Cel", map[string]device.Value{heater: on})
	h.temperature(4.5)
	synctest.Wait()
	var defect *agent.Defect
	select {
	case err := <-breaks:
		if !errors.As(err, &defect) {
			t.Errorf("it ended with %v", err)
		}
	default:
		t.Error("it goes on")
	}
	time.Sleep(time.Second)
	h.temperature(3)
	time.Sleep(time.Second)
	h.wantWrites("0s lamp 90, 0s lamp 0, 1s heater on")
	cancel()
	<-goesOn
}
