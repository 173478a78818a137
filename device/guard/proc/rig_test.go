package proc

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/guard"
)

// box is a relay, a thermometer, a button, a display and a camera in one.
type box struct {
	mu    sync.Mutex
	on    bool
	stuck error
	press chan time.Duration // the age of each when it is told
	shown string
	told  []device.Reading      // by Simulate
	fails func(context.Context) // in place of what it was asked for; or nil
}

func (b *box) failing(ctx context.Context) {
	if b.fails != nil {
		b.fails(ctx)
	}
}

func (b *box) Describe() device.Description {
	return device.Description{Model: "a box", Points: []device.Point{
		{Name: "relay", Kind: device.KindSwitch, Safe: device.Bool(false)},
		{Name: "t", Kind: device.KindMeasurement, Unit: "Cel"},
		{Name: "button", Kind: device.KindEvent},
	}}
}

func (b *box) Close() error { return nil }

func (b *box) Apply(_ context.Context, _ string, v device.Value) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stuck == nil {
		b.on = v.Bool()
	}
	return b.stuck
}

func (b *box) isOn() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.on
}

func (b *box) Sample(ctx context.Context) ([]device.Reading, error) {
	b.failing(ctx)
	return []device.Reading{
		{Point: "t", Value: device.Number(21.5), Quality: device.Good, At: time.Now().Add(-3 * time.Second)},
		{Point: "u", Quality: device.Bad, At: time.Now(), Why: "loose"},
	}, nil
}

func (b *box) Watch(ctx context.Context, emit func(device.Reading)) error {
	b.failing(ctx)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case age, ok := <-b.press:
			if !ok {
				return errors.New("the button is torn off")
			}
			emit(device.Reading{Point: "button", Value: device.Text("pressed"), Quality: device.Good, At: time.Now().Add(-age)})
		}
	}
}

func (b *box) Show(ctx context.Context, _, text string) error {
	b.failing(ctx)
	b.shown = text
	return nil
}

func (b *box) Capture(context.Context, string) (device.Image, error) {
	return device.Image{MIME: "image/png", Data: []byte{1, 2, 3}, At: time.Now()}, nil
}

// line is the site's end of a connection, which can fall silent.
type line struct {
	net.Conn
	mute    atomic.Bool // what is written is lost
	written atomic.Int32
}

func (l *line) Write(b []byte) (int, error) {
	if l.mute.Load() {
		return len(b), nil
	}
	l.written.Add(1)
	return l.Conn.Write(b)
}

// rig is a keeper and the guards that it has started.
type rig struct {
	*Keeper
	box     *box
	lines   []*line
	killed  atomic.Int32
	fails   error // of the next start
	buttons []Button
	end     func()
}

const relayName = "box/relay"

func newRig(t *testing.T, buttons ...Button) *rig {
	t.Helper()
	r := &rig{box: &box{press: make(chan time.Duration)}, buttons: buttons}
	latch := guard.Latch{File: filepath.Join(t.TempDir(), "armed")}
	if err := latch.Arm(); err != nil {
		t.Fatal(err)
	}
	policy := guard.NewPolicy("box", r.box.Describe().Points[0])
	policy.MinOff, policy.Rest = 0, 0
	r.Keeper = NewKeeper([]guard.Policy{policy}, latch, func() (Process, error) {
		if r.fails != nil {
			return Process{}, r.fails
		}
		ours, its := net.Pipe()
		l := &line{Conn: ours}
		r.lines = append(r.lines, l)
		ctx, kill := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() {
			g, err := guard.New([]guard.Actuated{{Actuator: r.box, Policies: []guard.Policy{policy}}}, latch)
			if err != nil {
				ended <- err
				return
			}
			driving, stop := context.WithCancel(context.Background())
			driven := make(chan error, 1)
			go func() { driven <- g.Run(driving) }()
			err = Serve(ctx, its, g, Equipment{Devices: map[string]device.Device{"box": r.box}, Buttons: r.buttons})
			stop()
			ended <- errors.Join(err, <-driven)
		}()
		return Process{Pid: len(r.lines), Conn: l, Kill: func() { r.killed.Add(1); kill() }, Wait: func() error { defer kill(); return <-ended }}, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	r.end = func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the end: %v", err)
		}
		if r.box.isOn() {
			t.Error("the relay is on at the end")
		}
	}
	synctest.Wait()
	return r
}

func (r *rig) on(t *testing.T, length time.Duration) {
	t.Helper()
	s, err := r.Move(t.Context(), "ann", relayName, device.Bool(true), length)
	if err != nil || s.Output != relayName || !s.Value.Bool() || s.Holder != "ann" || s.Left <= 0 || s.Left > length || !r.box.isOn() {
		t.Fatalf("%+v, %v", s, err)
	}
	synctest.Wait()
}

func wantFault(t *testing.T, err error, kind device.FaultKind, says string) {
	t.Helper()
	if err == nil || device.AsFault(err).Kind != kind || !strings.Contains(err.Error(), says) {
		t.Errorf("%v, want a fault %s that says %q", err, kind, says)
	}
}
