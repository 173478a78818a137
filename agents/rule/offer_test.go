package rule_test

import (
	"context"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/rule"
	"agentsite/device"
	"agentsite/node"
)

// listed is a site whose points change right after it has listed them.
type listed struct {
	*node.Node
	then func()
}

func (l *listed) Points(ctx context.Context, p agents.Principal, r agents.SiteRequest) (agents.PointList, error) {
	list, err := l.Node.Points(ctx, p, r)
	if then := l.then; then != nil {
		l.then = nil
		then()
	}
	return list, err
}

// TestPointsChangeAtTheBegin: a rule sees a change of the points between its list and its watch.
func TestPointsChangeAtTheBegin(t *testing.T) {
	inHouse(t, func(h *house) {
		site := &listed{h.node, func() { h.offer(h.guard, "K") }}
		made := rule.Kind(h.world()).New().(*rule.Rule)
		made.When, made.Hold = temperature+" < 5 Cel", map[string]device.Value{heater: on}
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(context.Background())
		go func() { ended <- made.Run(ctx, self, site) }()
		select {
		case err := <-ended: // it cannot be compared with K
			if err == nil {
				t.Error("it ends without a reason")
			}
		case <-time.After(time.Minute):
			t.Error("it goes by points that are not so any more")
			cancel()
			<-ended
		}
		cancel()
	})
}
