package rule_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/rule"
	"agentsite/device"
)

// TestFollowLikeWatch: rules that share a runner and follow a site have their outputs as rules with a
// watch each have them, whatever happens.
func TestFollowLikeWatch(t *testing.T) {
	seeds, held := uint64(60), 0
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		var states [2]string
		for i := range states {
			inHouse(t, func(h *house) {
				h.watch = i == 1
				states[i] = h.live(rand.New(rand.NewPCG(seed, 0)))
			})
		}
		if states[0] != states[1] {
			t.Errorf("seed %d: followed: %s\nwatched:  %s", seed, states[0], states[1])
		}
		held += strings.Count(states[0], "rule:")
	}
	if held < int(seeds) {
		t.Errorf("the rules held outputs only %d times", held)
	}
}

// live has two rules live through random events, and returns how the outputs were after them.
func (h *house) live(r *rand.Rand) string {
	high := agents.Principal{ID: "rule:high"}
	of := [2]rule.Rule{
		{When: temperature + " < 5 Cel and age(" + temperature + ") < 2m", For: time.Duration(r.IntN(3)) * 10 * time.Second, Until: temperature + " > 7 Cel", Hold: map[string]device.Value{heater: on}},
		{On: button, If: "not " + heater, Do: []rule.Step{{Set: map[string]device.Value{lamp: device.Number(40)}, For: time.Duration(1+r.IntN(5)) * time.Minute}}},
	}
	if r.IntN(2) == 0 {
		of[1] = rule.Rule{When: heater + " and mean(" + temperature + ", 5m) < 6 Cel", Hold: map[string]device.Value{lamp: device.Number(70)}, Resume: time.Minute}
	}
	kind := rule.Kind(h.world())
	var ends [2]func()
	var states strings.Builder
	begin := func(i int) {
		made := kind.New().(*rule.Rule)
		made.When, made.For, made.Until, made.Hold, made.On, made.If, made.Do, made.Resume = of[i].When, of[i].For, of[i].Until, of[i].Hold, of[i].On, of[i].If, of[i].Do, of[i].Resume
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			var site agents.Site = h.node
			if h.watch {
				site = struct{ agents.Site }{h.node}
			}
			if err := made.Run(ctx, [2]agents.Principal{self, high}[i], site); ctx.Err() == nil {
				h.t.Errorf("the rule ended: %v", err)
			}
		}()
		synctest.Wait()
		ends[i] = func() { cancel(); <-ended }
	}
	begin(0)
	begin(1)
	for range 80 {
		switch r.IntN(12) {
		case 0, 1, 2, 3:
			h.read(temperature, device.Number(3+float64(r.IntN(6))), [...]device.Quality{device.Good, device.Good, device.Good, device.Stale}[r.IntN(4)])
		case 4, 5:
			h.put(button, device.Text("pressed"))
		case 6:
			output, v := heater, on
			if r.IntN(2) == 0 {
				output, v = lamp, device.Number(float64(10*r.IntN(3)))
			}
			if r.IntN(3) == 0 {
				v = device.Value{}
			}
			length := float64(1 + r.IntN(100))
			h.node.Move(context.Background(), owner, agents.MoveRequest{Output: output, Value: v, For: &length})
		case 7:
			if h.guard.Stopped() {
				_, _, stops := h.guard.State()
				h.guard.Reset(stops)
			} else if r.IntN(2) == 0 {
				h.guard.Stop(context.Background())
			}
		case 8:
			h.hub.Announce(agents.Change{Resources: true})
		case 9: // many at once, of which each rule may see other ones, but the last
			celsius := 3 + float64(r.IntN(6))
			for i := range 30 {
				h.feed <- device.Reading{Point: temperature, Value: device.Number(celsius + float64(i)/100), Quality: device.Good, At: time.Now()}
			}
		case 10:
			i := r.IntN(2)
			ends[i]()
			begin(i)
		case 11:
			h.node.Recheck()
		}
		synctest.Wait()
		length := [...]time.Duration{50 * time.Millisecond, time.Second, 15 * time.Second, time.Minute}[r.IntN(4)]
		time.Sleep(length)
		synctest.Wait()
		if length > 2*time.Second { // what comes fast is evaluated together, and then
			for _, s := range h.guard.Status() {
				fmt.Fprintf(&states, "%v %s=%v %s, ", time.Since(h.began).Round(time.Second), s.Output, s.Value, s.Holder)
			}
		}
	}
	ends[0]()
	ends[1]()
	h.took()
	return states.String()
}
