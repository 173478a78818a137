package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// sensor is a device whose Sample is the test's.
type sensor struct {
	desc   device.Description
	sample func(context.Context) ([]device.Reading, error)
}

func (s *sensor) Describe() device.Description { return s.desc }

func (s *sensor) Close() error { return nil }

func (s *sensor) Sample(ctx context.Context) ([]device.Reading, error) {
	return s.sample(ctx)
}

func thermometer(sample func(context.Context) ([]device.Reading, error)) *sensor {
	return &sensor{device.Description{Points: []device.Point{
		{Name: "t", Kind: device.KindMeasurement}, {Name: "s", Kind: device.KindState}, {Name: "relay", Kind: device.KindSwitch},
		{Name: "vent", Kind: device.KindLevel}, {Name: "button", Kind: device.KindEvent},
	}}, sample}
}

// whole reads all its points, outputs and events too.
func whole(context.Context) ([]device.Reading, error) {
	return []device.Reading{
		good("t", device.Number(1)), good("s", device.Bool(true)), good("relay", device.Bool(true)),
		good("vent", device.Number(3)), good("button", device.Bool(true)), good("unheard-of", device.Number(4)),
	}, nil
}

// sampling runs Sample until stop.
func sampling(t *testing.T, h *Hub, sources []Source, extra ...device.Watcher) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { h.Sample(ctx, sources, extra...); close(done) }()
	return func() { cancel(); <-done }
}

// TestOneTick: thirty devices with one period wake the processor in the same
// instant, however long each of them takes.
func TestOneTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const every = 10 * time.Second
		start := time.Now()
		var mu sync.Mutex
		at := make(map[time.Duration]int)
		var sources []Source
		for i := range 30 {
			takes := time.Duration(i) * 100 * time.Millisecond
			sources = append(sources, Source{fmt.Sprint("d", i), thermometer(func(context.Context) ([]device.Reading, error) {
				mu.Lock()
				at[time.Since(start)]++
				mu.Unlock()
				time.Sleep(takes)
				return nil, nil
			}), every, nil, 0})
		}
		stop := sampling(t, newHub(), sources)
		time.Sleep(5*every + every/2)
		stop()
		want := map[time.Duration]int{}
		for i := range 6 {
			want[time.Duration(i)*every] = 30
		}
		if !maps.Equal(at, want) {
			t.Errorf("samples at %v, want %v", at, want)
		}
	})
}

// TestOneTickForAll: a device that comes later is read at once and then in step with
// those that were there.
func TestOneTickForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		start := time.Now()
		time.Sleep(3700 * time.Millisecond)
		var at []time.Duration
		stop := sampling(t, h, []Source{{"d", thermometer(func(context.Context) ([]device.Reading, error) {
			at = append(at, time.Since(start))
			return nil, nil
		}), 2 * time.Second, nil, 0}})
		time.Sleep(5 * time.Second)
		stop()
		if want := []time.Duration{3700e6, 4e9, 6e9, 8e9}; !slices.Equal(at, want) {
			t.Errorf("samples at %v, want %v", at, want)
		}
	})
}

// TestTicksAfterALongSample: a sample that takes longer than its period leaves ticks out and
// comes back to the same ones.
func TestTicksAfterALongSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var at []time.Duration
		stop := sampling(t, newHub(), []Source{{"d", thermometer(func(context.Context) ([]device.Reading, error) {
			if at = append(at, time.Since(start)); len(at) == 2 {
				time.Sleep(2500 * time.Millisecond) // deaf to ctx
			}
			return nil, nil
		}), time.Second, nil, 0}})
		time.Sleep(5500 * time.Millisecond)
		stop()
		if want := []time.Duration{0, 1e9, 4e9, 5e9}; !slices.Equal(at, want) {
			t.Errorf("samples at %v, want %v", at, want)
		}
	})
}

// TestSampled: measurements and states come from samples under their addresses.
// Outputs are the guard's to report, events the watcher's.
func TestSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &records{}
		h := NewHub(nil, rec, uri)
		stop := sampling(t, h, []Source{{"d", thermometer(whole), time.Second, nil, 0}})
		synctest.Wait()
		stop()
		var got []string
		for _, r := range rec.all {
			got = append(got, r.Point+"="+r.Value.String())
		}
		if want := []string{"d/t=1", "d/s=on"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		for _, p := range []string{"d/relay", "d/vent", "d/button", "d/unheard-of", "t"} {
			if r, ok := h.Latest(p); ok {
				t.Errorf("%s was taken from a sample: %+v", p, r)
			}
		}
	})
}

// contact is a state that is sampled and watched.
type contact struct {
	sample func() device.Reading
	emit   chan device.Reading
}

func (*contact) Describe() device.Description {
	return device.Description{Model: "contact", Points: []device.Point{{Name: "closed", Kind: device.KindState}}}
}

func (*contact) Close() error { return nil }

func (c *contact) Sample(context.Context) ([]device.Reading, error) {
	return []device.Reading{c.sample()}, nil
}

func (c *contact) Watch(ctx context.Context, emit func(device.Reading)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case r := <-c.emit:
			emit(r)
		}
	}
}

// TestEdgeDuringSample: a change that a device emits while it is sampled is newer than the sample,
// whatever the time of the driver's reading.
func TestEdgeDuringSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []bool
		h := NewHub(sink{func(r device.Reading) { told = append(told, r.Value.Bool()) }}, &records{}, uri)
		c := &contact{emit: make(chan device.Reading)}
		n := 0
		c.sample = func() device.Reading {
			if n++; n == 2 { // read as closed; then it opens; then the sample gets its time
				time.Sleep(time.Millisecond)
				c.emit <- good("closed", device.Bool(false))
				time.Sleep(time.Millisecond)
			}
			return good("closed", device.Bool(n != 3))
		}
		stop := sampling(t, h, []Source{{"door", c, 10 * time.Second, nil, 0}})
		for i, closed := range []bool{true, false, false, true} {
			time.Sleep(time.Second)
			if r, _ := h.Latest("door/closed"); r.Value != device.Bool(closed) {
				t.Errorf("after sample %d: %+v, want %v", i+1, r, closed)
			}
			time.Sleep(9 * time.Second)
		}
		stop()
		if want := []bool{true, false, false, true}; !slices.Equal(told[:4], want) {
			t.Errorf("the guard heard %v, want %v", told, want)
		}
	})
}

// TestConvert: sampled and watched numbers are converted for every reader; other values are
// unchanged.
func TestConvert(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &records{}
		h := NewHub(nil, rec, uri)
		percent := func(v float64) float64 { return v * 100 }
		e := &edges{watch: func(ctx context.Context, emit func(device.Reading)) error {
			emit(good("button", device.Number(2)))
			<-ctx.Done()
			return ctx.Err()
		}}
		stop := sampling(t, h, []Source{
			{"d", thermometer(whole), time.Second, map[string]func(float64) float64{"t": percent, "s": percent}, 0},
			{"e", e, time.Second, map[string]func(float64) float64{"button": percent}, 0},
			{"f", thermometer(func(context.Context) ([]device.Reading, error) {
				return []device.Reading{{Point: "t", Quality: device.Bad, Why: "loose"}}, nil
			}), time.Second, map[string]func(float64) float64{"t": percent}, 0},
		})
		synctest.Wait()
		stop()
		for point, want := range map[string]string{"d/t": "100", "d/s": "on", "e/button": "200", "f/t": "-"} {
			if r, _ := h.Latest(point); r.Value.String() != want {
				t.Errorf("%s: %+v, want %s", point, r, want)
			}
		}
		if len(rec.all) != 4 {
			t.Errorf("%+v", rec.all)
		}
	})
}

// TestLateSamples: a device that waits in vain for its bus is asked at every period, also
// after it had failed.
func TestLateSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		begun, n := time.Now(), 0
		var at []time.Duration
		stop := sampling(t, h, []Source{{"d", thermometer(func(ctx context.Context) ([]device.Reading, error) {
			at = append(at, time.Since(begun)/time.Second)
			if n++; n <= 3 {
				return nil, errors.New("no answer on the bus")
			}
			<-ctx.Done()
			return nil, fmt.Errorf("it was not its turn: %w", ctx.Err())
		}), 20 * time.Second, nil, 0}})
		time.Sleep(230 * time.Second)
		stop()
		if want := []time.Duration{0, 20, 60, 140, 160, 180, 200, 220}; !slices.Equal(at, want) {
			t.Errorf("asked at %v, want %v", at, want)
		}
	})
}

// TestSlowSamples: a device that is slower than its period is always good, and is back at its
// period once it is fast.
func TestSlowSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHub(sink{func(r device.Reading) {
			if r.Quality != device.Good {
				t.Errorf("after %v: %+v", time.Since(r.At), r)
			}
		}}, &records{}, uri)
		begun := time.Now()
		var at []time.Duration
		stop := sampling(t, h, []Source{{"d", thermometer(func(ctx context.Context) ([]device.Reading, error) {
			if at = append(at, time.Since(begun)/time.Second); len(at) <= 3 {
				time.Sleep(5 * time.Second)
			}
			return whole(ctx)
		}), 3 * time.Second, nil, 0}})
		time.Sleep(25 * time.Second)
		stop()
		if want := []time.Duration{0, 6, 12, 18, 21, 24}; !slices.Equal(at, want) {
			t.Errorf("asked at %v, want %v", at, want)
		}
	})
}

// TestPeriod: a reading of a device that tells of itself stays good as long as its driver says.
func TestPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, at := newHub(), time.Now()
		stop := sampling(t, h, []Source{{"d", thermometer(func(context.Context) ([]device.Reading, error) {
			return []device.Reading{{Point: "t", Value: device.Number(20), Quality: device.Good, At: at}}, nil
		}), time.Second, nil, time.Minute}})
		defer stop()
		time.Sleep(2 * time.Minute)
		if r, _ := h.Latest("d/t"); r.Quality != device.Good {
			t.Errorf("within three periods it is %v", r.Quality)
		}
		time.Sleep(90 * time.Second)
		if r, _ := h.Latest("d/t"); r.Quality != device.Stale {
			t.Errorf("after more than three periods it is %v", r.Quality)
		}
	})
}
