package proc

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// mushroom is an emergency stop.
type mushroom struct {
	mu      sync.Mutex
	pressed bool
	torn    error
	deaf    bool // nobody is told of changes
	changed chan struct{}
}

func (m *mushroom) set(pressed bool, torn error) {
	m.mu.Lock()
	m.pressed, m.torn = pressed, torn
	deaf := m.deaf
	m.mu.Unlock()
	if !deaf {
		m.changed <- struct{}{}
	}
	synctest.Wait()
}

func (m *mushroom) Sample(context.Context) ([]device.Reading, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return []device.Reading{{Point: "pressed", Value: device.Bool(m.pressed), Quality: device.Good, At: time.Now()}}, m.torn
}

func (m *mushroom) Watch(ctx context.Context, emit func(device.Reading)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-m.changed:
		}
		all, err := m.Sample(ctx)
		if err != nil {
			return err
		}
		emit(all[0])
	}
}

// stopped fails unless the outputs are, already before somebody asks for a move.
func (r *rig) stopped(t *testing.T, says string) {
	t.Helper()
	if r.box.isOn() || !r.Stopped() {
		t.Errorf("it is on: %v; it is stopped: %v", r.box.isOn(), r.Stopped())
	}
	r.refuses(t, says)
}

func (r *rig) refuses(t *testing.T, says string) {
	t.Helper()
	_, err := r.Move(t.Context(), "ann", relayName, device.Bool(true), time.Minute)
	wantFault(t, err, device.Unsafe, says)
	if f := device.AsFault(err); strings.Contains(f.Msg, "mushroom") && (!slices.Equal(f.Names, []string{"mushroom/pressed"}) || f.Short == "" || strings.Contains(f.Short, "mushroom")) {
		t.Errorf("%+v", f)
	}
}

func TestButton(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &mushroom{changed: make(chan struct{})}
		r := newRig(t, Button{Device: m, Name: "mushroom/pressed", Point: "pressed"})
		defer r.end()

		r.on(t, time.Minute)
		m.set(true, nil)
		r.stopped(t, "mushroom/pressed is pressed")
		wantFault(t, r.Reset(t.Context()), device.Unsafe, "release it, then")
		m.set(false, nil)
		r.stopped(t, "agentsite reset") // it is latched
		if err := r.Reset(t.Context()); err != nil {
			t.Error(err)
		}
		r.on(t, time.Minute)

		// While it cannot be read all is safe and nothing moves, and nothing is latched.
		m.set(false, errors.New("the wire is off"))
		if r.box.isOn() || r.Stopped() || r.Status()[0].Why == "" {
			t.Errorf("it is on: %v; it is stopped: %v; %+v", r.box.isOn(), r.Stopped(), r.Status())
		}
		r.refuses(t, "the wire is off")
		m.mu.Lock()
		m.torn = nil
		m.mu.Unlock()
		r.refuses(t, "the wire is off") // nobody watches it yet
		time.Sleep(2 * buttonRetry)
		r.on(t, time.Minute)

		// No reset while it cannot be read.
		if err := r.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		m.set(false, errors.New("the wire is off"))
		wantFault(t, r.Reset(t.Context()), device.Unsafe, "the wire is off")
		m.mu.Lock()
		m.torn = nil
		m.mu.Unlock()
		time.Sleep(2 * buttonRetry)
		r.stopped(t, "agentsite reset")
		if err := r.Reset(t.Context()); err != nil {
			t.Error(err)
		}
		r.on(t, time.Minute)
		m.set(true, nil)
		r.stopped(t, "is pressed")
		m.set(false, nil)
		if err := r.Reset(t.Context()); err != nil {
			t.Error(err)
		}

		// A caller that misses it is told by the next move.
		m.deaf = true
		r.on(t, time.Minute)
		m.set(true, nil)
		r.refuses(t, "is pressed")
		synctest.Wait()
		r.stopped(t, "is pressed")
	})
}

// TestButtonAtStart: a guard that finds the button pressed lets nothing move, though
// nobody has seen it being pressed. Nobody resets it without a guard, which would look.
func TestButtonAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &mushroom{pressed: true, changed: make(chan struct{})}
		r := newRig(t, Button{Device: m, Name: "mushroom/pressed", Point: "pressed"})
		defer r.end()
		if !r.Stopped() {
			t.Error("it is not stopped")
		}
		r.fails = errors.New("no memory")
		r.lines[0].Close()
		synctest.Wait()
		r.fails = nil
		wantFault(t, r.Reset(t.Context()), device.Unavailable, "being started")
		time.Sleep(time.Minute)
		r.stopped(t, "is pressed")
	})
}
