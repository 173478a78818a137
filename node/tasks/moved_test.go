package tasks

import (
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

// TestMovedBefore: after a start it is told for whom tasks moved outputs of other sites, of ended tasks,
// too, as long as the moves may last.
func TestMovedBefore(t *testing.T) {
	for name, tt := range map[string]struct {
		do   string
		off  time.Duration
		want bool
	}{
		"ended":    {"m", 0, true},
		"at work":  {"mw", 0, true},
		"here":     {"m", 0, false},
		"long ago": {"m", 25 * time.Hour, false},
	} {
		with(t, func(t *testing.T, r *rig) {
			where := "1/x"
			if name == "here" {
				where = "1"
			}
			r.ask(t, ann, request("a", where, tt.do))
			r.stop()
			time.Sleep(tt.off)
			type told struct {
				agent, asker agents.Principal
				output       string
				value        device.Value
			}
			var got []told
			r.moved = func(agent, asker agents.Principal, output string, v device.Value, _ bool, left time.Duration) error {
				if left <= 0 || left > maxHeld {
					t.Error(left)
				}
				got = append(got, told{agent, asker, output, v})
				return nil
			}
			r.start()
			synctest.Wait()
			if len(got) > 1 || (len(got) == 1) != tt.want || tt.want && (got[0].asker != ann || got[0].output != "m1/x/p0" || got[0].value != device.Number(1)) {
				t.Errorf("%s: %+v", name, got)
			}
		})
	}
}
