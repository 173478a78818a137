package proc

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/guard"
)

// TestSilenceFollowsTheMachine: the watch begins with what the machine says, whoever has
// moved the output and whenever the message about it came.
func TestSilenceFollowsTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &box{}
		policy := guard.NewPolicy("box", b.Describe().Points[0])
		policy.MinOff, policy.Rest = 0, 0
		latch := guard.Latch{File: t.TempDir() + "/armed"}
		if err := latch.Arm(); err != nil {
			t.Fatal(err)
		}
		g, err := guard.New([]guard.Actuated{{Actuator: b, Policies: []guard.Policy{policy}}}, latch)
		if err != nil {
			t.Fatal(err)
		}
		ours, its := net.Pipe()
		go func() { // a site that reads and says nothing
			for buf := make([]byte, 4096); err == nil; {
				_, err = ours.Read(buf)
			}
		}()
		ctx, cancel := context.WithCancel(t.Context())
		served, driven := make(chan error, 1), make(chan error, 1)
		go func() { driven <- g.Run(ctx) }()
		go func() { served <- Serve(ctx, its, g, Equipment{}) }()
		synctest.Wait()
		for range 3 {
			if _, err := g.Move(t.Context(), "ann", relayName, device.Bool(true), time.Minute); err != nil || !b.isOn() {
				t.Fatal(err)
			}
			time.Sleep(silenceTimeout + silenceTimeout/4)
			synctest.Wait()
			if b.isOn() {
				t.Error("the site is silent, and the relay is on")
			}
		}
		cancel()
		ours.Close()
		if err := errors.Join(<-served, <-driven); err != nil {
			t.Error(err)
		}
	})
}

// TestMoveForAnotherGuard: a move that began with the guard before is none for its
// successor.
func TestMoveForAnotherGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.end()
		body := r.wish("ann", relayName, device.Bool(true), time.Minute)
		r.lines[0].Close()
		time.Sleep(2 * restartFirst)
		synctest.Wait()
		wantFault(t, r.order(t.Context(), move, body, func(in *reader) { in.status() }), device.Expired, "")
		if r.box.isOn() {
			t.Error("it moved")
		}
		r.on(t, time.Minute)
	})
}

// TestLargeLengths: a length that is negative as a number of 32 bits is damage.
func TestLargeLengths(t *testing.T) {
	var w writer
	w.text("image/png")
	w.duration(0)
	w.uint32(1 << 31)
	r := reader{b: w.b}
	if i := r.image(); len(i.Data) > 0 || r.end() == nil {
		t.Errorf("%v, %v", i, r.err)
	}
}

// slow is a button whose first look takes longer than anybody waits for one.
type slow struct {
	mushroom
	until time.Time
}

func (s *slow) Sample(ctx context.Context) ([]device.Reading, error) {
	if wait := time.Until(s.until); wait > 0 {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
	return s.mushroom.Sample(ctx)
}

func (s *slow) Watch(ctx context.Context, emit func(device.Reading)) error {
	if _, err := s.Sample(ctx); err != nil {
		return err
	}
	return s.mushroom.Watch(ctx, emit)
}

// TestButtonThatIsSlowAtFirst: nothing moves before it was read, and nothing is latched
// but by a press.
func TestButtonThatIsSlowAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &slow{mushroom: mushroom{changed: make(chan struct{})}, until: time.Now().Add(3 * time.Second)}
		r := newRig(t, Button{Device: b, Name: "mushroom/pressed", Point: "pressed"})
		defer r.end()
		time.Sleep(buttonTimeout)
		synctest.Wait()
		if r.Stopped() {
			t.Error("it is stopped, and nobody has pressed it")
		}
		r.refuses(t, "cannot be read")
		time.Sleep(3 * time.Second)
		r.on(t, time.Minute)
		b.set(true, nil)
		r.stopped(t, "is pressed")
	})
}

// TestFullConnection: a read whose time ends while it is still being sent makes Run ask
// whether the guard hangs, which ends both.
func TestFullConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := NewKeeper(nil, guard.Latch{}, nil)
		ours, its := net.Pipe() // nothing reads from it
		defer its.Close()
		k.link = newLink(ours)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- k.ask(ctx, sample, nil, call{}) }()
		select {
		case <-k.hurry:
		case <-time.After(heartbeatIdle):
			t.Error("nobody asks")
		}
		ours.Close() // as life does then
		if err := <-ended; err == nil {
			t.Error("it was read")
		}
	})
}
