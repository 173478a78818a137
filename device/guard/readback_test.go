package guard

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// TestRead: an output that reads back another value than it was left at counts as away, and is
// driven to safe with the others of its interlock. An output without an expected value is not
// judged.
func TestRead(t *testing.T) {
	const up, down = "blind/up", "blind/down"
	for name, tt := range map[string]struct {
		reads device.Value
		err   error
		lost  string
	}{
		"as it was left": {reads: on},
		"nothing":        {},
		"safe":           {reads: off, lost: "reads off"},
		"another type":   {reads: device.Number(1), lost: "reads 1"},
		"not at all":     {err: errLoose, lost: errLoose.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMachine([]Policy{interlockedSwitch(up, "blind"), interlockedSwitch(down, "blind")}, false)
			if m.Read(0, 0, on, errLoose) {
				t.Error("what has not been written yet is judged")
			}
			settle(m, 0)
			mustMove(t, m, gap, "ann", up, on, time.Minute)
			if m.Read(gap, 0, on, errLoose) {
				t.Error("what is to be written is judged")
			}
			settle(m, gap)
			if lost := m.Read(gap, 0, tt.reads, tt.err); lost != (tt.lost != "") {
				t.Fatal(lost)
			}
			s := m.Status(gap, 0)
			if tt.lost == "" {
				if s.Holder != "ann" || s.Value != on {
					t.Errorf("%+v", s)
				}
				return
			}
			want(t, m, 0, off)
			if !strings.Contains(s.Fault, tt.lost) || s.Holder != "" || s.Safe || s.Why != endings[byFault] || m.Safe() {
				t.Errorf("%+v", s)
			}
			wantFault(t, m.Move(time.Hour, "ann", up, on, 0), device.Offline, "being driven", tt.lost)
			wantFault(t, m.Move(time.Hour, "ann", down, on, 0), device.Unsafe, up, "not known")
			settle(m, time.Hour)
			mustMove(t, m, time.Hour+gap, "ann", down, on, 0)
		})
	}
}

// TestReadAtSafe: an output that is switched on from outside stops its partner, and counts as away
// from then on.
func TestReadAtSafe(t *testing.T) {
	const up, down = "blind/up", "blind/down"
	m := NewMachine([]Policy{interlockedSwitch(up, "blind"), interlockedSwitch(down, "blind")}, false)
	settle(m, 0)
	mustMove(t, m, gap, "ann", up, on, time.Minute)
	settle(m, gap)
	if !m.Read(gap, 1, on, nil) {
		t.Fatal("nothing is wrong")
	}
	want(t, m, 0, off)
	want(t, m, 1, off)
	if s := m.Status(gap, 0); s.Why != endings[byInterlock] {
		t.Errorf("%+v", s)
	}
	settle(m, time.Hour)
	wantFault(t, m.Move(time.Hour+gap-1, "ann", up, on, 0), device.Unsafe, down, "not been safe")
}

// mirror is hardware that can be read back.
type mirror struct {
	hardware
	reads []time.Time
	blind bool          // it tells of other things only
	mute  error         // why it cannot be read
	late  int           // so many reads last until ctx ends
	deaf  chan struct{} // reads last until it is closed, whatever ends
}

func (m *mirror) Sample(ctx context.Context) ([]device.Reading, error) {
	m.mu.Lock()
	m.reads = append(m.reads, time.Now())
	late, deaf := m.late > 0, m.deaf
	if late {
		m.late--
	}
	m.mu.Unlock()
	switch {
	case deaf != nil:
		<-deaf
	case late:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	all := []device.Reading{{Point: "t", Value: device.Number(20), Quality: device.Good, At: time.Now()}}
	for point, v := range m.at {
		if !m.blind {
			all = append(all, device.Reading{Point: point, Value: v, Quality: device.Good, At: time.Now()})
		}
	}
	return all, m.mute
}

// asked is how often it was read since the last time.
func (m *mirror) asked() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.reads)
	m.reads = nil
	return n
}

// mirrors is a guard that runs over a blind of two interlocked outputs and a pump, each
// a device that can be read back, at safe and rested.
type mirrors struct {
	*Guard
	up, down, pump *mirror
	end            func()
}

const up, down = "up/relay", "down/relay"

func newMirrors(t *testing.T) *mirrors {
	t.Helper()
	r := &mirrors{up: &mirror{}, down: &mirror{}, pump: &mirror{}}
	g, err := New([]Actuated{
		{r.up, []Policy{interlockedSwitch(up, "blind")}},
		{r.down, []Policy{interlockedSwitch(down, "blind")}},
		{r.pump, []Policy{{Output: pump, Kind: device.KindSwitch, Safe: off, MaxOn: Unlimited}}},
	}, armed(t))
	if err != nil {
		t.Fatal(err)
	}
	r.Guard = g
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	r.end = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
	if err := g.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	r.asked()
	return r
}

func (r *mirrors) asked() int { return r.up.asked() + r.down.asked() + r.pump.asked() }

func (r *mirrors) move(t *testing.T, output string, v device.Value, length time.Duration) {
	t.Helper()
	if _, err := r.Move(t.Context(), "ann", output, v, length); err != nil {
		t.Fatal(err)
	}
}

func (r *mirrors) is(output string) Status {
	for _, s := range r.Status() {
		if s.Output == output {
			return s
		}
	}
	return Status{}
}

// TestReadBackPace: each second while anything is away from safe, each half minute while
// nothing is; and agreement is not reported.
func TestReadBackPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newMirrors(t)
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := r.asked(); n != 3*20 {
			t.Errorf("at safe %d reads in ten minutes", n)
		}
		r.mu.Lock()
		if r.changed != changed {
			t.Error("what agrees is told")
		}
		r.mu.Unlock()
		time.Sleep(time.Second / 3)
		r.move(t, up, on, time.Minute)
		time.Sleep(time.Minute - time.Second/2)
		synctest.Wait()
		for _, at := range r.up.reads {
			if at.Sub(r.start)%time.Second != 0 {
				t.Errorf("a read of its own time, at %v", at.Sub(r.start))
			}
		}
		if n := r.asked(); n != 3*59 {
			t.Errorf("away from safe %d reads in a minute", n)
		}
		r.up.set(func() { r.up.blind = true })
		time.Sleep(readSafe)
		r.asked()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := r.up.asked(); n != 0 || r.is(up).Value != off {
			t.Errorf("what cannot be read back is read %d times", n)
		}
		r.end()
	})
}

// TestReadBackEarly: while all is safe, a caller that is awake anyway makes the next read-back early,
// and none comes at a time of its own. Without such callers, the next comes after half a minute.
func TestReadBackEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newMirrors(t)
		begun := time.Now()
		for range 60 {
			time.Sleep(7 * time.Second)
			r.ReadBackEarly()
			synctest.Wait()
		}
		for _, at := range r.up.reads {
			if at.Sub(begun)%(21*time.Second) != 0 {
				t.Errorf("a read %v after the begin", at.Sub(begun))
			}
		}
		if n := r.asked(); n != 3*20 {
			t.Errorf("%d reads in seven minutes", n)
		}
		last := time.Now()
		time.Sleep(readSafe - 1)
		synctest.Wait()
		if n := r.asked(); n != 0 {
			t.Errorf("%d reads before they are due", n)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if n := r.asked(); n != 3 {
			t.Errorf("%d reads %v after the last", n, time.Since(last))
		}
		r.move(t, up, on, time.Minute)
		for range 10 {
			r.ReadBackEarly()
			synctest.Wait()
		}
		if n := r.asked(); n != 0 {
			t.Errorf("%d reads at once, away from safe", n)
		}
		r.end()
	})
}

// TestReadBack: hardware that lost its value is safe within a second, and its holder and
// its partner know.
func TestReadBack(t *testing.T) {
	for name, moved := range map[string]string{"its own value": pump, "its partner's": down} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newMirrors(t)
				told := make(chan device.Reading, 100)
				watching, unwatch := context.WithCancel(t.Context())
				go r.Watch(watching, func(r device.Reading) { told <- r })
				r.move(t, up, on, time.Minute)
				r.move(t, pump, on, time.Minute)
				r.up.told()
				which := map[string]*mirror{pump: r.pump, down: r.down}[moved]
				which.told()
				which.set(func() {
					which.delay = time.Second / 4 // so that everybody sees it
					for point, v := range which.at {
						which.at[point] = device.Bool(v == off)
					}
				})
				synctest.Wait()
				for len(told) > 0 {
					<-told
				}
				time.Sleep(time.Second + which.delay)
				synctest.Wait()
				if calls := which.told(); len(calls) != 1 || calls[0].v != off {
					t.Errorf("it was driven: %+v", calls)
				}
				if s := r.is(moved); !s.Safe || s.Fault != "" {
					t.Errorf("%+v", s)
				}
				if s := r.is(up); (s.Holder == "ann") != (moved == pump) {
					t.Errorf("%+v", s)
				}
				first := <-told
				if len(told) > 0 && first.Point != moved {
					first = <-told // its partner came before it
				}
				if first.Point != moved || first.Quality != device.Bad || !strings.Contains(first.Why, "reads") {
					t.Errorf("told of %+v", first)
				}
				if s := r.is(pump); moved == pump && s.Why != endings[byFault] {
					t.Errorf("%+v", s)
				}
				unwatch()
				r.end()
			})
		})
	}
}

// TestSafeUntilReadBackAgrees: a write that is said to have succeeded is not believed
// after a fault, and the partner waits.
func TestSafeUntilReadBackAgrees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newMirrors(t)
		r.move(t, up, on, time.Minute)
		r.up.told()
		r.up.set(func() { r.up.mute = errors.New("the chip is another one") })
		time.Sleep(time.Minute)
		synctest.Wait()
		s := r.is(up)
		if s.Safe || s.Holder != "" || !strings.Contains(s.Fault, "another one") {
			t.Errorf("%+v", s)
		}
		if n := len(r.up.told()); n < 10 || n > 20 { // with growing pauses up to five seconds
			t.Errorf("driven %d times in a minute", n)
		}
		_, err := r.Move(t.Context(), "ann", down, on, 0)
		wantFault(t, err, device.Unsafe, up, "not known")
		wantFault(t, r.Settle(within(t, time.Second)), device.UnknownOutcome, up, "another one")
		if n := r.pump.asked(); n < 60 {
			t.Errorf("another device is read back only %d times", n)
		}
		r.up.set(func() { r.up.mute = nil })
		if err := r.Settle(within(t, 5*time.Second)); err != nil {
			t.Error(err)
		}
		time.Sleep(gap)
		r.move(t, down, on, time.Minute)
		r.end()
	})
}

// TestHangingRead: a read that hangs holds up no write, not even of its own device.
func TestHangingRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newMirrors(t)
		r.up.set(func() { r.up.late = 1000 })
		begun := time.Now()
		r.move(t, up, on, 1500*time.Millisecond)
		r.move(t, pump, on, 1500*time.Millisecond)
		r.up.told()
		r.pump.told()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		for _, h := range []*mirror{r.up, r.pump} {
			calls := h.told()
			if len(calls) != 1 || calls[0].when.Sub(begun) != 1500*time.Millisecond {
				t.Errorf("%+v", calls)
			}
			h.check(t)
		}
		r.end()
	})
}

// TestLateReads: a bus that is busy says nothing of the output, unless it always is.
func TestLateReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newMirrors(t)
		r.move(t, up, on, time.Hour)
		for range 3 {
			r.up.set(func() { r.up.late = 2 })
			time.Sleep(2*(applyTimeout+readAway) + readAway) // and a read that is in time
			if s := r.is(up); s.Holder != "ann" || s.Fault != "" || r.up.late != 0 {
				t.Fatalf("%+v, %d", s, r.up.late)
			}
		}
		r.up.set(func() { r.up.late = 1000 })
		time.Sleep(3 * (applyTimeout + readAway))
		synctest.Wait()
		if s := r.is(up); s.Holder != "" || !strings.Contains(s.Fault, "not read back within") {
			t.Errorf("%+v", s)
		}
		r.up.set(func() { r.up.late = 0 })
		r.end()
	})
}

// TestBlockedRead: a transfer that nothing can end, as while another chip hangs on the bus, says
// nothing of the output as long as it ends.
func TestBlockedRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newMirrors(t)
		r.move(t, up, on, time.Hour)
		r.up.told()
		for range 10 {
			blocked := make(chan struct{})
			r.up.set(func() { r.up.deaf = blocked })
			time.Sleep(4 * time.Second)
			r.up.set(func() { r.up.deaf = nil })
			close(blocked)
			time.Sleep(readAway + readAway/2) // and a read that is in time
			if s := r.is(up); s.Holder != "ann" || s.Fault != "" {
				t.Fatalf("%+v", s)
			}
		}
		if calls := r.up.told(); len(calls) != 0 {
			t.Errorf("it was moved: %+v", calls)
		}
		r.end()
	})
}

// TestDeafRead: if a driver does not return from a read, its output is a fault and is driven to
// safe, and is not read again before the read has returned.
func TestDeafRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newMirrors(t)
		r.move(t, up, on, time.Hour)
		r.up.told()
		deaf := make(chan struct{})
		r.up.set(func() { r.up.deaf = deaf })
		r.up.asked()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := r.up.asked(); n != 1 {
			t.Errorf("asked %d times", n)
		}
		if s := r.is(up); !strings.Contains(s.Fault, "does not come back") {
			t.Errorf("%+v", s)
		}
		if got := r.up.where("relay"); got != off {
			t.Errorf("it is left at %v", got)
		}
		r.up.set(func() { r.up.deaf = nil })
		close(deaf)
		if err := r.Settle(within(t, 2*retryLast)); err != nil {
			t.Error(err)
		}
		r.end()
	})
}

// TestReadBackPulses: outputs that are away for short times, again and again, do not put off the
// read-backs of others.
func TestReadBackPulses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newMirrors(t)
		time.Sleep(time.Second / 3)
		for range 60 {
			r.move(t, pump, on, time.Second/3)
			time.Sleep(15 * time.Second)
		}
		synctest.Wait()
		if n := len(r.up.reads); n < 20 {
			t.Errorf("%d reads in a quarter of an hour", n)
		}
		r.end()
	})
}

// TestReadBackAdded: a device that is added while another output is away is read back each second.
func TestReadBackAdded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := ready(t)
		r.move(t, "ann", heater, on, 5*time.Minute)
		synctest.Wait()
		var all []Actuated
		for _, h := range r.Guard.workers {
			of := Actuated{Actuator: h.act}
			for _, o := range h.outputs {
				p, _ := r.Policy(o.address)
				of.Policies = append(of.Policies, p)
			}
			all = append(all, of)
		}
		m := &mirror{}
		if err := r.Change(t.Context(), append(all, Actuated{m, []Policy{interlockedSwitch(up, "blind")}})); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := m.asked(); n < 59 {
			t.Errorf("%d reads in a minute", n)
		}
	})
}
