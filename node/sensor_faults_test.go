package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// TestSensorErrors: a device that cannot be read is a fault of all its sampled points, and of no
// others, until it can be read again.
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
			}), time.Second, nil, 0},
			{"other", thermometer(whole), time.Second, nil, 0},
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

// TestBackOff: a failing device is tried ever less often, on the same ticks as all others, and is
// back at its period once it answers.
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
			}), every, nil, 0}})
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

// TestSensorHangs: a sample has the same time, whatever its period. Others go on.
func TestSensorHangs(t *testing.T) {
	for _, every := range []time.Duration{time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			const limit = sampleTimeout
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
				{"hangs", hang, every, nil, 0},
				{"well", thermometer(func(ctx context.Context) ([]device.Reading, error) { well++; return whole(ctx) }), 100 * time.Millisecond, nil, 0},
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

// TestDriversThatPanic: a defect of one driver is a fault of its points.
func TestDriversThatPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		watched := 0
		stop := sampling(t, h, []Source{
			{"d", thermometer(func(context.Context) ([]device.Reading, error) { panic("index out of range") }), time.Second, nil, 0},
			{"e", &edges{watch: func(context.Context, func(device.Reading)) error { watched++; panic("a defect") }}, time.Second, nil, 0},
			{"f", thermometer(whole), time.Second, nil, 0},
		})
		time.Sleep(1500 * time.Millisecond)
		stop()
		if r, _ := h.Latest("d/t"); r.Quality != device.Bad || !strings.Contains(r.Why, "index out of range") {
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

// TestDeafDrivers: a driver that does not return is a fault of its points and is not called again
// meanwhile. It blocks neither the others nor the end.
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
			}), time.Second, nil, 0},
			{"e", &edges{watch: func(context.Context, func(device.Reading)) error { <-let; return nil }}, time.Second, nil, 0},
			{"f", thermometer(whole), time.Second, nil, 0},
		})
		time.Sleep(sampleTimeout + 2500*time.Millisecond)
		if r, _ := h.Latest("d/t"); r.Quality != device.Bad || !strings.Contains(r.Why, "does not answer") || calls.Load() != 1 {
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

// TestDriverThatComesBack: what a driver that returns late has read is taken in, as is that of a
// driver that is merely slower than its period.
func TestDriverThatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		late := 2 * sampleTimeout
		slow := thermometer(func(ctx context.Context) ([]device.Reading, error) {
			time.Sleep(3 * time.Second)
			return whole(ctx)
		})
		stop := sampling(t, h, []Source{{"slow", slow, time.Second, nil, 0}, {"d", thermometer(func(ctx context.Context) ([]device.Reading, error) {
			time.Sleep(late)
			late = 0
			return whole(ctx)
		}), time.Second, nil, 0}})
		time.Sleep(2*sampleTimeout + 500*time.Millisecond)
		for _, p := range []string{"d/t", "slow/t"} {
			if r, _ := h.Latest(p); r.Quality != device.Good {
				t.Errorf("%+v", r)
			}
		}
		stop()
		time.Sleep(3 * time.Second) // for the slow one's last
	})
}
