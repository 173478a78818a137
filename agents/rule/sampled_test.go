package rule_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/device"
	"agentsite/node"
)

// thermometer always reads the same.
type thermometer struct{}

func (thermometer) Describe() device.Description {
	return device.Description{Points: []device.Point{{Name: "temperature", Kind: device.KindMeasurement, Unit: "Cel"}}}
}
func (thermometer) Close() error { return nil }
func (thermometer) Sample(context.Context) ([]device.Reading, error) {
	return []device.Reading{{Point: "temperature", Value: device.Number(4), Quality: device.Good, At: time.Now()}}, nil
}

// TestSampled: a sensor that is sampled, and whose value stays, is told once. Its age is that
// of its last sample nevertheless, and a window of it has that value.
func TestSampled(t *testing.T) {
	for _, when := range []string{"age(" + temperature + ") < 2m", "mean(" + temperature + ", 1m) < 5 Cel"} {
		inHouse(t, func(h *house) {
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				h.hub.Sample(ctx, []node.Source{{Name: "house", Device: thermometer{}, Every: 10 * time.Second}})
			}()
			r := holdHeater(when)
			r.Hold = map[string]device.Value{heater: on}
			report, end := h.run(r.rule(), self)
			time.Sleep(8 * time.Minute)
			h.wantState(report, agent.Holding)
			cancel()
			<-ended
			time.Sleep(3 * time.Minute) // the last reading is stale, and old
			if r := report(); r.State == agent.Holding {
				t.Errorf("%s: it holds: %s", when, r.Says)
			}
			end()
		})
	}
}

// counted is a site that counts what is read.
type counted struct {
	*node.Node
	reads atomic.Int64
}

func (s *counted) Read(ctx context.Context, p agents.Principal, r agents.ReadRequest) (agents.Readings, error) {
	s.reads.Add(1)
	return s.Node.Read(ctx, p, r)
}

// TestReads: a rule reads its points again only where their ages count. What it is told is enough for
// a window, which changes by itself much more often.
func TestReads(t *testing.T) {
	for when, reads := range map[string]bool{
		"mean(" + temperature + ", 1m) < -5 Cel":                               false,
		temperature + " < -5 Cel":                                              false,
		"age(" + temperature + ") < 2m and " + temperature + " < -5 Cel":       true,
		"count(" + temperature + ", 1m) > 100 and " + temperature + " > 5 Cel": true,
	} {
		inHouse(t, func(h *house) {
			r, site := holdHeater(when), &counted{Node: h.node}
			r.Hold = map[string]device.Value{heater: on}
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error)
			go func() { ended <- r.rule().Run(ctx, self, site) }()
			h.temperature(4)
			time.Sleep(10 * time.Minute)
			if n := site.reads.Load(); n > 0 != reads {
				t.Errorf("%s: %d reads", when, n)
			}
			cancel()
			<-ended
		})
	}
}
