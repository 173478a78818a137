package tools_test

import (
	"encoding/json"
	"fmt"
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

// TestRehearsal: what is told of a move is what comes of it, for each value and length; and nothing moves
// before.
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
