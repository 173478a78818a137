package board

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const pulsePeriod = 20 * time.Millisecond

// patient counts for how long a processor is kept.
type patient struct {
	GPIO
	kept *atomic.Int64
}

func (p patient) PrepareThread() func(time.Duration) {
	return func(d time.Duration) { p.kept.Add(int64(d)); time.Sleep(d) }
}

// TestPulsesOverlap: however many servos there are, they keep a processor for the longest
// pulse of them only, and all have pulses of their own length.
func TestPulsesOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const servos, frames = 8, 50
		var kept atomic.Int64
		b := On(Machine{GPIO: patient{kept: &kept}})
		var lines [servos]clocked
		var trains [servos]*PulseTrain
		for i := range servos {
			time.Sleep(time.Duration(i) * time.Millisecond) // moved at any time
			length := time.Duration(i+1) * 300 * time.Microsecond
			var err error
			if trains[i], err = b.Pulse(newLine("GPIO17", &lines[i]), length, pulsePeriod); err != nil {
				t.Fatal(err)
			}
		}
		kept.Store(0)
		time.Sleep(frames * pulsePeriod)
		if longest := servos * 300 * time.Microsecond; time.Duration(kept.Load()) > (frames+1)*longest {
			t.Errorf("in %d periods a processor is kept for %v; the longest pulse is %v", frames, time.Duration(kept.Load()), longest)
		}
		for i, train := range trains {
			if err := train.Stop(); err != nil {
				t.Error(err)
			}
			at, length := lines[i].at, time.Duration(i+1)*300*time.Microsecond
			if len(at) < 2*frames {
				t.Fatalf("line %d changed %d times", i, len(at))
			}
			for n := 2; n+2 < len(at); n += 2 {
				if on, period := at[n+1].Sub(at[n]), at[n].Sub(at[n-2]); on != length || period != pulsePeriod {
					t.Fatalf("line %d: a pulse of %v after %v", i, on, period)
				}
			}
		}
	})
}
