package rule_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
	"agentsite/node"
)

// newHouse returns a house that lives until end is called. may is nil where everybody may do everything.
func newHouse(t *testing.T, may node.Access) (h *house, end func()) {
	h = &house{t: t, feed: make(chan device.Reading), began: time.Now(), latch: guard.Latch{File: filepath.Join(t.TempDir(), "armed")}}
	if err := h.latch.Arm(); err != nil {
		t.Fatal(err)
	}
	outputs := h.newGuard()
	h.hub = node.NewHub(h.guard, h, agents.PointURI)
	h.node = node.New(node.Parts{Hub: h.hub, Journal: h, Access: may})
	h.node.ReplaceAgents(map[string]node.Hosted{self.ID: {Rank: 1}, "rule:high": {Rank: 2}})
	h.offer(outputs, "Cel")
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { h.hub.Sample(ctx, nil, h) })
	return h, func() { cancel(); h.stopGuard(); all.Wait() }
}

// newGuard starts a guard of the house, whose run is the number of those before.
func (h *house) newGuard() node.Outputs {
	var policies []guard.Policy
	for _, p := range housePoints("Cel")[:2] {
		policies = append(policies, guard.NewPolicy("house", p))
	}
	var err error
	if h.guard, err = guard.New([]guard.Actuated{{Actuator: h, Policies: policies}}, h.latch); err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); h.guard.Run(ctx) }()
	h.stopGuard = func() { cancel(); <-ended }
	h.runs++
	return numbered{h.guard, h.runs << 32}
}

// offer has the node offer the points of the house, with the unit of its thermometer.
func (h *house) offer(outputs node.Outputs, unit string) {
	desc := device.Description{Points: housePoints(unit)}
	if err := h.node.Replace(node.Site{Name: "a", Outputs: outputs, Devices: []node.Device{{Name: "house", Description: desc, Busy: device.NewMutex()}}}); err != nil {
		h.t.Error(err)
	}
}

func housePoints(unit string) []device.Point {
	return []device.Point{
		{Name: "heater", Kind: device.KindSwitch, Safe: device.Bool(false)}, {Name: "lamp", Kind: device.KindLevel, Range: device.Range{Max: 100}, Safe: device.Number(0)},
		{Name: "temperature", Kind: device.KindMeasurement, Unit: unit}, {Name: "button", Kind: device.KindEvent},
	}
}
