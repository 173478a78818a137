package rule_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/rule"
	"agentsite/device"
	"agentsite/node"
)

const farTemperature = "shed/room/temperature"

// hanging is a site with another one that does not answer one of the rules.
type hanging struct {
	*node.Node
	points bool // the list of points
	hangs  atomic.Bool
}

var far = agents.Principal{ID: "rule:far"}

func (s *hanging) Points(ctx context.Context, p agents.Principal, r agents.SiteRequest) (agents.PointList, error) {
	if p == far && s.points && s.hangs.Load() {
		<-ctx.Done()
		return agents.PointList{}, ctx.Err()
	}
	all, err := s.Node.Points(ctx, p, r)
	all.Points = append(slices.Clone(all.Points), agents.Point{Point: farTemperature, Kind: device.KindMeasurement, Unit: "Cel"})
	return all, err
}

func (s *hanging) Read(ctx context.Context, p agents.Principal, r agents.ReadRequest) (agents.Readings, error) {
	if slices.Contains(r.Points, farTemperature) && s.hangs.Load() {
		<-ctx.Done()
		return agents.Readings{}, ctx.Err()
	}
	return s.Node.Read(ctx, p, r)
}

func (s *hanging) Watch(ctx context.Context, p agents.Principal, r agents.WatchRequest, emit func(agents.Update) error) error {
	if err := emit(agents.Update{Readings: []agents.Reading{{Point: farTemperature, Value: device.Number(4), Quality: device.Good}}}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestBlocked: a rule that waits for another site delays no other one, neither when it looks at
// that site's points again nor when the points of this site change.
func TestBlocked(t *testing.T) {
	for name, tt := range map[string]struct {
		rule   *rule.Rule
		points bool
	}{
		"read":   {&rule.Rule{When: farTemperature + " < 5 Cel and age(" + farTemperature + ") < 1h", For: 30 * time.Second, Hold: map[string]device.Value{lamp: device.Number(90)}}, false},
		"points": {&rule.Rule{When: temperature + " < -50 Cel", Hold: map[string]device.Value{lamp: device.Number(90)}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, func(h *house) {
				h.node.ReplaceAgents(map[string]node.Hosted{self.ID: {Rank: 1}, far.ID: {Rank: 2}})
				site := &hanging{Node: h.node, points: tt.points}
				ctx, cancel := context.WithCancel(context.Background())
				kind := rule.Kind(h.world())
				ended := make(chan struct{}, 2)
				run := func(of *rule.Rule, who agents.Principal) {
					r := kind.New().(*rule.Rule)
					r.When, r.For, r.Hold = of.When, of.For, of.Hold
					go func() { r.Run(ctx, who, site); ended <- struct{}{} }()
					synctest.Wait()
				}
				run(tt.rule, far)
				run(&rule.Rule{When: temperature + " < 5 Cel", Hold: map[string]device.Value{heater: on}}, self)
				h.temperature(20)
				site.hangs.Store(true)
				if tt.points {
					h.hub.Announce(agents.Change{Resources: true})
				}
				time.Sleep(31*time.Second - time.Since(h.began)) // the first of them waits now
				h.temperature(4)
				h.wantWrites("31s heater on")
				cancel()
				<-ended
				<-ended
			})
		})
	}
}
