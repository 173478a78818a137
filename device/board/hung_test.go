package board_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/board/boardtest"

	"periph.io/x/conn/v3/physic"
)

// hungBus is a bus on which transfers with one address take 4 s and fail.
type hungBus struct {
	hangs uint16
	asked []time.Time // that chip
}

func (*hungBus) String() string                  { return "hung" }
func (*hungBus) SetSpeed(physic.Frequency) error { return nil }

func (b *hungBus) Tx(addr uint16, _, _ []byte) error {
	if addr != b.hangs {
		time.Sleep(time.Millisecond)
		return nil
	}
	b.asked = append(b.asked, time.Now())
	time.Sleep(4 * time.Second)
	return syscall.ETIMEDOUT
}

// TestHungTransfer: who waits in vain for the bus is told which chip hangs. That chip is asked again
// only after a pause, so that others get the bus.
func TestHungTransfer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := &hungBus{hangs: 0x76}
		b := boardtest.I2C(bus)
		hung, well := b.I2C(0x76).Conn(), b.I2C(0x48).Conn()
		begin := func(conn interface{ Begin(context.Context) error }, most time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), most)
			t.Cleanup(cancel)
			if err := conn.Begin(ctx); err != nil {
				t.Error(err)
			}
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 4 { // as impatient as a guard with an output on it
				begin(hung, time.Minute)
				if err := hung.Tx(0x76, nil, nil); !errors.Is(err, syscall.ETIMEDOUT) || !strings.Contains(err.Error(), "0x76") {
					t.Error(err)
				}
				hung.End()
			}
		}()
		synctest.Wait()
		begun := time.Now()
		begin(well, 2*time.Second)
		err := well.Tx(0x48, nil, nil)
		well.End()
		if took := time.Since(begun); took != 2*time.Second || !errors.Is(err, context.DeadlineExceeded) || device.AsFault(err).Kind != device.Offline ||
			!strings.Contains(err.Error(), "0x76") || strings.Contains(err.Error(), "0x48") {
			t.Errorf("after %v: %v", took, err)
		}
		time.Sleep(2*time.Second - time.Nanosecond)
		begin(well, time.Second)
		for range 100 {
			if err := well.Tx(0x48, nil, nil); err != nil {
				t.Error(err)
			}
		}
		well.End()
		if took := time.Since(begun); took > 4200*time.Millisecond {
			t.Errorf("a hundred transfers ended after %v", took)
		}
		<-done
		for i, want := range []time.Duration{6, 8, 8} {
			if got := bus.asked[i+1].Sub(bus.asked[i]); got != want*time.Second {
				t.Errorf("it was asked again after %v", got)
			}
		}
	})
}

// TestWritesOfOthersFirst: a write of several transfers to another chip on the bus comes between a
// reading that hangs and a write to the chip that hangs.
func TestWritesOfOthersFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := boardtest.I2C(&hungBus{hangs: 0x76})
		hung, well := b.I2C(0x76).Conn(), b.I2C(0x48).Conn()
		begun := time.Now()
		use := func(begin func(context.Context) error, tx func() error, end func()) {
			if err := begin(t.Context()); err != nil {
				t.Error(err)
			}
			defer end()
			tx()
		}
		var all sync.WaitGroup
		all.Go(func() { use(hung.Begin, func() error { return hung.Tx(0x76, nil, nil) }, hung.End) })
		synctest.Wait()
		all.Go(func() { use(hung.BeginWrite, func() error { return hung.Tx(0x76, nil, nil) }, hung.End) })
		all.Go(func() {
			use(well.BeginWrite, func() (err error) {
				for range 10 {
					err = errors.Join(err, well.Tx(0x48, nil, nil))
				}
				if took := time.Since(begun); err != nil || took > 4100*time.Millisecond {
					t.Errorf("after %v: %v", took, err)
				}
				return err
			}, well.End)
		})
		all.Wait()
		if took := time.Since(begun); took > 8200*time.Millisecond {
			t.Errorf("the chip that hangs was written to after %v", took)
		}
	})
}

// TestStuckWrites: once a write has hung, readings between the tries do not have writes tried sooner, which
// would leave the bus to nobody.
func TestStuckWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := boardtest.I2C(&hungBus{hangs: 0x76}).I2C(0x76).Conn()
		use := func(begin func(context.Context) error) (waited time.Duration) {
			begun := time.Now()
			if err := begin(t.Context()); err != nil {
				t.Error(err)
			}
			defer hung.End()
			waited = time.Since(begun)
			hung.Tx(0x76, nil, nil)
			return waited
		}
		use(hung.BeginWrite)
		use(hung.Begin)
		if waited := use(hung.BeginWrite); waited < 2*time.Second {
			t.Errorf("it is written to again after %v", waited)
		}
	})
}
