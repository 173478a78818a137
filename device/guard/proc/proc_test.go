package proc

import (
	"context"
	"errors"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/guard"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestReadYourOwnWrites: the changes of an answered call are visible after the answer: in the
// statuses, and to watchers.
func TestReadYourOwnWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.end()
		var mu sync.Mutex
		var told device.Value
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r.Watch(ctx, func(d device.Reading) {
				mu.Lock()
				defer mu.Unlock()
				told = d.Value
			})
		}()
		// Each press holds up what the guard tells, so that several things wait to be told.
		button := r.Device("box", r.box.Describe()).(device.Watcher)
		go button.Watch(ctx, func(device.Reading) {
			for range 100 {
				runtime.Gosched()
			}
		})
		synctest.Wait()
		sees := func(i int, after string, on, stopped bool) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			s := r.Status()[0]
			if s.Value != device.Bool(on) || s.Safe == on || (s.Holder != "") != on || told != device.Bool(on) || r.Stopped() != stopped {
				t.Fatalf("%d: after the %s: %+v, told %v, stopped %v", i, after, s, told, r.Stopped())
			}
		}
		for i := range 100 {
			r.box.press <- 0
			if _, err := r.Move(t.Context(), "ann", relayName, device.Bool(true), time.Minute); err != nil {
				t.Fatal(err)
			}
			sees(i, "move", true, false)
			r.box.press <- 0
			if i%2 == 0 {
				if _, err := r.Release(t.Context(), relayName); err != nil {
					t.Fatal(err)
				}
				sees(i, "release", false, false)
				continue
			}
			if err := r.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			sees(i, "stop", false, true)
			if err := r.Reset(t.Context()); err != nil {
				t.Fatal(err)
			}
			sees(i, "reset", false, false)
		}
		cancel()
		<-ended
		told = device.Value{}
		if _, err := r.Move(t.Context(), "ann", relayName, device.Bool(true), time.Minute); err != nil || !told.IsZero() {
			t.Errorf("%v; a watch that has ended is told %v", err, told)
		}
	})
}

// TestChanged: a stop and a reset are changes even where every output is safe already.
func TestChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.end()
		for _, do := range []func(context.Context) error{r.Stop, r.Reset} {
			synctest.Wait()
			changed := r.Changed()
			if err := do(t.Context()); err != nil {
				t.Fatal(err)
			}
			select {
			case <-changed:
			default:
				t.Errorf("nothing has changed; stopped: %v", r.Stopped())
			}
		}
	})
}

// TestInOrder: two changes stay in order however long the first was on its way, which
// makes it look newer than it is.
func TestInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.end()
		button := r.Device("box", r.box.Describe()).(device.Watcher)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var at []time.Time
		go button.Watch(ctx, func(d device.Reading) {
			at = append(at, d.At)
			if len(at) == 1 {
				time.Sleep(5 * time.Millisecond) // nothing is taken from the connection
			}
		})
		synctest.Wait()
		r.box.press <- 0
		r.box.press <- 0                    // told at once, and 5 ms on its way
		r.box.press <- 4 * time.Millisecond // told as soon as there is a way, and not held up
		synctest.Wait()
		time.Sleep(10 * time.Millisecond)
		if len(at) != 3 || at[1].Before(at[0]) || at[2].Before(at[1]) {
			t.Errorf("told of changes at %v", at)
		}
		told := make(sequence)
		for _, age := range []time.Duration{3, 5, 1} {
			at = append(at, told.keep(device.Reading{Point: "a/b", At: time.Now().Add(-age)}).At)
		}
		if other := told.keep(device.Reading{Point: "a/c", At: at[0]}); at[4] != at[3] || !at[5].After(at[4]) || other.At != at[0] {
			t.Errorf("%v %v", at, other)
		}
	})
}

// TestThroughTheConnection: a site has of its outputs and devices what it would have
// without a process between.
func TestThroughTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.end()
		if err := r.Settle(t.Context()); err != nil || r.Stopped() || r.Pid() != 1 {
			t.Error(err)
		}
		watching, unwatch := context.WithCancel(t.Context())
		var told []string
		var done sync.WaitGroup
		done.Go(func() {
			r.Watch(watching, func(d device.Reading) { told = append(told, d.Point+" "+d.Value.String()+" "+string(d.Quality)) })
		})
		synctest.Wait()
		r.on(t, time.Minute)
		time.Sleep(10 * time.Second)
		if s := r.Status(); len(s) != 1 || s[0].Left != 50*time.Second {
			t.Errorf("%+v", s)
		}
		if s, ok := r.StatusOf(relayName); !ok || s != r.Status()[0] {
			t.Errorf("%+v, %v; of all: %+v", s, ok, r.Status())
		}
		if s, ok := r.StatusOf("room/none"); ok {
			t.Errorf("an output that is none: %+v", s)
		}
		_, err := r.Move(t.Context(), "bob", relayName, device.Bool(true), time.Minute)
		wantFault(t, err, device.Busy, "held by ann")
		if f := device.AsFault(err); !slices.Equal(f.Names, []string{"ann"}) || !strings.Contains(f.Short, "held by somebody else") {
			t.Errorf("%+v", f)
		}
		_, err = r.Move(t.Context(), "bob", "box/nothing", device.Bool(true), time.Minute)
		wantFault(t, err, device.Invalid, "no output")
		time.Sleep(time.Minute)
		synctest.Wait()
		if r.box.isOn() {
			t.Error("the lease does not end")
		}
		r.on(t, time.Minute)
		if s, err := r.Release(t.Context(), relayName); err != nil || !s.Safe || r.box.isOn() {
			t.Errorf("%+v, %v", s, err)
		}
		synctest.Wait()
		r.on(t, time.Minute)
		if err := r.Stop(t.Context()); err != nil || r.box.isOn() {
			t.Error(err)
		}
		synctest.Wait()
		_, err = r.Move(t.Context(), "ann", relayName, device.Bool(true), time.Minute)
		if wantFault(t, err, device.Unsafe, "emergency stop"); !r.Stopped() {
			t.Error("it is not told")
		}
		if err := r.Reset(t.Context()); err != nil {
			t.Error(err)
		}
		r.on(t, time.Minute)
		unwatch()
		done.Wait()
		want := []string{"box/relay off good", "box/relay on good", "box/relay off good", "box/relay on good", "box/relay off good", "box/relay on good", "box/relay off good", "box/relay on good"}
		if !slices.Equal(slices.Compact(told), want) {
			t.Errorf("%q", told)
		}

		dev := r.Device("box", r.box.Describe())
		readings, err := dev.(device.Sensor).Sample(t.Context())
		if err != nil || len(readings) != 2 || readings[0].Value != device.Number(21.5) || time.Since(readings[0].At) != 3*time.Second || readings[1].Quality != device.Bad || readings[1].Why != "loose" {
			t.Errorf("%+v, %v", readings, err)
		}
		if err := dev.(device.Display).Show(t.Context(), "d", "hello"); err != nil || r.box.shown != "hello" {
			t.Error(err)
		}
		if i, err := dev.(device.Camera).Capture(t.Context(), "c"); err != nil || i.MIME != "image/png" || len(i.Data) != 3 {
			t.Errorf("%+v, %v", i, err)
		}
		var pressed []device.Reading
		broke := make(chan error, 1)
		go func() {
			broke <- dev.(device.Watcher).Watch(t.Context(), func(d device.Reading) { pressed = append(pressed, d) })
		}()
		synctest.Wait()
		r.box.press <- 0
		synctest.Wait()
		close(r.box.press)
		if err := <-broke; err == nil || err.Error() != "the button is torn off" || len(pressed) != 1 || pressed[0].Value.Text() != "pressed" {
			t.Errorf("%+v, %v", pressed, err)
		}
		if r.killed.Load() > 0 || len(r.lines) != 1 {
			t.Errorf("%d guards, %d killed", len(r.lines), r.killed.Load())
		}
	})
}

// TestSilentSite: a site that says nothing has its outputs safe within a second, and
// what it wanted before is nobody's wish any more.
func TestSilentSite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.end()
		r.on(t, time.Minute)
		time.Sleep(20 * time.Second)
		if !r.box.isOn() {
			t.Fatal("it tripped for nothing")
		}
		r.lines[0].mute.Store(true)
		time.Sleep(silenceTimeout - heartbeatAway - time.Millisecond) // the last heartbeat may be due now
		if !r.box.isOn() {
			t.Error("too early")
		}
		time.Sleep(2*heartbeatAway - 50*time.Millisecond)
		synctest.Wait()
		if r.box.isOn() {
			t.Error("it is silent, and the relay is on")
		}
		r.lines[0].mute.Store(false)
		r.mu.Lock()
		r.epoch-- // as a site has it that was stopped in the middle of a call
		r.mu.Unlock()
		_, err := r.Move(t.Context(), "ann", relayName, device.Bool(true), time.Minute)
		wantFault(t, err, device.Expired, "held up")
		if r.box.isOn() {
			t.Error("an old wish has moved it")
		}
	})
}

// TestGuardThatHangs is killed and replaced within two seconds.
func TestGuardThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.end()
		r.on(t, time.Minute)
		r.lines[0].mute.Store(true) // so that it answers nothing
		begun := time.Now()
		for r.killed.Load() == 0 {
			time.Sleep(10 * time.Millisecond)
			if time.Since(begun) > 2*time.Second {
				t.Fatal("it is not killed")
			}
		}
		synctest.Wait()
		if err := r.Settle(t.Context()); err != nil || len(r.lines) != 2 {
			t.Errorf("%d guards, %v", len(r.lines), err)
		}
		r.on(t, time.Second)
	})
}

// TestGuardThatEnds: callers are told, and the next guard is started. A failed start is retried
// with back-off.
func TestGuardThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.end()
		r.on(t, time.Minute)
		r.fails = errors.New("no memory")
		r.lines[0].Close()
		synctest.Wait()
		s := r.Status()
		if len(s) != 1 || s[0].Safe || s[0].Fault == "" || s[0].Holder != "" {
			t.Errorf("%+v", s)
		}
		_, err := r.Move(t.Context(), "ann", relayName, device.Bool(true), time.Minute)
		wantFault(t, err, device.Unavailable, "being started")
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantFault(t, r.Settle(short), device.UnknownOutcome, relayName+" is not known")
		_, err = r.Device("box", r.box.Describe()).(device.Sensor).Sample(t.Context())
		wantFault(t, err, device.Unavailable, "being started")

		// A stop without a guard holds for the next one.
		r.fails = nil
		if err := r.Stop(t.Context()); err != nil || !r.Stopped() {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		_, err = r.Move(t.Context(), "ann", relayName, device.Bool(true), time.Minute)
		wantFault(t, err, device.Unsafe, "emergency stop")
	})
}

// TestNextGuardSaysWhy: a caller that looks only once the next guard runs does not see its start as
// a release.
func TestNextGuardSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.end()
		r.on(t, time.Minute)
		r.lines[0].Close()
		time.Sleep(5 * time.Second)
		if err := r.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := r.Status()[0]; s.Holder != "" || s.Why == "" || s.Fault != "" {
			t.Errorf("%+v", s)
		}
	})
}

// TestReplace: the old guard ends safe before swap is called.
func TestReplace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.end()
		r.on(t, time.Minute)
		p, _ := r.Policy(relayName)
		swapped := false
		err := r.Replace(t.Context(), []guard.Policy{p}, func() error { swapped = !r.box.isOn(); return nil })
		if err != nil || !swapped {
			t.Error(err, swapped)
		}
		if err := r.Settle(t.Context()); err != nil || len(r.lines) != 2 {
			t.Error(err)
		}
		if err := r.Replace(t.Context(), nil, func() error { return errors.New("the disk is full") }); err == nil || len(r.Status()) != 1 {
			t.Error(err)
		}
		if err := r.Settle(t.Context()); err != nil {
			t.Error(err)
		}
		if err := r.Replace(t.Context(), nil, func() error { return nil }); err != nil || len(r.Status()) != 0 {
			t.Error(err)
		}
		_, err = r.Policy(relayName)
		wantFault(t, err, device.Invalid, "no output")
		if err := r.Stop(t.Context()); err != nil || !r.Stopped() {
			t.Error(err)
		}
		if err := r.Reset(t.Context()); err != nil || r.Stopped() {
			t.Error(err)
		}
	})
}

// TestDriverThatFails: a driver that panics, or does not return, is a fault of its own device, and
// blocks neither its outputs nor the end.
func TestDriverThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		dev := r.Device("box", r.box.Describe()).(interface {
			device.Sensor
			device.Watcher
			device.Display
		})
		r.box.fails = func(context.Context) { panic("a defect") }
		_, err := dev.Sample(t.Context())
		wantFault(t, err, device.Internal, "panicked: a defect")
		wantFault(t, dev.Show(t.Context(), "d", "x"), device.Internal, "panicked: a defect")
		wantFault(t, dev.Watch(t.Context(), nil), device.Internal, "panicked: a defect")

		hung, calls := make(chan struct{}), atomic.Int32{}
		r.box.fails = func(context.Context) { calls.Add(1); <-hung }
		_, err = dev.Sample(t.Context())
		wantFault(t, err, device.Offline, "does not answer")
		for range 10 {
			_, err = dev.Sample(t.Context())
			wantFault(t, err, device.Offline, "box hangs")
		}
		if n := calls.Load(); n != 1 {
			t.Errorf("it was called %d times", n)
		}
		r.on(t, time.Minute)
		close(hung)
		synctest.Wait()
		if _, err := dev.Sample(t.Context()); err != nil {
			t.Error("it is back:", err)
		}

		hung = make(chan struct{})
		watching := make(chan error, 1)
		go func() { watching <- dev.Watch(t.Context(), nil) }()
		synctest.Wait()
		begun := time.Now()
		r.end()
		if took := time.Since(begun); took > time.Second {
			t.Errorf("the end took %v", took)
		}
		<-watching
		close(hung)
	})
}

// TestIdle: while all is safe and nobody asks, both sleep.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.end()
		time.Sleep(time.Minute)
		before := r.lines[0].written.Load()
		time.Sleep(time.Hour)
		if n := r.lines[0].written.Load() - before; n > 61 {
			t.Errorf("%d messages in an idle hour", n)
		}
	})
}

// TestSiteThatIsGone: a site that ends while its guard starts is no failure of the guard.
func TestSiteThatIsGone(t *testing.T) {
	ours, its := net.Pipe()
	ours.Close()
	g, err := guard.New(nil, guard.Latch{})
	if err != nil {
		t.Fatal(err)
	}
	if err := Serve(t.Context(), its, g, Equipment{}); err != nil {
		t.Error(err)
	}
}

// TestAlive: it is the guard's loop that answers, and Run where there is no guard.
func TestAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.end()
		if err := r.Alive(t.Context()); err != nil {
			t.Error(err)
		}
		r.fails = errors.New("no memory")
		r.lines[0].Close()
		synctest.Wait()
		wantFault(t, r.Alive(t.Context()), device.Unavailable, "being started")
		// A guard that cannot be started can be replaced, but it is unknown whether the outputs are
		// safe.
		if err := r.Replace(t.Context(), nil, func() error { return nil }); err == nil {
			t.Error("no error")
		}
		if err := r.Alive(t.Context()); err != nil {
			t.Error(err)
		}

		g, err := guard.New(nil, guard.Latch{})
		if err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.Alive(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a guard that does not run: %v", err)
		}
	})
}
