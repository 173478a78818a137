package events

import (
	"testing"

	"agentsite/agents/event"
	"agentsite/device"
	"agentsite/node/history"
)

// FuzzCursor: no cursor but a site's own is taken, and each of those comes back as it was.
func FuzzCursor(f *testing.F) {
	f.Add("", int64(0), uint16(0), 1.0)
	f.Add("AAAA", int64(1<<40), uint16(3), -1e300)
	s := newSealer("secret")
	pl := &plan{who: ann, name: PointCrossed, canonical: []byte(
		"{}",
	), points: points[:2], addresses: []string{points[0].Point, points[1].Point}}
	f.Fuzz(func(t *testing.T, cursor string, at int64, n uint16, v float64) {
		if _, err := s.open(pl, cursor); err == nil {
			t.Errorf("%q was taken", cursor)
		}
		st := state{run: uint64(at), since: at, told: -at, replay: n, met: n%2 == 0, slots: []slot{
			{point: points[0].Point, Mark: history.Mark{Run: uint32(n), At: at, N: n}, value: device.Number(v), made: at},
			{point: points[1].Point},
		}}
		sealed := s.close(pl, &st)
		got, err := s.open(pl, sealed)
		if err != nil || len(
			got.slots,
		) != 2 || got.slots[0].Mark != st.slots[0].Mark || got.since != at || got.met != st.met {
			t.Fatalf("%+v, %v; want %+v", got, err, st)
		}
		if v == v && got.slots[0].value != st.slots[0].value {
			t.Errorf("%v instead of %v", got.slots[0].value, st.slots[0].value)
		}
		if len(sealed) > maxCursor {
			t.Errorf("%d bytes", len(sealed))
		}
	})
}

// FuzzRequest: arguments are refused, or their canonical form is a request with the same canonical form.
func FuzzRequest(f *testing.F) {
	for _, k := range kinds {
		f.Add(k.name, `{"point":"soil/moisture","below":3}`)
		f.Add(k.name, `{"when":"soil/moisture < 3 %","for":"10m"}`)
	}
	f.Fuzz(func(t *testing.T, name, arguments string) {
		pl, err := parse(ann, event.Request{Name: name, Args: []byte(arguments)})
		if err != nil || pl.resolve(points) != nil {
			return
		}
		again, err := parse(ann, event.Request{Name: name, Args: pl.canonical})
		if err != nil || string(again.canonical) != string(pl.canonical) || again.resolve(points) != nil {
			t.Errorf("%s became %s, %v", arguments, pl.canonical, err)
		}
	})
}
