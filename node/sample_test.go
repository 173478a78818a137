package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
func (s *sensor) Close() error                 { return nil }
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
			}), every, nil})
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
		}), 2 * time.Second, nil}})
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
		}), time.Second, nil}})
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
		stop := sampling(t, h, []Source{{"d", thermometer(whole), time.Second, nil}})
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

// TestEdgeDuringSample: a change that a device tells of while it is sampled is newer
// than the sample, whenever the driver says that it has read it.
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
		stop := sampling(t, h, []Source{{"door", c, 10 * time.Second, nil}})
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

// TestConvert: a number reaches everybody as the owner wants it, whether it was
// sampled or told; what is no number is left alone.
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
			{"d", thermometer(whole), time.Second, map[string]func(float64) float64{"t": percent, "s": percent}},
			{"e", e, time.Second, map[string]func(float64) float64{"button": percent}},
			{"f", thermometer(func(context.Context) ([]device.Reading, error) {
				return []device.Reading{{Point: "t", Quality: device.Bad, Why: "loose"}}, nil
			}), time.Second, map[string]func(float64) float64{"t": percent}},
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

// TestSensorErrors: what could not be read is a fault of all its sampled points,
// and of no others, until it can be read again.
func TestSensorErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		n := 0
		stop := sampling(t, h, []Source{
			{"d", thermometer(func(ctx context.Context) ([]device.Reading, error) {
				if n++; n == 2 {
					return nil, errors.New("no answer on the bus")
				}
				return whole(ctx)
			}), time.Second, nil},
			{"other", thermometer(whole), time.Second, nil},
		})
		quality := func(point string) string {
			r, _ := h.Latest(point)
			return fmt.Sprint(r.Quality, " ", r.Value, " ", r.Why)
		}
		for i, want := range []string{"good 1 ", "fault - no answer on the bus", "good 1 "} {
			synctest.Wait()
			if got := quality("d/t"); got != want {
				t.Errorf("sample %d: %s, want %s", i, got, want)
			}
			if got := quality("d/s"); (got[:4] == "good") != (want[:4] == "good") {
				t.Errorf("sample %d: the other point is %s", i, got)
			}
			if got := quality("other/t"); got != "good 1 " {
				t.Errorf("sample %d: the other device is %s", i, got)
			}
			if _, ok := h.Latest("d/relay"); ok {
				t.Error("an output has a sensor's fault")
			}
			time.Sleep(time.Second)
		}
		stop()
	})
}

// TestBackOff: what keeps failing is tried less and less often, on the same ticks
// as all others, and is back at its period once it answers.
func TestBackOff(t *testing.T) {
	for every, pauses := range map[time.Duration][]time.Duration{
		time.Second:      {1, 2, 4, 8, 16, 30, 30},
		20 * time.Second: {1, 2, 4, 8, 15, 15, 15}, // five minutes
		time.Hour:        {1, 1, 1, 1, 1, 1, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHub()
			start := time.Now()
			var mu sync.Mutex
			var at []time.Duration
			dead := true
			stop := sampling(t, h, []Source{{"d", thermometer(func(ctx context.Context) ([]device.Reading, error) {
				mu.Lock()
				at = append(at, time.Since(start))
				fails := dead
				mu.Unlock()
				time.Sleep(100 * time.Millisecond)
				if fails {
					return nil, errors.New("no answer on the bus")
				}
				return whole(ctx)
			}), every, nil}})
			want := []time.Duration{0}
			for _, p := range pauses {
				want = append(want, want[len(want)-1]+p*every)
			}
			time.Sleep(want[len(want)-1] + every/2)
			mu.Lock()
			dead = false
			if !slices.Equal(at, want) {
				t.Errorf("every %v: samples at %v, want %v", every, at, want)
			}
			before := len(at)
			mu.Unlock()
			if r, _ := h.Latest("d/t"); r.Quality != device.Bad || !r.Value.IsZero() {
				t.Errorf("it reads %+v", r)
			}
			last := pauses[len(pauses)-1]
			time.Sleep(last * every)
			if r, _ := h.Latest("d/t"); r.Quality != device.Good {
				t.Errorf("it answers again and reads %+v", r)
			}
			time.Sleep(5 * every)
			stop()
			if n := len(at) - before; n != 6 {
				t.Errorf("%d samples in six periods once it answers", n)
			}
		})
	}
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
		}), 20 * time.Second, nil}})
		time.Sleep(230 * time.Second)
		stop()
		if want := []time.Duration{0, 20, 60, 140, 160, 180, 200, 220}; !slices.Equal(at, want) {
			t.Errorf("asked at %v, want %v", at, want)
		}
	})
}

// TestSlowSamples: what a busy bus makes slower than its period is read all the same, and
// has its own time again once it is quick.
func TestSlowSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		var most []time.Duration
		stop := sampling(t, h, []Source{{"d", thermometer(func(ctx context.Context) ([]device.Reading, error) {
			deadline, _ := ctx.Deadline()
			most = append(most, time.Until(deadline)/time.Second)
			takes := 5 * time.Second
			if len(most) > 4 {
				takes = time.Second
			}
			select {
			case <-time.After(takes):
				return whole(ctx)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}), 3 * time.Second, nil}})
		time.Sleep(20 * time.Second)
		if r, _ := h.Latest("d/t"); r.Quality != device.Good {
			t.Errorf("%+v", r)
		}
		time.Sleep(20 * time.Second)
		stop()
		if want := []time.Duration{3, 6, 10, 10, 10, 3}; !slices.Equal(most[:len(want)], want) {
			t.Errorf("it had %v, want %v", most, want)
		}
	})
}

// TestSensorHangs: a sample has its period, and ten seconds at most. Others go on.
func TestSensorHangs(t *testing.T) {
	for every, limit := range map[time.Duration]time.Duration{time.Second: time.Second, time.Hour: sampleTimeout} {
		synctest.Test(t, func(t *testing.T) {
			h := newHub()
			begun := time.Now()
			var after time.Duration
			hang := thermometer(func(ctx context.Context) ([]device.Reading, error) {
				<-ctx.Done()
				after = time.Since(begun)
				return nil, ctx.Err()
			})
			well := 0
			stop := sampling(t, h, []Source{
				{"hangs", hang, every, nil},
				{"well", thermometer(func(ctx context.Context) ([]device.Reading, error) { well++; return whole(ctx) }), 100 * time.Millisecond, nil},
			})
			time.Sleep(limit + limit/2)
			synctest.Wait()
			if after != limit {
				t.Errorf("every %v: it was given up after %v, want %v", every, after, limit)
			}
			if r, _ := h.Latest("hangs/t"); r.Quality != device.Bad || !strings.HasPrefix(r.Why, fmt.Sprintf("it was not read within %v: ", limit)) {
				t.Errorf("every %v: it reads %+v", every, r)
			}
			if want := int((limit+limit/2)/(100*time.Millisecond)) + 1; well != want {
				t.Errorf("every %v: the other was sampled %d times, want %d", every, well, want)
			}
			stop() // in the middle of a sample
			if r, _ := h.Latest("hangs/t"); r.Why == context.Canceled.Error() {
				t.Error("the site's end is a fault of the device")
			}
		})
	}
}

// edges is a device that speaks up.
type edges struct {
	device.Device
	watch func(context.Context, func(device.Reading)) error
}

func (e *edges) Describe() device.Description {
	return device.Description{Points: []device.Point{
		{Name: "button", Kind: device.KindEvent},
		{Name: "output", Kind: device.KindSwitch, Safe: device.Bool(false)},
	}}
}
func (e *edges) Watch(ctx context.Context, emit func(device.Reading)) error {
	return e.watch(ctx, emit)
}

func TestListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		start := time.Now()
		var at []time.Duration
		e := &edges{watch: func(ctx context.Context, emit func(device.Reading)) error {
			at = append(at, time.Since(start))
			emit(good("button", device.Bool(true)))
			if len(at) == 10 {
				time.Sleep(time.Hour) // well for long
			}
			return errors.New("broken")
		}}
		guard := &edges{watch: func(ctx context.Context, emit func(device.Reading)) error {
			emit(good("d/relay", device.Bool(true)))
			<-ctx.Done()
			return ctx.Err()
		}}
		stop := sampling(t, h, []Source{{"d", e, time.Second, nil}}, guard)
		time.Sleep(2 * time.Hour)
		stop()
		var pauses []time.Duration
		for i := range 9 {
			pauses = append(pauses, (at[i+1]-at[i])/time.Second)
		}
		if want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60}; !slices.Equal(pauses, want) {
			t.Errorf("pauses of %v s, want %v", pauses, want)
		}
		if got := at[10] - at[9]; got != time.Hour+watchRetry {
			t.Errorf("after an hour of good health it paused for %v", got-time.Hour)
		}
		if r, ok := h.Latest("d/relay"); !ok || r.Quality != device.Good || r.Value != device.Bool(true) {
			t.Errorf("%+v", r)
		}
	})
}

// TestBrokenWatch: what only a watch could tell is a fault while the watch is
// broken, and a watch tells of no output and of nothing that is not described.
func TestBrokenWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		tries := 0
		e := &edges{watch: func(ctx context.Context, emit func(device.Reading)) error {
			if tries++; tries == 1 {
				emit(good("button", device.Bool(true)))
				emit(good("output", device.Bool(true)))
				emit(good("elsewhere", device.Bool(true)))
				return errors.New("unplugged")
			}
			<-ctx.Done()
			return ctx.Err()
		}}
		stop := sampling(t, h, []Source{{"d", e, time.Second, nil}})
		time.Sleep(watchRetry / 2)
		if r, _ := h.Latest("d/button"); r.Quality != device.Bad || r.Why != "unplugged" || !r.Value.IsZero() {
			t.Errorf("%+v", r)
		}
		for _, p := range []string{"d/output", "d/elsewhere"} {
			if r, ok := h.Latest(p); ok {
				t.Errorf("%s reads %+v", p, r)
			}
		}
		time.Sleep(time.Minute)
		stop()
		if tries != 2 {
			t.Errorf("it was watched %d times", tries)
		}
	})
}

// TestDriversThatPanic: a defect of one driver is a fault of its points.
func TestDriversThatPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		watched := 0
		stop := sampling(t, h, []Source{
			{"d", thermometer(func(context.Context) ([]device.Reading, error) { panic("index out of range") }), time.Second, nil},
			{"e", &edges{watch: func(context.Context, func(device.Reading)) error { watched++; panic("a defect") }}, time.Second, nil},
			{"f", thermometer(whole), time.Second, nil},
		})
		time.Sleep(1500 * time.Millisecond)
		stop()
		if r, _ := h.Latest("d/t"); r.Quality != device.Bad || r.Why != "the driver panicked: index out of range" {
			t.Errorf("%+v", r)
		}
		if r, _ := h.Latest("f/t"); r.Quality != device.Good {
			t.Errorf("%+v", r)
		}
		if watched != 2 {
			t.Errorf("it was watched %d times", watched)
		}
	})
}

// TestDeafDrivers: a driver that does not come back is a fault of its points, is
// called no second time meanwhile, and holds up neither the others nor the end.
func TestDeafDrivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		let := make(chan struct{})
		var calls atomic.Int32
		stop := sampling(t, h, []Source{
			{"d", thermometer(func(ctx context.Context) ([]device.Reading, error) {
				calls.Add(1)
				<-let
				return whole(ctx)
			}), time.Second, nil},
			{"e", &edges{watch: func(context.Context, func(device.Reading)) error { <-let; return nil }}, time.Second, nil},
			{"f", thermometer(whole), time.Second, nil},
		})
		time.Sleep(sampleTimeout + 2500*time.Millisecond)
		if r, _ := h.Latest("d/t"); r.Quality != device.Bad || r.Why != "the driver does not answer; check its wiring and supply" || calls.Load() != 1 {
			t.Errorf("%+v after %d calls", r, calls.Load())
		}
		if r, _ := h.Latest("f/t"); r.Quality != device.Good {
			t.Errorf("%+v", r)
		}
		begun := time.Now()
		stop()
		if took := time.Since(begun); took > time.Second {
			t.Errorf("the end took %v", took)
		}
		close(let)
	})
}

// TestDriverThatComesBack is heard again, and one that is merely slower than its
// period is heard at all.
func TestDriverThatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		late := 2 * sampleTimeout
		slow := thermometer(func(ctx context.Context) ([]device.Reading, error) {
			time.Sleep(3 * time.Second)
			return whole(ctx)
		})
		stop := sampling(t, h, []Source{{"slow", slow, time.Second, nil}, {"d", thermometer(func(ctx context.Context) ([]device.Reading, error) {
			time.Sleep(late)
			late = 0
			return whole(ctx)
		}), time.Second, nil}})
		time.Sleep(2*sampleTimeout + 1500*time.Millisecond)
		for _, p := range []string{"d/t", "slow/t"} {
			if r, _ := h.Latest(p); r.Quality != device.Good {
				t.Errorf("%+v", r)
			}
		}
		stop()
		time.Sleep(3 * time.Second) // for the slow one's last
	})
}

// TestDeafWatch: a driver whose watch does not end with its context is heard no more: its
// readings would be taken for those of the device that has its name now.
func TestDeafWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		e := &edges{watch: func(_ context.Context, emit func(device.Reading)) error {
			emit(good("button", device.Bool(true)))
			time.Sleep(time.Minute) // deaf to ctx
			emit(good("button", device.Bool(false)))
			return nil
		}}
		stop := sampling(t, h, []Source{{"d", e, time.Second, nil}})
		time.Sleep(time.Second)
		stop()
		h.Forget("d/button")
		time.Sleep(time.Hour)
		if r, ok := h.Latest("d/button"); ok {
			t.Errorf("%+v", r)
		}
	})
}
