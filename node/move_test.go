package node

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"

	"github.com/go-json-experiment/json"
)

// lever is an agent with one output: the tool move takes it somewhere, 0 is safe.
type lever struct {
	log     *[]string
	refuses error
	fails   error
	confirm bool
	at      float64
}

type leverIn struct {
	To float64 `json:"to"`
}

func (l *lever) Tools() []agents.Tool { return []agents.Tool{{Name: "move"}, {Name: "look"}} }
func (l *lever) Call(_ context.Context, _ agents.Principal, c agents.Call) (agents.Result, error) {
	return agents.Result{Value: l.at}, nil
}

func (l *lever) Plan(p agents.Principal, c agents.Call) (*agents.Plan, error) {
	if c.Tool == "look" {
		return nil, nil
	}
	var in leverIn
	if err := c.Args.Decode(&in); err != nil {
		return nil, device.Faultf(device.Invalid, "%w", err)
	}
	args, _ := json.Marshal(in)
	ask := agents.Ask{Tool: "move", Points: []string{"lever/arm"}, Value: &in.To}
	if in.To == 0 {
		ask.Effect = agents.Returns
	}
	return &agents.Plan{
		Ask: ask, Args: func() ([]byte, error) { return args, nil }, Idle: in.To == 0 && l.at == 0, Confirm: l.confirm,
		Try:  func(context.Context, agents.Limits) error { l.say("try"); return l.refuses },
		Undo: func(context.Context) error { l.say("undo"); l.at = 0; return nil },
		Make: func(ctx context.Context, _ agents.Limits) (agents.Result, error) {
			if ctx.Err() != nil {
				return agents.Result{}, ctx.Err()
			}
			l.say("move %v", in.To)
			if l.fails == nil {
				l.at = in.To
			}
			return agents.Result{Value: map[string]any{"at": l.at, "by": p.ID}}, l.fails
		},
	}, nil
}

func (l *lever) say(format string, args ...any) {
	*l.log = append(*l.log, fmt.Sprintf(format, args...))
}

// book is a journal in memory, as the real one behaves.
type book struct {
	log     *[]string
	full    error
	slow    time.Duration
	known   map[string]*Outcome
	asked   map[string]Asked
	added   []Asked
	refused map[string]int
}

func (b *book) say(s string) { *b.log = append(*b.log, s) }

func (b *book) Replay(a Asked) (*Outcome, error) {
	first, ok := b.asked[a.Who+a.Key]
	switch {
	case a.Key == "" || !ok:
		return nil, nil
	case !reflect.DeepEqual(first, a):
		return nil, device.Faultf(device.Invalid, "reused")
	}
	return b.known[a.Who+a.Key], nil
}

func (b *book) Begin(a Asked) (func(Outcome), *Outcome, error) {
	if b.full != nil {
		return nil, nil, b.full
	}
	time.Sleep(b.slow)
	b.say("begin")
	b.asked[a.Who+a.Key] = a
	return func(o Outcome) { b.say("end " + o.Fault); b.known[a.Who+a.Key] = &o }, nil, nil
}

func (b *book) Add(a Asked, o Outcome) { b.say("add " + a.Tool); b.added = append(b.added, a) }
func (b *book) Deny(who, tool string, kind device.FaultKind) {
	b.refused[who+" "+tool+" "+string(kind)]++
}

// jsonArgs are arguments as they come off the wire.
type jsonArgs string

func (a jsonArgs) Decode(into any) error {
	return json.Unmarshal([]byte(a), into, json.RejectUnknownMembers(true))
}

// desk is a node over a lever and a book.
type desk struct {
	*Node
	*lever
	*book
	events []string
}

func newDesk() *desk {
	d := &desk{}
	d.lever = &lever{log: &d.events}
	d.book = &book{log: &d.events, known: map[string]*Outcome{}, asked: map[string]Asked{}, refused: map[string]int{}}
	d.Node = New(newHub(), "secret", d.book, d.lever)
	return d
}

var (
	ann = agents.Principal{ID: "ann"}
	bob = agents.Principal{ID: "bob"}
	own = agents.Principal{ID: "local", Owner: true}
)

// ask calls move and returns the result or the fault in words, and what happened.
func (d *desk) ask(p agents.Principal, to string, bend ...func(*agents.Call)) (says, happened string) {
	c := agents.Call{Tool: "move", Args: jsonArgs(`{"to":` + to + `}`)}
	for _, b := range bend {
		b(&c)
	}
	d.events = nil
	res, err := d.Node.Call(context.Background(), p, c)
	switch {
	case err != nil:
		f := device.AsFault(err)
		says = string(f.Kind) + ": " + f.Msg
	case res.NeedInput != nil:
		says = "needs " + res.NeedInput.Elsewhere
	default:
		text, _ := json.Marshal(res.Value, json.Deterministic(true))
		says = string(text)
	}
	return says, strings.Join(d.events, ", ")
}

func key(k string) func(*agents.Call)     { return func(c *agents.Call) { c.Terms.Key = &k } }
func within(s float64) func(*agents.Call) { return func(c *agents.Call) { c.Terms.Within = &s } }
func handle(h string) func(*agents.Call)  { return func(c *agents.Call) { c.Exchange.State = h } }
func (d *desk) want(t *testing.T, what, says, happened, wantSays, wantHappened string) {
	t.Helper()
	if !strings.HasPrefix(says, wantSays) || happened != wantHappened {
		t.Errorf("%s: %s (%s), want %s (%s)", what, says, happened, wantSays, wantHappened)
	}
}

func TestMoveOrder(t *testing.T) {
	d := newDesk()
	step := func(what string, p agents.Principal, to, wantSays, wantHappened string, bend ...func(*agents.Call)) {
		t.Helper()
		says, happened := d.ask(p, to, bend...)
		d.want(t, what, says, happened, wantSays, wantHappened)
	}
	step("a move", ann, "5", `{"at":5,"by":"ann"}`, "try, begin, move 5, end ")
	step("again", ann, "5", `{"at":5,"by":"ann"}`, "try, begin, move 5, end ")
	step("to safe", bob, "0", `{"at":0,"by":"bob"}`, "move 0, add move")
	step("to safe where it is safe", bob, "0", `{"at":0,"by":"bob"}`, "move 0")
	step("no number", bob, `"x"`, "invalid", "")
	d.refuses = device.Faultf(device.Unsafe, "not now")
	step("refused by the guard", bob, "5", "unsafe: not now", "try")
	d.refuses = nil
	d.full = device.Faultf(device.Unavailable, "the disk is full")
	step("on a full disk", ann, "5", "unavailable: the disk is full", "try")
	d.at = 5
	step("to safe on a full disk", ann, "0", `{"at":0,"by":"ann"}`, "move 0, add move")
	d.full = nil
	d.fails = errors.New("loose")
	step("what fails is written too", ann, "5", "internal: loose", "try, begin, move 5, end internal")
	d.events = nil
	if res, err := d.Node.Call(t.Context(), ann, agents.Call{Tool: "look", Args: jsonArgs(`{}`)}); err != nil || res.Value != 0.0 || d.events != nil {
		t.Errorf("a reading: %v, %v, %v", res, err, d.events)
	}
	if _, err := d.Who(Evidence{Bearer: "wrong"}); err == nil {
		t.Error("anybody is somebody")
	}
	want := map[string]int{"bob move invalid": 1, "bob move unsafe": 1, "nobody  denied": 1}
	if !reflect.DeepEqual(d.refused, want) {
		t.Errorf("refused are %v, want %v", d.refused, want)
	}
	if New(newHub(), "secret", nil, d.lever).journal == nil {
		t.Error("no journal at all")
	}
	d.fails, d.journal = nil, noJournal{}
	step("without a journal", ann, "5", "unavailable: there is no journal", "try")
	step("to safe without a journal", ann, "0", `{"at":`, "move 0")
}

func TestKeys(t *testing.T) {
	d := newDesk()
	step := func(what string, p agents.Principal, to, wantSays, wantHappened string, bend ...func(*agents.Call)) {
		t.Helper()
		says, happened := d.ask(p, to, bend...)
		d.want(t, what, says, happened, wantSays, wantHappened)
	}
	const made = "try, begin, move 5, end "
	step("first", ann, "5", `{"at":5,"by":"ann"}`, made, key("k"))
	d.refuses = device.Faultf(device.Unsafe, "moved once already")
	step("again, which the guard would refuse", ann, "5", `{"at":5,"by":"ann"}`, "", key("k"))
	step("in other words", ann, "5.0", `{"at":5,"by":"ann"}`, "", key("k"))
	d.refuses = nil
	step("with other arguments", ann, "6", "invalid: reused", "", key("k"))
	step("by somebody else", bob, "5", `{"at":5,"by":"bob"}`, made, key("k"))
	step("to safe, which takes no notice", ann, "0", `{"at":0,"by":"ann"}`, "move 0, add move", key("k"))
	d.fails = device.Faultf(device.Offline, "loose")
	step("what fails", ann, "5", "offline: loose", "try, begin, move 5, end offline", key("f"))
	d.fails = nil
	step("has failed", ann, "5", "offline: loose", "", key("f"))
	for _, bad := range []string{"", strings.Repeat("x", 65), "a\nb", "a\x00", "ä", "\x7f"} {
		step(fmt.Sprintf("the key %q", bad), ann, "5", "invalid: agentsite/idempotency-key", "", key(bad))
	}
	step("the longest key", ann, "5", `{"at":5`, made, key(strings.Repeat("~", 64)))
}

// TestExpiry: a call that waits too long is dropped, by a clock that nobody sets.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		for _, bad := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e300, 86401} {
			if says, happened := d.ask(ann, "5", within(bad)); !strings.HasPrefix(says, "invalid: agentsite/expires-in") || happened != "" {
				t.Errorf("within %v: %s (%s)", bad, says, happened)
			}
		}
		d.slow = time.Second
		says, happened := d.ask(ann, "5", within(1.5))
		d.want(t, "in time", says, happened, `{"at":5`, "try, begin, move 5, end ")
		says, happened = d.ask(ann, "5", within(0.5), key("k"))
		d.want(t, "late", says, happened, "expired: this could not begin within 500ms, and nothing was moved", "try, begin, end expired")
		says, happened = d.ask(ann, "5", within(0.5), key("k"))
		d.want(t, "asked again", says, happened, "expired", "")
		says, happened = d.ask(ann, "0", within(1e-300))
		d.want(t, "to safe nothing is late", says, happened, `{"at":0`, "move 0, add move")

		// A caller that goes while its intent is written moves nothing; one that goes
		// later is to find out.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		d.events = nil
		_, err := d.Node.Call(ctx, ann, agents.Call{Tool: "move", Args: jsonArgs(`{"to":7}`)})
		if err == nil || device.AsFault(err).Kind != device.Expired || !slices.Equal(d.events, []string{"try", "begin", "end expired"}) {
			t.Errorf("%v, %v", err, d.events)
		}
	})
}

func TestApproval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		d.confirm = true
		step := func(what string, p agents.Principal, to, wantSays, wantHappened string, bend ...func(*agents.Call)) {
			t.Helper()
			says, happened := d.ask(p, to, bend...)
			d.want(t, what, says, happened, wantSays, wantHappened)
		}
		waits := func() Request {
			t.Helper()
			all, err := d.Requests(own)
			if err != nil || len(all) != 1 {
				t.Fatalf("%+v, %v", all, err)
			}
			return all[0]
		}
		const made = "try, begin, move 5, end "
		step("asked", ann, "5", "needs the owner has to approve this, within 2m, on the site's own machine: agentsite approve ", "try")
		r := waits()
		if r.Who != "ann" || r.Tool != "move" || string(r.Args) != `{"to":5}` || r.Left != approveWithin || len(r.Handle) < 26 {
			t.Errorf("%+v", r)
		}

		// Whatever the caller sends, it is no answer.
		yes := func(c *agents.Call) {
			c.Exchange.State = r.Handle
			c.Exchange.Can.Elicitation = true
			c.Exchange.Answers = map[string]agents.Args{"approval": jsonArgs(`{"action":"accept","content":{"approved":true}}`)}
		}
		step("answered by the caller", ann, "5", "needs", "try", yes)
		step("a forged handle", ann, "5", "expired", "try", handle("AAAAAAAAAAAAAAAAAAAAAAAAAA"))
		step("another's handle", bob, "5", "denied: this approval was asked for another call, or by somebody else", "try", handle(r.Handle))
		step("other arguments", ann, "6", "denied: this approval was asked for another call", "try", handle(r.Handle))
		for _, p := range []agents.Principal{ann, {ID: "local"}, {}, {Owner: true}} {
			if err := d.Approve(p, r.Handle, true); err == nil || device.AsFault(err).Kind != device.Denied {
				t.Errorf("%+v approves: %v", p, err)
			}
			if all, err := d.Requests(p); err == nil || all != nil {
				t.Errorf("%+v sees %v", p, all)
			}
		}
		if err := d.Approve(own, "AAAAAAAAAAAAAAAAAAAAAAAAAA", true); err == nil {
			t.Error("a forged handle is approved")
		}
		step("the same again is the same request", ann, "5", "needs", "try")
		waits()

		if err := d.Approve(own, r.Handle, true); err != nil {
			t.Fatal(err)
		}
		if a := d.added[len(d.added)-1]; a.Who != "local" || a.Tool != "approve" || string(a.Args) != `{"who":"ann","tool":"move","arguments":{"to":5}}` {
			t.Errorf("%+v", a)
		}
		if err := d.Approve(own, r.Handle, false); err == nil {
			t.Error("an answer is changed")
		}
		step("approved, for others", bob, "5", "denied", "try", handle(r.Handle))
		step("approved, altered", ann, "6", "denied", "try", handle(r.Handle))
		step("approved", ann, "5", `{"at":5,"by":"ann"}`, made, handle(r.Handle), key("k"))
		step("replayed", ann, "5", "expired", "try", handle(r.Handle))
		step("repeated with its key", ann, "5", `{"at":5,"by":"ann"}`, "", handle(r.Handle), key("k"))
		step("without the handle it is asked anew", ann, "5", "needs", "try")

		// Without the handle, as older clients call again.
		if err := d.Approve(own, waits().Handle, true); err != nil {
			t.Fatal(err)
		}
		step("approved, no handle", ann, "5", `{"at":5,"by":"ann"}`, made)
		step("once", ann, "5", "needs", "try")
		r = waits()
		if err := d.Approve(own, r.Handle, false); err != nil {
			t.Fatal(err)
		}
		step("denied", ann, "5", "denied: the owner said no", "try", handle(r.Handle))
		step("denied, asked anew", ann, "5", "denied: the owner said no", "try")
		time.Sleep(approveWithin)
		step("later", ann, "5", "expired", "try", handle(r.Handle))
		step("later, asked anew", ann, "5", "needs", "try")
		r = waits()
		time.Sleep(approveWithin)
		if err := d.Approve(own, r.Handle, true); err == nil {
			t.Error("it is approved too late")
		}
		step("later", ann, "5", "expired", "try", handle(r.Handle))
		step("asked", ann, "5", "needs", "try")
		if err := d.Approve(own, waits().Handle, true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(approveWithin)
		step("a yes does not last either", ann, "5", "needs", "try")

		step("to safe nobody is asked", bob, "0", `{"at":0`, "move 0, add move")
		step("the owner's own call", own, "5", `{"at":5,"by":"local"}`, made)
		d.refuses = device.Faultf(device.Unsafe, "not now")
		step("what the guard refuses is not asked for", bob, "9", "unsafe", "try")
		d.refuses = nil

		time.Sleep(approveWithin)
		most := bounds[approvals].most
		for i := range most {
			step("many", bob, fmt.Sprint(i+1), "needs", "try")
		}
		step("too many", bob, "99", "busy", "try")
		step("others", ann, "99", "needs", "try")
		time.Sleep(approveWithin)
		step("places come back", bob, "99", "needs", "try")
	})
}

// TestQuestion: a client that can ask its person does, and is told that no answer helps.
func TestQuestion(t *testing.T) {
	d := newDesk()
	d.confirm = true
	res, err := d.Node.Call(t.Context(), ann, agents.Call{Tool: "move", Args: jsonArgs(`{"to":5}`), Exchange: agents.Exchange{Can: agents.Capabilities{Elicitation: true}}})
	if err != nil || res.NeedInput == nil || len(res.NeedInput.Questions) != 1 || res.NeedInput.State == "" {
		t.Fatalf("%+v, %v", res, err)
	}
	text, err := json.Marshal(res.NeedInput.Questions[0].Params)
	if err != nil || !strings.Contains(string(text), "Nothing that is answered here approves it") || !strings.Contains(string(text), res.NeedInput.State) {
		t.Errorf("%s %v", text, err)
	}
}

// TestOwn: an owner's method is the owner's alone, and written down.
func TestOwn(t *testing.T) {
	d := newDesk()
	if err := d.Own(ann, "reset", "", func() error { t.Error("it is done"); return nil }); err == nil || device.AsFault(err).Kind != device.Denied {
		t.Error(err)
	}
	if err := d.Own(own, "take-over", "a/b", func() error { return errBroken }); err != errBroken {
		t.Error(err)
	}
	if len(d.added) != 1 || d.added[0].Tool != "take-over" || string(d.added[0].Args) != `{"name":"a/b"}` {
		t.Errorf("%+v", d.added)
	}
}
