package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
)

// why asks explain_point.
func (r *rig) why(t *testing.T, args string) (w agents.Why) {
	t.Helper()
	res, err := r.call(anna, "explain_point", args)
	if err != nil {
		t.Fatal(err)
	}
	return res.Value.(agents.Why)
}

// TestRehearsal checks that the answer about a move agrees with the move that follows, for each value and length,
// and that asking moves nothing.
func TestRehearsal(t *testing.T) {
	for _, length := range []float64{0, 1, 90, 599, 601} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, wire(t, "greenhouse", "greenhouse"), func(p *guard.Policy) { p.Duty = guard.Duty{Away: 90 * time.Second, Window: time.Hour} })
			defer r.stop()
			time.Sleep(10 * time.Minute) // so that a part of the duty is there
			asked, moved := `{"point":"greenhouse/heater","value":true}`, `{"output":"greenhouse/heater","on":true}`
			if length > 0 {
				asked = fmt.Sprintf(`{"point":"greenhouse/heater","value":true,"for_seconds":%v}`, length)
				moved = fmt.Sprintf(`{"output":"greenhouse/heater","on":true,"for_seconds":%v}`, length)
			}
			w := r.why(t, asked)
			if r.site.Outputs.Status()[0].Value != device.Bool(false) || w.Other != device.Bool(true) {
				t.Fatalf("%v s: %+v", length, w)
			}
			var out agents.Output
			if says := r.says(t, "switch_output", moved); json.Unmarshal([]byte(says), &out) != nil && says != string(device.Invalid)+": "+w.Refused {
				t.Errorf("%v s: refused as %q, and told was %q", length, says, w.Refused)
			}
			if out.Left != w.Holds || (w.Holds == 0) == (w.Refused == "") || w.Holds > 15 {
				t.Errorf("%v s: it holds for %v, and told was %v, %q", length, out.Left, w.Holds, w.Refused)
			}
		})
	}
}

// TestLeftOfLimits: explain_point tells what is left of max_on and of a duty, at safe and away from it, and
// a watch does while the output is away.
func TestLeftOfLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, wire(t, "greenhouse", "greenhouse"), func(p *guard.Policy) { p.Duty = guard.Duty{Away: 90 * time.Second, Window: time.Hour} })
		defer r.stop()
		time.Sleep(30 * time.Minute)
		const heater = "greenhouse/heater"
		of := func() *agents.OutputDetail { return r.why(t, `{"point":"greenhouse/heater"}`).Output }
		first := agents.Allowance{Left: 43.5, Of: 90, Within: 3600, Assumed: 46.5}
		if o := of(); o.MaxOn != (agents.Allowance{Left: 600, Of: 600}) || o.Duty != first {
			t.Errorf("at safe: %+v, %+v", o.MaxOn, o.Duty)
		}
		var latest atomic.Pointer[agents.OutputDetail]
		var updates atomic.Int32
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go r.node.Watch(ctx, anna, agents.WatchRequest{Points: []string{heater}}, func(u agents.Update) error {
			latest.Store(u.Readings[0].Detail)
			updates.Add(1)
			return nil
		})
		synctest.Wait()
		told := latest.Load()
		if told.MaxOn.Of != 0 || told.Duty.Of != 0 {
			t.Errorf("a watch tells at safe: %+v", told)
		}
		r.says(t, "switch_output", `{"output":"greenhouse/heater","on":true,"for_seconds":60}`)
		synctest.Wait()
		told = latest.Load()
		if told.MaxOn.Left != 600 || told.Duty != first || told.Left != 43.5 {
			t.Errorf("a watch tells: %+v", told)
		}
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		told = latest.Load()
		if told.Set.Value != device.Bool(true) || told.Measured.Value != device.Bool(true) || told.Measured.Age > 1 || told.Set.Age < told.Measured.Age {
			t.Errorf("a watch tells of the read-back: %+v", told)
		}
		time.Sleep(8500 * time.Millisecond)
		if o := of(); o.Set.Value != device.Bool(true) || o.Set.Age != 10 || o.Measured.Value != device.Bool(true) || o.Measured.Age > 1 {
			t.Errorf("set to %+v, measured %+v", o.Set, o.Measured)
		}
		if o := of(); o.MaxOn != (agents.Allowance{Left: 590, Of: 600}) || o.Duty.Left != 33.5 {
			t.Errorf("away from safe: %+v, %+v", o.MaxOn, o.Duty)
		}
		updates.Store(0)
		time.Sleep(30 * time.Second) // of read-backs that agree
		synctest.Wait()
		if updates.Load() != 0 {
			t.Errorf("%d updates while nothing changes", updates.Load())
		}
		stop()
		synctest.Wait()
	})
}
