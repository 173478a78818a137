package proc

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/guard"
)

// mortal is the box as one process has it: nothing is written once that is dead.
type mortal struct {
	*box
	dead *atomic.Bool
}

func (m mortal) Apply(ctx context.Context, point string, v device.Value) error {
	if m.dead.Load() {
		return errors.New("the process is dead")
	}
	return m.box.Apply(ctx, point, v)
}

// doomed is a keeper whose guards leave their outputs where they are when they die.
type doomed struct {
	*Keeper
	box   *box
	kill  func() // of the last guard
	end   context.CancelFunc
	ended chan error
}

func newDoomed(t *testing.T) *doomed {
	d := &doomed{box: &box{}, ended: make(chan error, 1)}
	latch := guard.Latch{File: filepath.Join(t.TempDir(), "armed")}
	if err := latch.Arm(); err != nil {
		t.Fatal(err)
	}
	policy := guard.NewPolicy("box", d.box.Describe().Points[0])
	policy.MinOff, policy.Rest = 0, 0
	d.Keeper = NewKeeper([]guard.Policy{policy}, latch, func() (Process, error) {
		ours, its := net.Pipe()
		ctx, cancel := context.WithCancel(context.Background())
		dead, ended := new(atomic.Bool), make(chan error, 1)
		d.kill = func() { dead.Store(true); cancel() }
		go func() {
			g, err := guard.New([]guard.Actuated{{Actuator: mortal{d.box, dead}, Policies: []guard.Policy{policy}}}, latch)
			if err != nil {
				ended <- err
				return
			}
			driving, stop := context.WithCancel(context.Background())
			driven := make(chan error, 1)
			go func() { driven <- g.Run(driving) }()
			follow := func(context.Context, []byte) (map[string]device.Device, error) {
				<-ctx.Done() // until it dies
				return nil, ctx.Err()
			}
			err = Serve(ctx, its, g, Equipment{Follow: follow})
			stop()
			ended <- errors.Join(err, <-driven)
		}()
		return Process{Conn: ours, Kill: d.kill, Wait: func() error {
			defer cancel()
			select {
			case <-ctx.Done():
				return errors.New("killed")
			case err := <-ended:
				return err
			}
		}}, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	d.end = cancel
	go func() { d.ended <- d.Run(ctx) }()
	synctest.Wait()
	if _, err := d.Move(t.Context(), "ann", relayName, device.Bool(true), time.Minute); err != nil || !d.box.isOn() {
		t.Fatal(err)
	}
	return d
}

// TestEndAfterCrash: a site that ends before the guard that died has a successor leaves no
// output away from safe, and says so truly.
func TestEndAfterCrash(t *testing.T) {
	for _, after := range []time.Duration{0, restartFirst / 2, restartFirst} { // at the last the choice is random
		synctest.Test(t, func(t *testing.T) {
			d := newDoomed(t)
			defer time.Sleep(time.Minute) // until the dead are gone
			d.kill()
			time.Sleep(after)
			d.end()
			if err := <-d.ended; err != nil || d.box.isOn() {
				t.Errorf("%v after the crash: %v, and on is %v", after, err, d.box.isOn())
			}
		})
	}
}

// TestReplaceAfterCrash: the outputs of a crashed guard are safe before another plan replaces its
// plan, in which they would be unknown.
func TestReplaceAfterCrash(t *testing.T) {
	gone := func(d *doomed) func() error {
		return func() error {
			if d.box.isOn() {
				return errors.New("it is still on")
			}
			return nil
		}
	}
	for name, reload := range map[string]func(*doomed) error{
		"replaced": func(d *doomed) error {
			d.kill()
			synctest.Wait()
			return d.Replace(context.Background(), nil, gone(d))
		},
		"dies while it changes": func(d *doomed) error {
			time.AfterFunc(time.Second, d.kill)
			return d.Change(context.Background(), Change{nil, []byte("before"), []byte("between"), []byte("after"), gone(d)})
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDoomed(t)
			defer time.Sleep(time.Minute) // until the dead are gone
			if err := reload(d); err != nil || d.box.isOn() {
				t.Errorf("%s: %v, and on is %v", name, err, d.box.isOn())
			}
			d.end()
			<-d.ended
		})
	}
}
