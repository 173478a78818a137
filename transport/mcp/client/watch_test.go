package client

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/transport/rpc"
)

const (
	acked     = "notifications/subscriptions/acknowledged"
	valued    = "notifications/agentsite/values"
	ours      = `"_meta":{"io.modelcontextprotocol/subscriptionId":1}`
	theirs    = `"_meta":{"io.modelcontextprotocol/subscriptionId":2}`
	willValue = `{"_meta":{"io.modelcontextprotocol/subscriptionId":1,"agentsite/values":0}}`
)

func detail(of agents.OutputState) *agents.OutputDetail { return &agents.OutputDetail{OutputState: of} }

// TestWatch checks what a client asks for, and that all that a slow watcher was not told yet
// is one update.
func TestWatch(t *testing.T) {
	f := &far{says: `{"resultType":"complete"}`, notes: [][2]string{
		{valued, `{"points":[{"point":"x/y"}],` + theirs + `}`},
		{acked, willValue},
		{"notifications/tools/list_changed", `{` + ours + `}`}, // not asked for
		{valued, `{"points":[{"point":"a/t","unit":"Cel"},{"point":"a/r"}],"readings":[{"i":0,"age_seconds":1,"quality":"stale","why":"no"},` +
			`{"i":1,"value":true,"age_seconds":2,"output":{"held_by":"ann","seconds_left":3,"going_to":false}}],"approvals":[],"emergency_stop":false,"new":1,` + ours + `}`},
		{valued, `{"readings":[{"i":7}],` + theirs + `}`},
		{valued, `{"readings":[{"i":0,"value":4,"age_seconds":0}],` + ours + `}`},
		{valued, `{"emergency_stop":true,"approvals":[{"handle":"H","caller":"c","tool":"t","arguments":"{}","seconds_left":9}],` + ours + `}`},
	}}
	watch := func(r agents.WatchRequest) (told []agents.Update, err error) {
		synctest.Test(t, func(t *testing.T) { // ages stay what they are
			err = New(f, "test", "1").Watch(t.Context(), agents.Principal{}, r, func(u agents.Update) error { told = append(told, u); return nil })
		})
		return told, err
	}
	// Changes before the last of the notes may have been emitted before.
	for range 100 {
		told, err := watch(agents.WatchRequest{Points: []string{"a/t", "a/r"}, Every: 60})
		if device.AsFault(err).Kind != device.Offline {
			t.Fatal("a graceful end:", err)
		}
		last := told[len(told)-1]
		if told[0].Offer || len(told) == 1 && !reflect.DeepEqual(last, agents.Update{
			Readings: []agents.Reading{
				{Point: "a/t", Value: device.Number(4), Unit: "Cel", Quality: device.Good},
				{Point: "a/r", Value: device.Bool(true), Age: 2, Quality: device.Good, Detail: detail(agents.OutputState{Goal: device.Bool(false), Holder: "ann", Left: 3})},
			},
			Approvals: []agents.Approval{{Handle: "H", Caller: "c", Tool: "t", Args: "{}", Left: 9}}, Stops: []agents.StopState{{Stopped: true}},
		}) {
			t.Fatalf("%+v", told)
		}
	}
	asked := `{` + strings.TrimSuffix(who, "}") + `,"agentsite/values":60},"notifications":{"resourceSubscriptions":["agentsite:///a/t","agentsite:///a/r"]}}`
	if f.text != asked {
		t.Errorf("asked %s, want %s", f.text, asked)
	}

	f.notes = [][2]string{{acked, `{` + ours + `}`}, {valued, `{"points":[],` + ours + `}`}}
	if told, err := watch(agents.WatchRequest{}); device.AsFault(err).Kind != device.Unavailable || told != nil {
		t.Errorf("a site that knows no values: %+v %v", told, err)
	}
	if told, err := watch(agents.WatchRequest{OfferOnly: true}); !reflect.DeepEqual(told, []agents.Update{{}}) {
		t.Errorf("%+v %v", told, err)
	}
	if want := `{` + who + `,"notifications":{"toolsListChanged":true,"resourceSubscriptions":[]}}`; f.text != want {
		t.Errorf("asked %s, want %s", f.text, want)
	}
	if _, err := watch(agents.WatchRequest{Every: math.NaN()}); device.AsFault(err).Kind != device.Invalid {
		t.Error(err)
	}
	gone := errors.New("gone")
	if err := New(f, "test", "1").Watch(t.Context(), agents.Principal{}, agents.WatchRequest{OfferOnly: true}, func(agents.Update) error { return gone }); err != gone {
		t.Error(err)
	}
}

// TestWatchSlow checks that ages and lengths are those of the call of emit, however long the
// one before took.
func TestWatchSlow(t *testing.T) {
	w := &updates{id: rpc.NumberID(1), some: make(chan struct{}, 1)}
	told := func(members string) { w.heard(valued, rpc.RawJSON([]byte(`{`+members+`,`+ours+`}`))) }
	synctest.Test(t, func(t *testing.T) {
		told(`"points":[{"point":"a/t"},{"point":"a/r"}],"readings":[{"i":0,"age_seconds":1},{"i":1,"age_seconds":2,"output":{"seconds_left":90,"rest_seconds":9}}]`)
		time.Sleep(time.Minute)
		told(`"readings":[{"i":0,"age_seconds":3}],"approvals":[{"handle":"H","seconds_left":120},{"handle":"I","seconds_left":5}]`)
		time.Sleep(10 * time.Second)
		u, _, err := w.take()
		if err != nil || !reflect.DeepEqual(u.Readings, []agents.Reading{
			{Point: "a/t", Age: 13, Quality: device.Good}, {Point: "a/r", Age: 72, Quality: device.Good, Detail: detail(agents.OutputState{Left: 20})},
		}) || !reflect.DeepEqual(u.Approvals, []agents.Approval{{Handle: "H", Left: 110}, {Handle: "I"}}) {
			t.Errorf("%+v %v", u, err)
		}
	})
}

// updateOf merges notifications with these members, after a snapshot of a/t and a/r.
func updateOf(members ...string) (agents.Update, error) {
	w := &updates{id: rpc.NumberID(1), some: make(chan struct{}, 1)}
	for _, m := range append([]string{`"points":[{"point":"a/t"},{"point":"a/r"}]`}, members...) {
		w.heard(valued, rpc.RawJSON([]byte(`{`+m+`,`+ours+`}`)))
	}
	u, _, err := w.take()
	return u, err
}

// TestValuesAgainstProtocol: a notification that violates the protocol ends the watch.
func TestValuesAgainstProtocol(t *testing.T) {
	many := func(n int, format string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(format, i))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	for what, members := range map[string][]string{
		"an index beyond the table":    {`"readings":[{"i":2,"age_seconds":0}]`},
		"a negative index":             {`"readings":[{"i":-1,"age_seconds":0}]`},
		"no index":                     {`"readings":[{"age_seconds":0}]`},
		"a fraction as an index":       {`"readings":[{"i":0.5,"age_seconds":0}]`},
		"an index of the table before": {`"points":[{"point":"a/t"}]`, `"readings":[{"i":1,"age_seconds":0}]`},
		"a negative age":               {`"readings":[{"i":0,"age_seconds":-1}]`},
		"a negative lease":             {`"readings":[{"i":0,"age_seconds":0,"output":{"seconds_left":-1}}]`},
		"a negative approval":          {`"approvals":[{"seconds_left":-1}]`},
		"a value that is a list":       {`"readings":[{"i":0,"age_seconds":0,"value":[1]}]`},
		"readings that are no list":    {`"readings":{}`},
		"a point that comes twice":     {`"points":[{"point":"a/t"},{"point":"a/t"}]`},
		"a name that is no address":    {`"points":[{"point":"a/../b"}]`},
		"a point of a group":           {`"points":[{"point":"s/a/t"}]`},
		"too many points":              {`"points":` + many(maxTable+1, `{"point":"a/p%d"}`)},
		"too many approvals":           {`"approvals":` + many(maxApprovals+1, `{"handle":"%d"}`)},
		"too many sites":               {`"sites":` + many(maxSites+1, `{"site":"%d"}`)},
		"too many sites, one by one":   {`"sites":` + many(maxSites, `{"site":"%d"}`), `"sites":` + many(maxSites, `{"site":"x%d"}`)},
		"a long text":                  {`"readings":[{"i":0,"age_seconds":0,"why":"` + strings.Repeat("x", maxText+1) + `"}]`},
		"a long text of an output":     {`"readings":[{"i":0,"age_seconds":0,"output":{"needs":"` + strings.Repeat("x", maxText+1) + `"}}]`},
		"a long value":                 {`"readings":[{"i":0,"age_seconds":0,"value":"` + strings.Repeat("x", maxText+1) + `"}]`},
	} {
		var unexpected *UnexpectedError
		if u, err := updateOf(members...); !errors.As(err, &unexpected) {
			t.Errorf("%s: %+v %v", what, u, err)
		}
	}
	w := &updates{id: rpc.NumberID(1), some: make(chan struct{}, 1)}
	w.heard(valued, rpc.RawJSON([]byte(`{"emergency_stop":true,`+ours+`}`)))
	if _, _, err := w.take(); err == nil {
		t.Error("values without a snapshot are taken")
	}
	u, err := updateOf(`"points":` + many(maxTable, `{"point":"a/p%d"}`))
	if err != nil || !u.Offer {
		t.Error("as many points as there may be:", err)
	}
	if u, err = updateOf(`"sites":[{"site":"a","emergency_stop":true}],"not_answered":[{"site":"b","why":"away"}]`, `"sites":[{"site":"c"},{"site":"a"}]`); err != nil ||
		!reflect.DeepEqual(u.Stops, []agents.StopState{{Site: "a"}, {Site: "c"}}) || len(u.Missed) != 1 {
		t.Errorf("%+v %v", u, err)
	}
}

func FuzzValues(f *testing.F) {
	for _, m := range []string{
		`"points":[{"point":"a/b","unit":"Cel"}],"readings":[{"i":0,"value":1.5,"age_seconds":0}]`, `"points":[],"approvals":[],"sites":[{"site":"a"}]`,
		`"readings":[{"i":1,"value":true,"age_seconds":1,"output":{"held_by":"x","seconds_left":2}}],"not_answered":[]`,
	} {
		text := `{` + m + `,` + ours + `}`
		f.Add([]byte(text), false)
		var b bytes.Buffer
		if err := rpc.CBOR.Encode(&b, rpc.RawJSON([]byte(text))); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes(), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, cbor bool) {
		codec := rpc.JSON
		if cbor {
			codec = rpc.CBOR
		}
		var raw rpc.Raw
		if codec.Decode(b, &raw) != nil {
			return
		}
		w := &updates{id: rpc.NumberID(1), some: make(chan struct{}, 1)}
		w.heard(valued, rpc.RawJSON([]byte(`{"points":[{"point":"a/t"},{"point":"a/r"}],`+ours+`}`)))
		w.heard(valued, raw)
		w.heard(valued, raw)
		u, ok, err := w.take()
		if !ok || err != nil {
			return
		}
		if len(u.Readings) > max(len(w.table), 2) || len(u.Approvals) > maxApprovals || len(u.Stops) > maxSites+1 {
			t.Errorf("%d readings of %d points, %d approvals, %d sites", len(u.Readings), len(w.table), len(u.Approvals), len(u.Stops))
		}
		seen := make(map[string]bool)
		for _, r := range u.Readings {
			if !addressForm().MatchString(r.Point) || seen[r.Point] || !r.Value.Finite() || !(r.Age >= 0) {
				t.Errorf("%+v", r)
			}
			seen[r.Point] = true
		}
	})
}
