package rule_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/rule"
	"agentsite/device"
	"agentsite/device/guard"
	"agentsite/node"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

const (
	heater, lamp = "house/heater", "house/lamp"
	temperature  = "house/temperature"
	button       = "house/button"
)

// house is a site with a real node and a real guard, in one process and in virtual time.
type house struct {
	t     *testing.T
	node  *node.Node
	guard *guard.Guard
	hub   *node.Hub
	feed  chan device.Reading
	began time.Time
	clock atomic.Bool // it is set

	latch     guard.Latch
	runs      int64  // of guards
	stopGuard func() // returns when the guard's Run has

	mu     sync.Mutex
	watch  bool     // rules watch the node, and do not follow it
	writes []string // to the hardware, with their time
	begun  []string // what the journal was asked to make durable
	keys   []string // of those
	before func()   // is called before a move is written down, and after after it was made
	after  func()
	torn   bool // the hardware moves and does not answer
}

var (
	owner = agents.Principal{ID: "ann", Owner: true}
	self  = agents.Principal{ID: "rule:frost"}
)

func (h *house) Apply(_ context.Context, point string, v device.Value) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writes = append(h.writes, fmt.Sprintf("%v %s %v", time.Since(h.began).Round(time.Second), point, v))
	if h.torn {
		return errors.New("no answer")
	}
	return nil
}

// took returns what was written since the last call.
func (h *house) took() string {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	all := strings.Join(h.writes, ", ")
	h.writes = nil
	return all
}

func (h *house) wantWrites(want string) {
	h.t.Helper()
	if got := h.took(); got != want {
		h.t.Errorf("written: %q; want %q", got, want)
	}
}

func (h *house) Watch(ctx context.Context, emit func(device.Reading)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case r := <-h.feed:
			emit(r)
		}
	}
}

// Replay, Begin, Add, Deny and Recent are a journal.
func (h *house) Replay(node.Asked) (*node.Outcome, error) { return nil, nil }
func (h *house) Begin(a node.Asked) (func(node.Outcome), *node.Outcome, error) {
	h.mu.Lock()
	before := h.before
	h.mu.Unlock()
	if before != nil {
		before()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun, h.keys = append(h.begun, a.Who+" "+string(a.Args)), append(h.keys, a.Key)
	return func(node.Outcome) {
		if h.after != nil {
			h.after()
		}
	}, nil, nil
}
func (*house) Add(node.Asked, node.Outcome)          {}
func (*house) Deny(string, string, device.FaultKind) {}
func (*house) Recent(string) []node.Recorded         { return nil }
func (*house) Record(device.Reading)                 {}
func (h *house) now() (t time.Time, sure bool)       { return time.Now(), h.clock.Load() }
func (h *house) world() rule.World                   { return rule.World{Now: h.now} }
func (h *house) put(point string, v device.Value)    { h.read(point, v, device.Good) }
func (h *house) temperature(celsius float64)         { h.put(temperature, device.Number(celsius)) }
func (h *house) read(point string, v device.Value, q device.Quality) {
	h.feed <- device.Reading{Point: point, Value: v, Quality: q, At: time.Now()}
	synctest.Wait()
	time.Sleep(200 * time.Millisecond) // readings that come fast are evaluated together
}

// inHouse runs do in a house whose outputs have rested. Its heater has a max_on of 10 minutes.
func inHouse(t *testing.T, do func(h *house)) {
	synctest.Test(t, func(t *testing.T) {
		h, end := newHouse(t, nil)
		time.Sleep(guard.DefaultRest + time.Second)
		h.took()
		h.began = time.Now()
		do(h)
		end()
	})
}

// run runs a rule until end is called.
func (h *house) run(r *rule.Rule, who agents.Principal) (rep func() agent.Report, end func()) {
	made := rule.Kind(h.world()).New().(*rule.Rule)
	made.When, made.For, made.Until, made.Hold = r.When, r.For, r.Until, r.Hold
	made.On, made.At, made.Every, made.If, made.Do, made.Missed, made.Resume = r.On, r.At, r.Every, r.If, r.Do, r.Missed, r.Resume
	if _, err := made.Define(); err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var site agents.Site = h.node
		if h.watch {
			site = struct{ agents.Site }{h.node}
		}
		if err := made.Run(ctx, who, site); ctx.Err() == nil {
			h.t.Errorf("the rule ended: %v", err)
		}
	}()
	synctest.Wait()
	return func() agent.Report { return made.Report(context.Background()) }, func() { cancel(); <-ended }
}

var (
	on, off = device.Bool(true), device.Bool(false)
	frost   = &rule.Rule{When: temperature + " < 5 Cel and age(" + temperature + ") < 2m", For: 30 * time.Second, Until: temperature + " > 7 Cel", Hold: map[string]device.Value{heater: on}}
)

func (h *house) wantState(report func() agent.Report, want agent.State) {
	h.t.Helper()
	if r := report(); r.State != want {
		h.t.Errorf("it %s: %s; want that it %s", r.State, r.Says, want)
	}
}

// cold reads a temperature each 10 s for a time.
func (h *house) cold(celsius float64, length time.Duration) {
	for range int(length / (10 * time.Second)) {
		h.temperature(celsius)
		time.Sleep(10*time.Second - 200*time.Millisecond)
	}
	synctest.Wait()
}

// TestFrost: hysteresis, for:, renewals, and what is unknown.
func TestFrost(t *testing.T) { inHouse(t, followFrost) }

func TestFrostWatched(t *testing.T) { inHouse(t, func(h *house) { h.watch = true; followFrost(h) }) }

func followFrost(h *house) {
	report, end := h.run(frost, self)
	h.wantState(report, agent.Waiting) // nothing was read yet
	h.temperature(6)
	h.wantState(report, agent.Idle)
	h.cold(4, 20*time.Second)
	h.wantState(report, agent.Waiting)
	h.wantWrites("")
	h.cold(4, 20*time.Second)
	h.wantWrites("30s heater on")
	h.cold(6, 5*time.Minute)
	h.wantState(report, agent.Holding)
	h.wantWrites("")
	h.temperature(7.5)
	h.wantWrites("5m40s heater off")
	h.wantState(report, agent.Idle)
	if len(h.begun) != 1 {
		h.t.Errorf("the journal was asked to make %d moves durable: %q", len(h.begun), h.begun)
	}
	h.cold(4, time.Minute)
	h.took()
	h.read(temperature, device.Number(4), device.Stale)
	h.wantWrites("6m40s heater off")
	h.wantState(report, agent.Waiting)
	end()
}

// TestPersonWins: what a person releases or moves is left alone until the condition was false.
func TestPersonWins(t *testing.T) {
	inHouse(t, func(h *house) {
		report, end := h.run(frost, self)
		h.cold(4, time.Minute)
		h.took()
		if _, err := h.node.Move(context.Background(), owner, agents.MoveRequest{Output: heater, Value: off}); err != nil {
			t.Fatal(err)
		}
		h.cold(4, 10*time.Minute)
		h.wantWrites("1m0s heater off")
		h.wantState(report, agent.Yielding)
		h.cold(8, time.Minute)
		h.cold(4, time.Minute)
		h.wantState(report, agent.Holding)
		h.took()
		// A person's own move takes it over, and no step through off is seen by the hardware.
		length := 120.0
		if _, err := h.node.Move(context.Background(), owner, agents.MoveRequest{Output: heater, Value: on, For: &length}); err != nil {
			t.Fatal(err)
		}
		h.cold(4, 10*time.Minute)
		h.wantWrites("15m0s heater off") // as the person's lease ended
		h.wantState(report, agent.Yielding)
		if _, err := h.node.Move(context.Background(), owner, agents.MoveRequest{Output: heater, Value: on, For: &length}); err != nil {
			t.Fatal(err)
		}
		h.cold(8, time.Minute) // that the rule's condition is false does not end what the person holds
		h.wantWrites("23m0s heater on")
		end()
	})
}

// TestStopWins: nothing is moved while the emergency stop is latched, and the rule goes on
// after its reset.
func TestStopWins(t *testing.T) {
	inHouse(t, func(h *house) {
		report, end := h.run(frost, self)
		h.cold(4, time.Minute)
		h.took()
		if err := h.guard.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
		h.cold(4, 5*time.Minute)
		h.wantWrites("1m0s heater off")
		h.wantState(report, agent.Waiting)
		_, _, stops := h.guard.State()
		if err := h.guard.Reset(stops); err != nil {
			t.Fatal(err)
		}
		h.cold(4, 2*time.Minute)
		if got := h.took(); !strings.HasSuffix(got, "heater on") {
			t.Error(got)
		}
		h.wantState(report, agent.Holding)
		end()
		h.took()
	})
}

// TestMaxOn: what the guard ends the rule begins again when the output's limits permit it.
func TestMaxOn(t *testing.T) {
	inHouse(t, func(h *house) {
		_, end := h.run(frost, self)
		h.cold(4, 11*time.Minute)
		if got, want := h.took(), "30s heater on, 10m30s heater off, 10m40s heater on"; got != want {
			t.Errorf("%q; want %q", got, want)
		}
		end()
		h.wantWrites("11m0s heater off")
	})
}

// TestEndReleases: a rule that is not run any more holds nothing, and one that begins anew
// begins from nothing.
func TestEndReleases(t *testing.T) {
	inHouse(t, func(h *house) {
		_, end := h.run(frost, self)
		h.cold(4, time.Minute)
		end()
		h.wantWrites("30s heater on, 1m0s heater off")
		_, end = h.run(frost, self)
		h.cold(4, 20*time.Second)
		h.wantWrites("")
		h.cold(4, 20*time.Second)
		h.wantWrites("1m30s heater on")
		end()
		h.took()
	})
}

// TestPriority: the rule of the higher priority has the output, and the other one has it back
// afterwards although its condition was true all the time.
func TestPriority(t *testing.T) {
	inHouse(t, func(h *house) {
		low := &rule.Rule{When: temperature + " < 10 Cel", Hold: map[string]device.Value{lamp: device.Number(10)}}
		high := &rule.Rule{When: temperature + " < 5 Cel", Hold: map[string]device.Value{lamp: device.Number(90)}}
		report, endLow := h.run(low, self)
		_, endHigh := h.run(high, agents.Principal{ID: "rule:high"})
		h.cold(8, time.Minute)
		h.wantWrites("0s lamp 10")
		h.cold(4, 5*time.Minute)
		h.wantWrites("1m0s lamp 90")
		h.wantState(report, agent.Waiting)
		h.cold(8, time.Minute)
		h.wantState(report, agent.Holding)
		if got := h.took(); !strings.HasSuffix(got, "lamp 10") {
			t.Error(got)
		}
		endHigh()
		endLow()
		h.took()
	})
}

// TestEdges: an event moves once, holds as long as its step says, and renews when it comes
// again.
func TestEdges(t *testing.T) {
	inHouse(t, func(h *house) {
		h.put(button, device.Text("pressed")) // before the rule began
		_, end := h.run(&rule.Rule{On: button, If: temperature + " < 10 Cel", Do: []rule.Step{{Set: map[string]device.Value{lamp: device.Number(40)}, For: 8 * time.Minute}}}, self)
		h.temperature(4)
		time.Sleep(time.Minute)
		h.wantWrites("")
		h.put(button, device.Text("pressed"))
		h.wantWrites("1m0s lamp 40")
		time.Sleep(10 * time.Minute)
		h.wantWrites("9m0s lamp 0")
		h.temperature(20)
		h.put(button, device.Text("pressed"))
		time.Sleep(time.Minute)
		h.wantWrites("")
		end()
	})
}

// TestSchedule: a time of day, once each day, when the clock is known.
func TestSchedule(t *testing.T) {
	inHouse(t, func(h *house) {
		// synctest's clock begins at midnight UTC of 2000-01-01.
		at := time.Now().Add(30 * time.Minute).Local().Format("15:04")
		report, end := h.run(&rule.Rule{At: at, Do: []rule.Step{{Set: map[string]device.Value{lamp: device.Number(40)}, For: time.Minute}}}, self)
		time.Sleep(20 * time.Minute)
		h.wantState(report, agent.Waiting)
		h.clock.Store(true)
		time.Sleep(20 * time.Minute)
		first := h.took()
		if !strings.Contains(first, "lamp 40") || strings.Count(first, "lamp") != 2 {
			t.Error(first)
		}
		time.Sleep(23 * time.Hour)
		h.wantWrites("")
		time.Sleep(time.Hour)
		if next := h.took(); strings.Count(next, "lamp") != 2 {
			t.Error(next)
		}
		end()
	})
}

// TestKeys: the moves of one occurrence are different calls, each of which acts once.
func TestKeys(t *testing.T) {
	inHouse(t, func(h *house) {
		h.clock.Store(true)
		at := time.Now().Add(30 * time.Minute).Local().Format("15:04")
		_, end := h.run(&rule.Rule{At: at, Do: []rule.Step{{Set: map[string]device.Value{lamp: device.Number(40), heater: on}, For: time.Minute}}}, self)
		time.Sleep(40 * time.Minute)
		end()
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.keys) != 2 || h.keys[0] == h.keys[1] || len(h.keys[0]) > 64 {
			t.Errorf("%q", h.keys)
		}
	})
}

// TestReleasedAtOnce: what a person releases before the rule has its answer is left alone.
func TestReleasedAtOnce(t *testing.T) {
	inHouse(t, func(h *house) {
		h.after = func() {
			if _, err := h.node.Move(context.Background(), owner, agents.MoveRequest{Output: heater, Value: off}); err != nil {
				t.Error(err)
			}
		}
		report, end := h.run(&rule.Rule{When: temperature + " < 5 Cel", For: 30 * time.Second, Hold: map[string]device.Value{heater: on}}, self)
		h.temperature(4)
		time.Sleep(10 * time.Minute)
		h.wantWrites("30s heater on, 30s heater off")
		h.wantState(report, agent.Yielding)
		end()
	})
}

// breaking is a site whose moves hang for a while, and whose watches break meanwhile.
type breaking struct {
	agents.Site
	moves atomic.Int32
}

func (b *breaking) Watch(ctx context.Context, p agents.Principal, r agents.WatchRequest, emit func(agents.Update) error) error {
	ctx, cancel := context.WithTimeout(ctx, 35*time.Second)
	defer cancel()
	return b.Site.Watch(ctx, p, r, emit)
}

func (b *breaking) Move(ctx context.Context, p agents.Principal, r agents.MoveRequest) (agents.Output, error) {
	b.moves.Add(1)
	time.Sleep(20 * time.Second)
	return b.Site.Move(ctx, p, r)
}

// TestEndDuringMove: a rule that ended while a move hung does not go on beside its successor.
func TestEndDuringMove(t *testing.T) {
	inHouse(t, func(h *house) {
		b := &breaking{Site: h.node}
		r := rule.Kind(h.world()).New().(*rule.Rule)
		r.When, r.For, r.Hold = temperature+" < 5 Cel", 30*time.Second, map[string]device.Value{heater: on}
		h.temperature(4)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if r.Run(ctx, self, b) == nil {
			t.Error("it ended well")
		}
		time.Sleep(time.Hour)
		if n := b.moves.Load(); n != 1 {
			t.Errorf("%d moves", n)
		}
	})
}

func (h *house) set(torn bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.torn = torn
}

// TestPulseOnce: a step of which nobody knows what came of it is not made again.
func TestPulseOnce(t *testing.T) {
	inHouse(t, func(h *house) {
		h.set(true)
		_, end := h.run(&rule.Rule{On: button, Do: []rule.Step{{Set: map[string]device.Value{lamp: device.Number(40)}}}}, self)
		h.put(button, device.Text("pressed"))
		time.Sleep(10 * time.Second)
		h.set(false)
		time.Sleep(2 * time.Minute)
		if got := h.took(); strings.Count(got, "lamp 40") != 1 {
			t.Error(got)
		}
		end()
	})
}
