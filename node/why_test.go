package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

// changed is a change of an output.
func changed(seconds, value float64, holder, cause string) deed {
	return deed{agents.Event{Time: stamp(at(seconds)), Value: device.Number(value), Holder: holder, Cause: cause}, at(seconds), true, at(seconds)}
}

// called is a call that took from one time to another; 0 has no end.
func called(who, tool, args string, from, to float64, outcome string) Recorded {
	r := Recorded{Asked: Asked{Who: who, Tool: tool, Args: []byte(args)}, Begun: at(from), Outcome: outcome, Count: 1}
	if to != 0 {
		r.Ended = at(to)
	}
	return r
}

// words renders an event, with its seconds since noon.
func words(e agents.Event) string {
	when, _ := time.Parse(time.RFC3339, e.Time)
	text := fmt.Sprintf("%v %v", when.Sub(noon).Seconds(), e.Value)
	for _, part := range [][2]string{{" held by ", e.Holder}, {" because ", e.Cause}, {" by ", e.By}, {" via ", strings.Join(e.Via, ",")}, {" ", e.Tool}, {": ", e.Outcome}, {", ", e.Says}} {
		if part[1] != "" {
			text += part[0] + part[1]
		}
	}
	if e.Times > 0 {
		text += fmt.Sprintf(" ×%d", e.Times)
	}
	return text
}

// TestChain joins changes with calls.
func TestChain(t *testing.T) {
	const set30 = `{"output":"lever/arm","value":30}`
	again := called("ann", "set_level", set30, 10, 500, Done)
	again.Count = 12
	for _, tt := range []struct {
		name         string
		changes      []deed // newest first
		calls, stops []Recorded
		want         string
	}{
		{"nothing", nil, nil, nil, ""},
		{"a move, and its end", []deed{changed(70, 0, "", "its lease was over"), changed(10.2, 30, "ann", "")},
			[]Recorded{called("ann", "set_level", set30, 10, 10.5, Done)}, nil,
			"70 0 because its lease was over; 10.2 30 held by ann by ann set_level: done"},
		{"a release, after one that nobody asked for", []deed{changed(20, 0, "", ""), changed(15, 30, "ann", ""), changed(14, 0, "", "its lease was over"), changed(11, 0, "", "")},
			[]Recorded{called("ann", "set_level", set30, 15, 15.1, Done), called("bob", "release_output", `{"output":"lever/arm"}`, 20.1, 20.1, Done)}, nil,
			"20 0 by bob release_output: done; 15 30 held by ann by ann set_level: done; 14 0 because its lease was over; 11 0"},
		{"two releases within seconds", []deed{changed(12, 0, "", ""), changed(11, 30, "ann", ""), changed(10, 0, "", "")},
			[]Recorded{called("ann", "release_output", `{"output":"lever/arm"}`, 10.1, 10.1, Done), called("bob", "release_output", `{"output":"lever/arm"}`, 12.1, 12.1, Done)}, nil,
			"12 0 by bob release_output: done; 11 30 held by ann; 10 0 by ann release_output: done"},
		{"an emergency stop takes what it returned", []deed{changed(20, 0, "", guard.WhyStopped)}, nil,
			[]Recorded{called("own", "emergency_stop", `{}`, 20.3, 20.3, Done)}, "20 0 because everything was sent to safe by own emergency_stop: done"},
		{"and not what ended shortly before", []deed{changed(19, 0, "", "its lease was over")}, nil,
			[]Recorded{called("own", "emergency_stop", `{}`, 20.3, 20.3, Done)}, "19 0 because its lease was over"},
		{"a take-over", []deed{changed(20, 30, "own", ""), changed(10, 30, "ann", "")},
			[]Recorded{called("own", "take-over", `{"name":"lever/arm"}`, 20.1, 20.1, Done)}, nil, "20 30 held by own by own take-over: done; 10 30 held by ann"},
		{"a call that failed", []deed{changed(11, 30, "ann", "")},
			[]Recorded{called("ann", "set_level", set30, 10.9, 11.1, "offline")}, nil, "11 30 held by ann; 10.9 30 by ann set_level: offline"},
		{"a crash after the move", []deed{changed(30, 0, "", "the site was started"), changed(10.1, 30, "ann", "")},
			[]Recorded{called("ann", "set_level", set30, 10, 0, "unknown_outcome")}, nil,
			"30 0 because the site was started; 10.1 30 held by ann by ann set_level: unknown_outcome"},
		{"a crash of which the history has nothing", []deed{changed(30, 0, "", "the site was started")},
			[]Recorded{called("ann", "set_level", set30, 10, 0, "unknown_outcome")}, nil,
			"30 0 because the site was started; 10 30 by ann set_level: unknown_outcome"},
		{"a call that runs", nil, []Recorded{called("ann", "set_level", set30, 10, 0, "")}, nil, "10 30 by ann set_level: running"},
		{"renewals", []deed{changed(10.1, 30, "ann", "")}, []Recorded{again}, nil, "10.1 30 held by ann by ann set_level: done ×12"},
		{"renewals, of which the history lost the first", []deed{changed(400, 30, "ann", ""), changed(200, 0, "", "the site was started")}, []Recorded{again}, nil,
			"400 30 held by ann by ann set_level: done ×12; 200 0 because the site was started; 10 30 by ann set_level: done ×12"},
	} {
		var got []string
		for _, d := range chain(tt.changes, tt.calls, tt.stops, device.Number(0)) {
			got = append(got, words(d.Event))
		}
		if s := strings.Join(got, "; "); s != tt.want {
			t.Errorf("%s:\n%s, want\n%s", tt.name, s, tt.want)
		}
	}
}

// pastOf is a history of changes.
type pastOf struct {
	History
	all []deed // oldest first
}

func (p pastOf) Changes(_ string, from, to time.Time, yield func(device.Change) bool) {
	for _, d := range p.all {
		if !d.at.Before(from) && d.at.Before(to) && !yield(device.Change{At: d.at, Value: d.Value, Holder: d.Holder, Cause: d.Cause}) {
			return
		}
	}
}

// TestRampIsOneChange: many small steps are one change, with the value to which they led.
func TestRampIsOneChange(t *testing.T) {
	now := time.Now()
	var all []deed
	add := func(ago, value float64, holder string) {
		all = append(all, deed{Event: agents.Event{Value: device.Number(value), Holder: holder}, at: now.Add(-time.Duration(ago * float64(time.Second)))})
	}
	for i := range 60 { // an hour ago
		add(3590-float64(i)/50, float64(i), "ann")
	}
	add(3000, 100, "ann") // not a ramp
	for i := range 100 {
		add(2900-float64(i)/50, float64(99-i), "")
	}
	v := &view{site: &site{Site: Site{History: pastOf{all: all}}}}
	got := v.lastChanges(guard.Policy{Output: arm, Range: device.Range{Max: 100}, Slew: guard.Slew{PerSecond: 50}})
	if len(got) != 3 || got[0].Value != device.Number(0) || got[1].Value != device.Number(100) || got[2].Value != device.Number(59) {
		t.Errorf("%+v", got)
	}
	if got := v.lastChanges(guard.Policy{Output: arm, Range: device.Range{Max: 100}}); len(got) < maxDeeds || len(got) > 2*maxDeeds {
		t.Errorf("%d changes of an output without ramps", len(got))
	}
}

func TestOtherValue(t *testing.T) {
	level := guard.Policy{Safe: device.Number(20), Range: device.Range{Min: 10, Max: 20}}
	for _, tt := range []struct {
		policy     guard.Policy
		goal, want device.Value
	}{
		{guard.Policy{Safe: device.Bool(true)}, device.Bool(true), device.Bool(false)},
		{guard.Policy{Safe: device.Bool(true)}, device.Bool(false), device.Bool(true)},
		{level, device.Number(20), device.Number(10)},
		{level, device.Number(15), device.Number(20)},
		{guard.Policy{Safe: device.Number(0), Range: device.Range{Max: 100}}, device.Number(0), device.Number(100)},
	} {
		if got := otherValue(tt.policy, tt.goal); got != tt.want {
			t.Errorf("beside %v: %v, want %v", tt.goal, got, tt.want)
		}
	}
}

// heldLever is a lever that somebody holds.
type heldLever struct {
	*lever
	holder string
}

func (h heldLever) Status() []guard.Status {
	s := h.lever.status()
	s.Holder, s.Left = h.holder, 30*time.Second
	return []guard.Status{s}
}

func (h heldLever) StatusOf(output string) (guard.Status, bool) {
	return h.Status()[0], output == arm
}

// TestWhy asks as an owner, and as somebody who sees a part of the site.
func TestWhy(t *testing.T) {
	d := newDesk()
	l := &leaves{may: map[string][]string{"token:shy": {"read_points lever/arm", "read_history lever/arm"}, "token:shyer": {"read_points lever/arm"}}}
	d.access = l
	d.lever.at = 30
	d.refuses = device.Faultf(device.Busy, "held by did:owner").Naming("held by somebody else", "did:owner")
	d.site.Outputs = heldLever{d.lever, "did:owner"}
	begun := time.Now().Add(-20 * time.Second)
	d.site.History = pastOf{all: []deed{{Event: agents.Event{Value: device.Number(30), Holder: "did:owner"}, at: begun}}}
	d.setSite()
	d.book.recent = map[string][]Recorded{
		arm: {
			{Asked: Asked{Who: "did:owner", Tool: "set_level", Args: []byte(`{"output":"lever/arm","value":30}`), Via: []string{"llm:house"}}, Begun: begun, Ended: begun, Outcome: Done, Count: 1},
			{Asked: Asked{Who: "ann", Tool: "set_level", Args: []byte(`{"output":"lever/arm","value":40}`)}, Begun: begun.Add(time.Second), Ended: begun.Add(time.Second), Outcome: "busy", Says: "held by did:owner", Count: 1},
		},
	}
	ask := func(p agents.Principal) agents.Why {
		t.Helper()
		w, err := d.Why(t.Context(), p, agents.WhyRequest{Point: arm})
		if err != nil {
			t.Fatal(err)
		}
		if w.Output == nil || w.Held < 20 || w.Held > 30 || w.Other != device.Number(0) || w.Output.Left != 30 {
			t.Errorf("%s: %+v, output %+v", p.ID, w, w.Output)
		}
		return w
	}
	w := ask(own)
	if w.Output.Holder != "did:owner" || w.Name != "name of did:owner" || len(w.Via) != 1 || w.Via[0] != "llm:house" || w.Refused != "held by did:owner" {
		t.Errorf("an owner is told %+v", w)
	}
	if len(w.Changes) != 2 || w.Changes[0].By != "ann" || w.Changes[0].Says != "held by did:owner" || w.Changes[1].Via[0] != "llm:house" || w.Changes[1].Holder != "did:owner" {
		t.Errorf("an owner is told of %+v", w.Changes)
	}
	w = ask(shy)
	if text := fmt.Sprintf("%+v %+v", w, w.Output); strings.Contains(text, "did:owner") || strings.Contains(text, "ann") || strings.Contains(text, "llm:") {
		t.Errorf("who sees a part is told %s", text)
	}
	if w.Output.Holder != "somebody else" || w.Refused != "held by somebody else" || len(w.Changes) != 2 || w.Changes[1].By != "somebody else" {
		t.Errorf("who sees a part is told %+v", w)
	}
	if w = ask(agents.Principal{ID: "token:shyer"}); w.Changes != nil {
		t.Errorf("who may not see the past is told %+v", w.Changes)
	}
	for _, point := range []string{"", "lever/none", "lever/b"} {
		if _, err := d.Why(t.Context(), shy, agents.WhyRequest{Point: point}); err == nil || strings.Contains(err.Error(), "did you mean lever/a?") {
			t.Errorf("%q: %v", point, err)
		}
	}
	if w, err := d.Why(t.Context(), own, agents.WhyRequest{Point: "lever/a"}); err != nil || w.Output != nil || w.Changes != nil || w.Quality != device.Stale {
		t.Errorf("a measurement: %+v, %v", w, err)
	}
}

// TestNoteRevoked: the return that follows a revocation is in the chain.
func TestNoteRevoked(t *testing.T) {
	d := newDesk()
	d.NoteRevoked(arm)
	if len(d.added) != 1 || d.added[0].Tool != "release_output" || string(d.added[0].Args) != `{"output":"lever/arm"}` || d.added[0].Who != "site" {
		t.Errorf("%+v", d.added)
	}
}

// TestVia: the chain of a call is in the journal in characters that people read, with the name
// that another site gave its agent at its end. A chain that is too long, or that names this site,
// is refused, and nothing moves.
func TestVia(t *testing.T) {
	d, l := seenDesk()
	l.agent = "frost"
	d.self = func(name string) bool { return name == "me" }
	move := func(via ...string) error {
		_, err := d.Node.Move(t.Context(), shy, agents.MoveRequest{Output: "lever/arm", Value: device.Number(3), Terms: agents.Terms{Via: via}})
		return err
	}
	if err := move("did:a", "a\x1b[2Jb", strings.Repeat("x", 100), "llm:house"); err != nil {
		t.Fatal(err)
	}
	if s := strings.Join(d.asked[shy.ID].Via, " "); s != "did:a ? ? llm:house frost" {
		t.Error(s)
	}
	for _, via := range [][]string{{"did:a", "me"}, {"me"}, {"a", "b", "c", "d", "e"}} {
		if err := move(via...); device.AsFault(err).Kind != device.Denied {
			t.Errorf("%v: %v", via, err)
		}
		if err := d.CheckVia(shy, "tools/list", via); device.AsFault(err).Kind != device.Denied {
			t.Errorf("%v: %v", via, err)
		}
	}
	if n := strings.Count(strings.Join(d.events, " "), "begin"); n != 1 {
		t.Errorf("%d calls began", n)
	}
}

// movesConfirmed are permissions whose moves an owner has to confirm.
type movesConfirmed struct{ *leaves }

func (l movesConfirmed) May(p agents.Principal, ask agents.Ask) (agents.Limits, error) {
	limits, err := l.leaves.May(p, ask)
	limits.Confirm = ask.Op == agents.OpMove
	return limits, err
}

func (l movesConfirmed) Take(p agents.Principal, ask agents.Ask, _ bool) (agents.Limits, error) {
	return l.May(p, ask)
}

// TestRehearsePermission: a value that is asked about is refused by a permission before the guard is asked,
// and that of a longer lease too. Nothing moves, and nothing is charged.
func TestRehearsePermission(t *testing.T) {
	d := newDesk()
	l := &leaves{may: map[string][]string{"token:shy": {"read_points lever/arm"}, "token:arm": {"read_points lever/arm", "set_level lever/arm", "set_level"}}}
	l.limits = agents.Limits{Lease: 20 * time.Second}
	d.access = movesConfirmed{l}
	ask := func(p agents.Principal, r agents.WhyRequest) agents.Why {
		t.Helper()
		r.Point = arm
		w, err := d.Why(t.Context(), p, r)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	five := agents.WhyRequest{Value: device.Number(5)}
	if w := ask(agents.Principal{ID: "token:arm"}, five); w.Refused != "" || w.Holds != 20 || w.Other != device.Number(5) || w.Output.Confirm != "owner" {
		t.Errorf("%+v, %+v", w, w.Output)
	}
	if w := ask(own, five); w.Refused != "" || w.Holds != 60 || w.Output.Confirm != "" {
		t.Errorf("%+v, %+v", w, w.Output)
	}
	_, err := d.Node.Move(t.Context(), agents.Principal{ID: "token:arm"}, agents.MoveRequest{Output: arm, Value: device.Number(5)})
	if all, _ := d.Requests(own); len(all) != 1 || all[0].Holds != 20*time.Second {
		t.Errorf("the approval that it then waits for: %+v, %v", all, err)
	}
	if w := ask(own, agents.WhyRequest{Value: device.Number(0)}); w.Refused != "" || w.Holds != 0 {
		t.Errorf("a return to safe: %+v", w)
	}
	if w := ask(shy, five); w.Refused == "" || w.Holds != 0 {
		t.Errorf("who may only read: %+v", w)
	}
	if w := ask(shy, agents.WhyRequest{}); w.Refused != "" || w.Other != device.Number(100) {
		t.Errorf("without a value: %+v", w)
	}
	for _, r := range []agents.WhyRequest{
		{Point: arm, Value: device.Bool(true)}, {Point: arm, Value: device.Number(101)}, {Point: arm, For: new(-1.0)}, {Point: "lever/a", Value: device.Number(1)}, {Point: "lever/a", For: new(1.0)},
	} {
		if _, err := d.Why(t.Context(), own, r); err == nil || device.AsFault(err).Kind != device.Invalid {
			t.Errorf("%+v: %v", r, err)
		}
	}
	if got := strings.Join(d.events, " "); strings.Contains(got, "move") || strings.Contains(got, "begin") || len(d.refused) > 0 {
		t.Errorf("%s, refused %v", got, d.refused)
	}
}

// TestRefusedFor: for how long a value is refused is a number, but for who does not see the point on which
// that depends.
func TestRefusedFor(t *testing.T) {
	d := newDesk()
	d.access = &leaves{may: map[string][]string{"token:shy": {"read_points lever/arm", "set_level lever/arm"}}}
	for _, tt := range []struct {
		refuses    *device.Fault
		owner, shy float64
	}{
		{device.Faultf(device.Unsafe, "it rests").In(5 * time.Second), 5, 5},
		{device.Faultf(device.Busy, "held by ann").Naming("held", "ann").In(5 * time.Second), 5, 5},
		{device.Faultf(device.Unsafe, "interlocked with lever/b, which ann holds").Naming("interlocked", "lever/b", "ann").In(5 * time.Second), 5, 0},
		{device.Faultf(device.Unsafe, "it needs lever/b"), 0, 0},
	} {
		d.refuses = tt.refuses
		for _, asked := range []struct {
			p    agents.Principal
			want float64
		}{{own, tt.owner}, {shy, tt.shy}} {
			w, err := d.Why(t.Context(), asked.p, agents.WhyRequest{Point: arm, Value: device.Number(1)})
			if err != nil || w.Until != asked.want || w.Kind != string(tt.refuses.Kind) || w.Holds != 0 {
				t.Errorf("%v, asked by %s: %+v, %v", tt.refuses, asked.p.ID, w, err)
			}
			_, err = d.Node.Move(t.Context(), asked.p, agents.MoveRequest{Output: arm, Value: device.Number(1)})
			if got := device.AsFault(err).After.Seconds(); got != asked.want {
				t.Errorf("%v, moved by %s: %v", tt.refuses, asked.p.ID, got)
			}
		}
	}
}

// TestTitles: a name that the owner gave a point is in its list and its explanation, for who sees the point.
func TestTitles(t *testing.T) {
	d := newDesk()
	d.site.Devices[0].Description.Points[0].Title, d.site.Devices[0].Description.Points[1].Title = "Arm", "Hidden"
	d.setSite()
	d.access = &leaves{may: map[string][]string{"token:shy": {"read_points lever/arm", "list_points", "list_points lever/arm"}}}
	for p, want := range map[agents.Principal]int{own: 3, shy: 1} {
		list, err := d.Points(t.Context(), p, agents.SiteRequest{})
		if err != nil || len(list.Points) != want || list.Points[0].Name != "Arm" {
			t.Errorf("%s: %+v, %v", p.ID, list, err)
		}
		w, err := d.Why(t.Context(), p, agents.WhyRequest{Point: arm})
		if err != nil || w.Title != "Arm" {
			t.Errorf("%s: %+v, %v", p.ID, w, err)
		}
	}
}
