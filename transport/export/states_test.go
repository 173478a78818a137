package export

import (
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

// TestStates: bools are 1 and 0, and repeated while they are so; texts are 1 at the value that they have, if the point
// says what they can be. Events are not repeated. A busy output has all its changes. A point that goes has a marker.
func TestStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "bed/temperature")
		at := func(d time.Duration, v device.Value) agents.Event {
			return agents.Event{Time: r.began.Add(d).UTC().Format(time.RFC3339Nano), Value: v}
		}
		r.points = append(r.points,
			agents.Point{Point: "pump/on", Kind: device.KindSwitch},
			agents.Point{Point: "door/is", Kind: device.KindState, Values: []string{"open", "shut"}},
			agents.Point{Point: "button/pressed", Kind: device.KindEvent},
			agents.Point{Point: "reader/card", Kind: device.KindEvent},
			agents.Point{Point: "busy/level", Kind: device.KindLevel}, agents.Point{Point: "screen/line", Kind: device.KindText},
		)
		r.changes["pump/on"] = []agents.Event{at(-time.Hour, device.Bool(false)), at(-time.Minute, device.Bool(true)), at(-30*time.Second, device.Value{})}
		r.changes["door/is"] = []agents.Event{at(-time.Hour, device.Text("open")), at(-time.Minute, device.Text("shut"))}
		r.changes["button/pressed"] = []agents.Event{at(-time.Minute, device.Bool(true)), at(-time.Minute, device.Bool(true)), at(-30*time.Second, device.Bool(true))}
		r.changes["reader/card"] = []agents.Event{at(-time.Minute, device.Text("04:aa:bb"))}
		r.changes["screen/line"] = []agents.Event{at(-time.Minute, device.Text("hello"))}
		for i := range 3000 {
			r.changes["busy/level"] = append(r.changes["busy/level"],
				at(-5*time.Minute+time.Duration(i)*20*time.Millisecond, device.Number(float64(i))))
		}
		stop := r.run()
		r.sleep(10 * time.Minute)
		r.sleep(30 * time.Second) // after a round
		last := r.agent.told.until
		r.mu.Lock()
		r.points = r.points[1:]
		r.mu.Unlock()
		r.sleep(5 * time.Minute)
		stop()
		of := func(point, value string) (all []sample) {
			labels := "__name__=agentsite_reading point=" + point + " site=garden "
			if value != "" {
				labels += "value=" + value + " "
			}
			return r.got[labels]
		}
		pump := of("pump/on", "")
		if len(pump) < 4 || pump[0].value != 0 || !slices.Contains(pump, sample{"", r.began.Add(-time.Minute).UnixMilli(), 1}) || slices.ContainsFunc(pump, func(s sample) bool { return s.at > r.began.Add(-30*time.Second).UnixMilli() }) {
			t.Errorf("pump: %v", pump)
		}
		open, shut := of("door/is", "open"), of("door/is", "shut")
		if n := len(open); n < 2 || open[n-1] != (sample{"", r.began.Add(-time.Minute).UnixMilli(), 0}) || open[n-2].value != 1 || len(shut) < 10 || shut[0].at != open[n-1].at {
			t.Errorf("door: %v, %v", open, shut)
		}
		if n := len(of("button/pressed", "")); n != 2 {
			t.Errorf("button: %d", n)
		}
		distinct := make(map[float64]bool)
		for _, s := range of("busy/level", "") {
			distinct[s.value] = true
		}
		if len(distinct) != 3000 {
			t.Errorf("%d levels", len(distinct))
		}
		for labels, all := range r.got {
			if strings.Contains(labels, "04:aa") || strings.Contains(labels, "screen") {
				t.Errorf("%s is sent", labels)
			}
			for i := 1; i < len(all); i++ {
				if all[i].at <= all[i-1].at {
					t.Errorf("%s: %d after %d", labels, all[i].at, all[i-1].at)
				}
			}
		}
		bed := r.got[temperature("bed/temperature")]
		if end := bed[len(bed)-1]; math.Float64bits(end.value) != staleBits || end.at != last.UnixMilli()+1 {
			t.Errorf("%v ends with %v, and not at %v", len(bed), end, last)
		}
	})
}

// TestUnread: a point whose history cannot be read does not hold up others, is told, and follows when it can be read.
func TestUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "bed/temperature", "air/temperature")
		r.broken = "bed/temperature"
		stop := r.run()
		r.sleep(10 * time.Minute)
		r.check("air/temperature", r.began.Add(-reach), time.Now().Add(-2*time.Minute), 0)
		if says := r.agent.Report(t.Context()).Says; !strings.Contains(says, "bed/temperature") || !strings.Contains(says, "up to "+r.began.Add(-reach-settled).UTC().Format(time.RFC3339)) {
			t.Error(says)
		}
		r.mu.Lock()
		r.broken = ""
		r.mu.Unlock()
		r.sleep(5 * time.Minute)
		r.check("bed/temperature", r.began.Add(-reach), time.Now().Add(-2*time.Minute), 0)
		stop()
	})
}
