package node

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/device"
	"agentsite/device/guard"

	"github.com/go-json-experiment/json"
)

// lever is the outputs of a site with one: arm, whose safe value is 0.
type lever struct {
	Outputs
	log     *[]string
	refuses error
	fails   error
	during  func() // while it moves
	at      float64
	spare   time.Duration
	length  time.Duration // of the last move
}

const arm = "lever/arm"

func (l *lever) status() guard.Status {
	v := device.Number(l.at)
	return guard.Status{Output: arm, Value: v, Goal: v, Safe: l.at == 0, Spare: l.spare}
}

func (l *lever) Status() []guard.Status                      { return []guard.Status{l.status()} }
func (l *lever) StatusOf(output string) (guard.Status, bool) { return l.status(), output == arm }
func (l *lever) Stopped() bool                               { return false }
func (l *lever) Policy(output string) (guard.Policy, error) {
	return guard.Policy{Output: output, Safe: device.Number(0), Range: device.Range{Max: 100}}, nil
}

func (l *lever) Try(context.Context, string, string, device.Value, time.Duration) error {
	l.say("try")
	return l.refuses
}

func (l *lever) Release(context.Context, string) (guard.Status, error) {
	l.say("release")
	l.at = 0
	return l.status(), nil
}

func (l *lever) Move(ctx context.Context, _, _ string, v device.Value, length time.Duration) (guard.Status, error) {
	l.length = length
	if ctx.Err() != nil {
		return l.status(), ctx.Err()
	}
	if l.during != nil {
		l.during()
	}
	l.say("move %v", v)
	if l.fails == nil {
		l.at = v.Number()
	}
	return l.status(), l.fails
}

func (l *lever) say(format string, args ...any) {
	*l.log = append(*l.log, fmt.Sprintf(format, args...))
}

// book is a journal in memory, as the real one behaves.
type book struct {
	mu      sync.Mutex // of log and added, which the node adds to also by itself
	log     *[]string
	full    error
	slow    time.Duration
	known   map[string]*Outcome
	asked   map[string]Asked
	added   []Asked
	refused map[string]int
	recent  map[string][]Recorded
}

func (b *book) say(s string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*b.log = append(*b.log, s)
}

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

func (b *book) Add(a Asked, o Outcome) {
	b.say("add " + a.Tool)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.added = append(b.added, a)
}

func (b *book) Recent(about string) []Recorded { return b.recent[about] }
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
	site   Site
}

func newDesk() *desk {
	d := &desk{}
	d.lever = &lever{log: &d.events}
	d.book = &book{log: &d.events, known: map[string]*Outcome{}, asked: map[string]Asked{}, refused: map[string]int{}}
	d.Node = New(Parts{Hub: newHub(), Token: "secret", Journal: d.book})
	d.site = Site{Outputs: d.lever, Devices: []Device{{Name: "lever", Description: device.Description{Points: []device.Point{
		{Name: "arm", Kind: device.KindLevel, Range: device.Range{Max: 100}}, {Name: "a", Kind: device.KindMeasurement}, {Name: "b", Kind: device.KindMeasurement},
	}}}}}
	d.setSite()
	return d
}

func (d *desk) setSite() {
	if err := d.Replace(d.site); err != nil {
		panic(err)
	}
}

// confirming makes each move require an owner's approval.
func (d *desk) confirming() {
	d.site.Devices[0].Confirm = []string{"arm"}
	d.setSite()
}

var (
	ann = agents.Principal{ID: "ann"}
	bob = agents.Principal{ID: "bob"}
	own = agents.Principal{Kind: principal.Local, ID: "local", Owner: true}
)

// ask moves the arm and returns the result or the fault in words, and what happened.
func (d *desk) ask(p agents.Principal, to float64, bend ...func(*agents.MoveRequest)) (says, happened string) {
	r := agents.MoveRequest{Output: arm, Value: device.Number(to)}
	for _, b := range bend {
		b(&r)
	}
	d.events = nil
	res, err := d.Node.Move(context.Background(), p, r)
	var needs *agents.ApprovalNeeded
	switch {
	case errors.As(err, &needs):
		says = "needs " + needs.Says
	case err != nil:
		f := device.AsFault(err)
		says = string(f.Kind) + ": " + f.Msg
	default:
		says = fmt.Sprintf("at %v", res.Value)
	}
	return says, strings.Join(d.events, ", ")
}

func key(k string) func(*agents.MoveRequest) {
	return func(r *agents.MoveRequest) { r.Key = &k }
}
func startWithin(s float64) func(*agents.MoveRequest) {
	return func(r *agents.MoveRequest) { r.Within = &s }
}
func handle(h string) func(*agents.MoveRequest) {
	return func(r *agents.MoveRequest) { r.Approval = h }
}
func (d *desk) want(t *testing.T, what, says, happened, wantSays, wantHappened string) {
	t.Helper()
	if !strings.HasPrefix(says, wantSays) || happened != wantHappened {
		t.Errorf("%s: %s (%s), want %s (%s)", what, says, happened, wantSays, wantHappened)
	}
}

func TestMoveOrder(t *testing.T) {
	d := newDesk()
	step := func(what string, p agents.Principal, to float64, wantSays, wantHappened string, bend ...func(*agents.MoveRequest)) {
		t.Helper()
		says, happened := d.ask(p, to, bend...)
		d.want(t, what, says, happened, wantSays, wantHappened)
	}
	step("a move", ann, 5, "at 5", "try, begin, move 5, end ")
	step("again", ann, 5, "at 5", "try, begin, move 5, end ")
	step("to safe", bob, 0, "at 0", "move 0, add set_level")
	step("to safe where it is safe", bob, 0, "at 0", "move 0")
	step("no time", bob, 5, "invalid", "", func(r *agents.MoveRequest) { r.For = new(0.0) })
	d.refuses = device.Faultf(device.Unsafe, "not now")
	step("refused by the guard", bob, 5, "unsafe: not now", "try")
	d.refuses = nil
	d.full = device.Faultf(device.Unavailable, "the disk is full")
	step("on a full disk", ann, 5, "unavailable: the disk", "try")
	d.at = 5
	step("to safe on a full disk", ann, 0, "at 0", "move 0, add set_level")
	d.full = nil
	d.fails = errors.New("loose")
	step("what fails is written too", ann, 5, "internal: loose", "try, begin, move 5, end internal")
	d.events = nil
	if res, err := d.Node.Read(t.Context(), ann, agents.ReadRequest{}); err != nil || len(res.Readings) != 3 || d.events != nil {
		t.Errorf("a reading: %v, %v, %v", res, err, d.events)
	}
	if _, err := d.Node.Bearer("wrong", true); err == nil {
		t.Error("anybody is somebody")
	}
	want := map[string]int{"bob set_level invalid": 1, "bob set_level unsafe": 1, "nobody  denied": 1}
	if !reflect.DeepEqual(d.refused, want) {
		t.Errorf("refused are %v, want %v", d.refused, want)
	}
	if New(Parts{Hub: newHub(), Token: "secret"}).journal == nil {
		t.Error("no journal at all")
	}
	d.fails, d.journal = nil, noJournal{}
	step("without a journal", ann, 5, "unavailable: ", "try")
	step("to safe without a journal", ann, 0, "at 0", "move 0")
}

func TestKeys(t *testing.T) {
	d := newDesk()
	step := func(what string, p agents.Principal, to float64, wantSays, wantHappened string, bend ...func(*agents.MoveRequest)) {
		t.Helper()
		says, happened := d.ask(p, to, bend...)
		d.want(t, what, says, happened, wantSays, wantHappened)
	}
	const made = "try, begin, move 5, end "
	step("first", ann, 5, "at 5", made, key("k"))
	d.refuses = device.Faultf(device.Unsafe, "moved once already")
	step("again, which the guard would refuse", ann, 5, "at 5", "", key("k"))
	step("in other words", ann, 5.0, "at 5", "", key("k"))
	d.refuses = nil
	step("with other arguments", ann, 6, "invalid: reused", "", key("k"))
	step("by somebody else", bob, 5, "at 5", made, key("k"))
	step("to safe, which takes no notice", ann, 0, "at 0", "move 0, add set_level", key("k"))
	d.fails = device.Faultf(device.Offline, "loose")
	step("what fails", ann, 5, "offline: loose", "try, begin, move 5, end offline", key("f"))
	d.fails = nil
	step("has failed", ann, 5, "offline: loose", "", key("f"))
	for _, bad := range []string{"", strings.Repeat("x", 65), "a\nb", "a\x00", "ä", "\x7f"} {
		step(fmt.Sprintf("the key %q", bad), ann, 5, "invalid: agentsite/idempotency-key", "", key(bad))
	}
	step("the longest key", ann, 5, "at 5", made, key(strings.Repeat("~", 64)))
}

// TestExpiry: a call that waits too long is dropped, by a clock that nobody sets.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		for _, bad := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e300, 86401} {
			if says, happened := d.ask(ann, 5, startWithin(bad)); !strings.HasPrefix(says, "invalid: agentsite/expires-in") || happened != "" {
				t.Errorf("within %v: %s (%s)", bad, says, happened)
			}
		}
		d.slow = time.Second
		says, happened := d.ask(ann, 5, startWithin(1.5))
		d.want(t, "in time", says, happened, "at 5", "try, begin, move 5, end ")
		says, happened = d.ask(ann, 5, startWithin(0.5), key("k"))
		d.want(t, "late", says, happened, "expired: ", "try, begin, end expired")
		says, happened = d.ask(ann, 5, startWithin(0.5), key("k"))
		d.want(t, "asked again", says, happened, "expired", "")
		says, happened = d.ask(ann, 0, startWithin(1e-300))
		d.want(t, "to safe nothing is late", says, happened, "at 0", "move 0, add set_level")

		// A caller that leaves while its intent is written moves nothing. A caller that leaves later
		// can find out the result.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		d.events = nil
		_, err := d.Node.Move(ctx, ann, agents.MoveRequest{Output: arm, Value: device.Number(7)})
		if err == nil || device.AsFault(err).Kind != device.Expired || !slices.Equal(d.events, []string{"try", "begin", "end expired"}) {
			t.Errorf("%v, %v", err, d.events)
		}
	})
}

// renewedLever is a lever that ann holds.
type renewedLever struct{ *lever }

func (l renewedLever) StatusOf(output string) (guard.Status, bool) {
	s := l.status()
	s.Holder = ann.ID
	return s, output == arm
}

func (l renewedLever) Renew(_ context.Context, _, _ string, v device.Value, _ time.Duration) (guard.Status, error) {
	l.say("renew %v", v)
	return l.status(), nil
}

// TestLateRenewal: a renewal that is late, or whose caller is gone, extends nothing, as a move that is
// late does nothing.
func TestLateRenewal(t *testing.T) {
	d := newDesk()
	d.site.Outputs = renewedLever{&lever{log: &d.events, at: 5}}
	d.setSite()
	says, happened := d.ask(ann, 5)
	d.want(t, "in time", says, happened, "at 5", "renew 5, add set_level")
	says, happened = d.ask(ann, 5, startWithin(1e-9))
	d.want(t, "late", says, happened, "expired", "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d.events = nil
	if _, err := d.Node.Move(ctx, ann, agents.MoveRequest{Output: arm, Value: device.Number(5)}); kindOf(err) != device.Expired || len(d.events) > 0 {
		t.Errorf("%v, %v", err, d.events)
	}
}

func TestApproval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		d.confirming()
		step := func(what string, p agents.Principal, to float64, wantSays, wantHappened string, bend ...func(*agents.MoveRequest)) {
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
		step("asked", ann, 5, "needs ", "try")
		r := waits()
		if r.Who != "ann" || r.Tool != "set_level" || string(r.Args) != `{"output":"lever/arm","value":5}` || r.Left != approveWithin || len(r.Handle) < 26 {
			t.Errorf("%+v", r)
		}

		step("a forged handle", ann, 5, "expired", "try", handle("AAAAAAAAAAAAAAAAAAAAAAAAAA"))
		step("another's handle", bob, 5, "denied: this approval ", "try", handle(r.Handle))
		step("other arguments", ann, 6, "denied: this approval ", "try", handle(r.Handle))
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
		step("the same again is the same request", ann, 5, "needs", "try")
		waits()

		if err := d.Approve(own, r.Handle, true); err != nil {
			t.Fatal(err)
		}
		if a := d.added[len(d.added)-1]; a.Who != "local" || a.Tool != "approve" || string(a.Args) != `{"who":"ann","tool":"set_level","arguments":{"output":"lever/arm","value":5}}` {
			t.Errorf("%+v", a)
		}
		if err := d.Approve(own, r.Handle, false); err == nil {
			t.Error("an answer is changed")
		}
		step("approved, for others", bob, 5, "denied", "try", handle(r.Handle))
		step("approved, altered", ann, 6, "denied", "try", handle(r.Handle))
		step("approved", ann, 5, "at 5", made, handle(r.Handle), key("k"))
		step("replayed", ann, 5, "expired", "try", handle(r.Handle))
		step("repeated with its key", ann, 5, "at 5", "", handle(r.Handle), key("k"))
		step("without the handle it is asked anew", ann, 5, "needs", "try")

		// Without the handle, as older clients call again.
		if err := d.Approve(own, waits().Handle, true); err != nil {
			t.Fatal(err)
		}
		step("approved, no handle", ann, 5, "at 5", made)
		step("once", ann, 5, "needs", "try")
		r = waits()
		if err := d.Approve(own, r.Handle, false); err != nil {
			t.Fatal(err)
		}
		step("denied", ann, 5, "denied: the owner ", "try", handle(r.Handle))
		step("denied, asked anew", ann, 5, "denied: the owner ", "try")
		time.Sleep(approveWithin)
		step("later", ann, 5, "expired", "try", handle(r.Handle))
		step("later, asked anew", ann, 5, "needs", "try")
		r = waits()
		time.Sleep(approveWithin)
		if err := d.Approve(own, r.Handle, true); err == nil {
			t.Error("it is approved too late")
		}
		step("later", ann, 5, "expired", "try", handle(r.Handle))
		step("asked", ann, 5, "needs", "try")
		if err := d.Approve(own, waits().Handle, true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(approveWithin)
		step("a yes does not last either", ann, 5, "needs", "try")

		step("to safe nobody is asked", bob, 0, "at 0", "move 0, add set_level")
		unconfirmed := func(r *agents.MoveRequest) { r.Unconfirmed = true }
		step("by an owner's key, without a person", own, 5, "needs", "try", unconfirmed)
		step("the owner's own call", own, 5, "at 5", made)
		step("what the owner holds, without a person", own, 5, "needs", "try", unconfirmed)
		step("to safe, without a person", own, 0, "at 0", "move 0, add set_level", unconfirmed)
		d.refuses = device.Faultf(device.Unsafe, "not now")
		step("what the guard refuses is not asked for", bob, 9, "unsafe", "try")
		d.refuses = nil

		time.Sleep(approveWithin)
		most := bounds[approvals].most
		for i := range most {
			step("many", bob, float64(i+1), "needs", "try")
		}
		step("too many", bob, 99, "busy", "try")
		step("others", ann, 99, "needs", "try")
		time.Sleep(approveWithin)
		step("places come back", bob, 99, "needs", "try")
	})
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

// TestLeaseOfAGrant: a move without a duration is within the longest lease of the grant, also where
// the output's own length for such a move is longer.
func TestLeaseOfAGrant(t *testing.T) {
	const most = 5 * time.Second
	for _, tt := range []struct{ asked, most, minOn, want time.Duration }{
		{0, 0, 0, 0}, {0, most, 0, most}, {0, time.Hour, 0, 0}, {3 * time.Second, most, 0, 3 * time.Second},
		{0, 90 * time.Second, 5 * time.Minute, 90 * time.Second}, {0, 10 * time.Minute, 5 * time.Minute, 0}, {0, 0, 5 * time.Minute, 0},
	} {
		v := &view{site: &site{Site: Site{Outputs: keeps{minOn: tt.minOn}}}}
		if got := v.within(arm, tt.asked, agents.Limits{Lease: tt.most}); got != tt.want {
			t.Errorf("%v of at most %v, min_on %v, is %v, want %v", tt.asked, tt.most, tt.minOn, got, tt.want)
		}
	}
}

// keeps are outputs that keep a value for a while.
type keeps struct {
	Outputs
	minOn time.Duration
}

func (k keeps) Policy(output string) (guard.Policy, error) {
	return guard.Policy{Output: output, MinOn: k.minOn, MaxOn: guard.DefaultMaxOn}, nil
}
