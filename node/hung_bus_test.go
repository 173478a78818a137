package node

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// sharedBus is a bus with chips, of which one may hang: its transfers block all others for 4 s, as
// those of an MCP2221, whatever their context does.
type sharedBus struct {
	device.Mutex
	turn  atomic.Value // the name of the chip whose turn it is
	hangs atomic.Bool  // now
}

var errHung = errors.New("the bus is stuck in a transfer")

func (b *sharedBus) transfer(ctx context.Context, chip string) error {
	if err := b.LockContext(ctx); err != nil {
		return fmt.Errorf("it was not its turn: %w", err)
	}
	defer b.Unlock()
	if b.hangs.Load() && b.turn.Load() == chip {
		time.Sleep(4 * time.Second)
		return errHung
	}
	time.Sleep(10 * time.Millisecond)
	return nil
}

// chip is a sensor that is read in some transfers, with a pause for its measurement.
func (b *sharedBus) chip(name string, transfers int, takes time.Duration) *sensor {
	return thermometer(func(ctx context.Context) ([]device.Reading, error) {
		for i := range transfers {
			if err := b.transfer(ctx, name); err != nil {
				return nil, err
			}
			if i == 0 {
				if err := device.Sleep(ctx, takes); err != nil {
					return nil, err
				}
			}
		}
		return whole(ctx)
	})
}

// TestOneHangs: each of ten chips on a bus hangs in turn. It alone becomes a fault, for its own
// reason. All others stay good all the time, as does what a rule knows of them, and the chip is good
// again afterwards.
func TestOneHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &sharedBus{Mutex: device.NewMutex()}
		h := NewHub(sink{func(r device.Reading) {
			if chip, _, _ := device.SplitAddress(r.Point); r.Quality != device.Good && (chip != b.turn.Load() || r.Why != errHung.Error()) {
				t.Errorf("while %v hangs: %s is %s: %s", b.turn.Load(), r.Point, r.Quality, r.Why)
			}
		}}, &records{}, uri)
		var sources []Source
		for i := range 10 {
			name := fmt.Sprint("c", i)
			sources = append(sources,
				Source{name, b.chip(name, 1+i%4, time.Duration(i*20)*time.Millisecond), 2 * time.Second, nil, 0})
		}
		stop := sampling(t, h, sources)
		defer stop()
		watch := func(length time.Duration) {
			for range length / (50 * time.Millisecond) {
				time.Sleep(50 * time.Millisecond)
				for _, s := range sources {
					if r, _ := h.Latest(s.Name + "/t"); r.Quality != device.Good && (!b.hangs.Load() || s.Name != b.turn.Load()) {
						t.Fatalf("while %v hangs (%v): %s is %s after %v: %s", b.turn.Load(), b.hangs.Load(), s.Name, r.Quality, time.Since(r.At), r.Why)
					}
				}
			}
		}
		time.Sleep(2*time.Second - time.Millisecond) // the worst moment: just before all are read
		for _, s := range sources {
			b.turn.Store(s.Name)
			b.hangs.Store(true)
			watch(40 * time.Second)
			if r, _ := h.Latest(s.Name + "/t"); r.Quality != device.Bad || r.Why != errHung.Error() {
				t.Errorf("%s hangs and is %+v", s.Name, r)
			}
			b.hangs.Store(false)
			time.Sleep(time.Minute + 10*time.Second)
			watch(10 * time.Second)
		}
	})
}
