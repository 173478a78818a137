package rule_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents/rule"
	"agentsite/device"
	"agentsite/node"
)

// TestAgeIsLookedUp: an age that a condition did not ask for a long time, or that is asked for at an
// event, is that of the last sample, although a watch tells no sample that is like the one before.
func TestAgeIsLookedUp(t *testing.T) {
	old := "age(" + temperature + ") > 10m"
	for name, of := range map[string]*rule.Rule{
		"level": {When: lamp + " > 50 and " + old, Hold: map[string]device.Value{heater: on}},
		"edge":  {On: button, If: old, Do: []rule.Step{{Set: map[string]device.Value{heater: on}, For: time.Minute}}},
	} {
		for _, watched := range []bool{false, true} {
			inHouse(t, func(h *house) {
				h.watch = watched
				ctx, cancel := context.WithCancel(context.Background())
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					h.hub.Sample(ctx, []node.Source{{Name: "house", Device: thermometer{}, Every: 10 * time.Second}})
				}()
				_, end := h.run(of, self)
				cause := func() {
					h.put(lamp, device.Number(90))
					h.put(button, device.Text("pressed"))
				}
				h.put(lamp, device.Number(0))
				time.Sleep(time.Hour)
				cause()
				if s, _ := h.guard.StatusOf(heater); s.Holder != "" {
					t.Errorf("%s, watched %v: it moved the heater, though the thermometer was read 10s ago", name, watched)
				}
				cancel()
				<-ended
				h.put(lamp, device.Number(0))
				time.Sleep(15 * time.Minute)
				cause()
				synctest.Wait()
				if s, _ := h.guard.StatusOf(heater); s.Holder != self.ID {
					t.Errorf("%s, watched %v: it does not move the heater, though the thermometer was not read for long", name, watched)
				}
				end()
			})
		}
	}
}

// TestDueWhileHeldBack: what is due while updates are held back is decided by the present value.
func TestDueWhileHeldBack(t *testing.T) {
	for _, watched := range []bool{false, true} {
		inHouse(t, func(h *house) {
			h.watch = watched
			r := holdHeater(temperature + " < 5 Cel")
			r.For, r.Hold = 30*time.Second, map[string]device.Value{heater: on}
			_, end := h.run(r.rule(), self)
			h.temperature(4)
			time.Sleep(29*time.Second + 300*time.Millisecond)
			for i := range rule.PerSecond + 1 {
				h.feed <- device.Reading{Point: temperature, Value: device.Number(4 - float64(i)/100), Quality: device.Good, At: time.Now()}
				synctest.Wait()
			}
			h.feed <- device.Reading{Point: temperature, Value: device.Number(20), Quality: device.Good, At: time.Now()}
			time.Sleep(time.Minute)
			h.wantWrites("")
			end()
		})
	}
}
