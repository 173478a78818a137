package rule_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/rule"
	"agentsite/device"
	"agentsite/node"
)

// ending is a site on which a rule is stopped while it makes a move: before the move, or before its
// answer.
type ending struct {
	*node.Node
	stop   func()
	at     func(agents.MoveRequest) bool
	before bool
}

func (s *ending) Move(ctx context.Context, p agents.Principal, r agents.MoveRequest) (agents.Output, error) {
	now := s.stop != nil && s.at(r)
	if now && s.before {
		s.stop()
	}
	out, err := s.Node.Move(ctx, p, r)
	if now && !s.before {
		s.stop()
		return out, ctx.Err() // as another site's, whose answer is not awaited
	}
	return out, err
}

// TestStoppedWhileMoving: a rule that is stopped while it moves or releases an output does not
// leave the output held.
func TestStoppedWhileMoving(t *testing.T) {
	for name, s := range map[string]*ending{
		"before a release is made":  {at: func(r agents.MoveRequest) bool { return r.Value.IsZero() }, before: true},
		"before a move is answered": {at: func(r agents.MoveRequest) bool { return !r.Value.IsZero() }},
	} {
		inHouse(t, func(h *house) {
			ctx, cancel := context.WithCancel(context.Background())
			s.Node, s.stop = h.node, func() { s.stop = nil; cancel() }
			r, ended := rule.Kind(h.world()).New().(*rule.Rule), make(chan struct{})
			r.When, r.Hold = temperature+" < 5 Cel", map[string]device.Value{heater: on}
			go func() { defer close(ended); r.Run(ctx, self, s) }()
			synctest.Wait()
			h.temperature(4)
			h.temperature(20)
			<-ended
			time.Sleep(time.Second)
			if o, _ := h.guard.StatusOf(heater); o.Holder != "" || s.stop != nil {
				t.Errorf("%s: the heater is held by %q", name, o.Holder)
			}
		})
	}
}
