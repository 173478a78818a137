package guard

import (
	"testing"
	"time"

	"agentsite/device"

	"pgregory.net/rapid"
)

// TestTry: if Try refuses a move, Move refuses it in the same words; otherwise it moves. Try
// changes nothing.
func TestTry(t *testing.T) {
	refused, moved := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		policies := modelPolicies()
		m := NewMachine(policies, false)
		now := Time(0)
		for i, p := range policies {
			m.Applied(now, i, p.Safe, nil)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += Time(rapid.Int64Range(0, int64(30*time.Second)).Draw(t, "pause"))
			m.Told(now, tankLevel, true, device.Number(50), 0)
			m.Tick(now)
			i := rapid.IntRange(0, len(policies)-1).Draw(t, "output")
			p := policies[i]
			v := device.Bool(rapid.Bool().Draw(t, "on"))
			if p.Kind == device.KindLevel {
				v = device.Number(rapid.Float64Range(-200, 200).Draw(t, "value"))
			}
			holder := rapid.SampledFrom([]string{"anna", "bert", ""}).Draw(t, "holder")
			length := rapid.SampledFrom([]time.Duration{0, -1, time.Second, time.Minute, time.Hour}).Draw(t, "length")
			before := m.Status(now, i)
			tried := m.Try(now, holder, p.Output, v, length)
			if after := m.Status(now, i); after != before {
				t.Fatalf("trying %s %v changed %+v into %+v", p.Output, v, before, after)
			}
			err := m.Move(now, holder, p.Output, v, length)
			if (tried == nil) != (err == nil) || err != nil && tried.Error() != err.Error() {
				t.Fatalf("%s %v: tried %v, moved %v", p.Output, v, tried, err)
			}
			if err == nil {
				moved++
				m.Applied(now, i, m.outputs[i].want, nil)
			} else {
				refused++
			}
		}
	})
	if moved == 0 || refused == 0 {
		t.Errorf("%d moves and %d refusals show nothing", moved, refused)
	}
}
