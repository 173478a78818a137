package power

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/device"
)

// board is a site with a UPS and its gauge, which is read each ten seconds.
type board struct {
	agents.Site
	mu      sync.Mutex
	charge  agents.Reading
	mains   agents.Reading
	at      time.Time // of the charge
	changed chan struct{}
	offer   bool // each update says that the offer may have changed

	refuses error
	did     []string
}

const every = 10 * time.Second

func (b *board) Points(context.Context, agents.Principal, agents.SiteRequest) (agents.PointList, error) {
	return agents.PointList{Points: []agents.Point{
		{Point: "ups/charge", Kind: device.KindMeasurement, Unit: "%"}, {Point: "mains/input", Kind: device.KindState},
	}}, nil
}

func (b *board) Read(_ context.Context, _ agents.Principal, r agents.ReadRequest) (out agents.Readings, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, point := range r.Points {
		reading := b.mains
		if point == "ups/charge" {
			reading = b.charge
			reading.Age = time.Since(b.at).Seconds()
		}
		reading.Point, reading.Time = point, "now"
		out.Readings = append(out.Readings, reading)
	}
	return out, nil
}

func (b *board) Watch(
	ctx context.Context, _ agents.Principal, _ agents.WatchRequest, emit func(agents.Update) error,
) error {
	for {
		b.mu.Lock()
		u := agents.Update{Offer: b.offer}
		b.mu.Unlock()
		if err := emit(u); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-b.changed:
		}
	}
}

// say is a reading of the gauge.
func (b *board) say(r agents.Reading) {
	b.mu.Lock()
	b.charge, b.at = r, time.Now()
	b.mu.Unlock()
	b.changed <- struct{}{}
}

// says reads the charge for a time.
func (b *board) says(percent float64, length time.Duration) {
	for range length / every {
		b.say(good(device.Number(percent)))
		time.Sleep(every)
	}
}

func (b *board) note(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.did = append(b.did, fmt.Sprintf(format, args...))
}

// done returns the recorded actions, and clears them.
func (b *board) done() []string {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	defer func() { b.did = nil }()
	return b.did
}

func good(v device.Value) agents.Reading { return agents.Reading{Value: v, Quality: device.Good} }

// onBoard runs the agent on a board without mains whose gauge says 80 %.
func onBoard(t *testing.T, test func(t *testing.T, b *board, a *Agent)) *board {
	t.Helper()
	var on *board
	synctest.Test(t, func(t *testing.T) {
		b := &board{
			mains: good(device.Bool(false)), charge: good(device.Number(80)), at: time.Now(), changed: make(chan struct{}),
		}
		a := Kind(World{
			Start: time.Now(),
			Off: func(context.Context) error {
				b.note("off")
				b.mu.Lock()
				defer b.mu.Unlock()
				return b.refuses
			},
			Tell: func(will bool, _ string, left time.Duration) { b.note("tell %v %v", will, left) },
			Note: func(string) {},
		}).New().(*Agent)
		on, a.OffWhen = b, "ups/charge < 10 % and mains/input is off"
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.Run(ctx, agents.Principal{}, b) }()
		test(t, b, a)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return on
}

func expect(t *testing.T, b *board, what string, want ...string) {
	t.Helper()
	if got := b.done(); !slices.Equal(got, want) {
		t.Errorf("%s: %q instead of %q", what, got, want)
	}
}

func TestOff(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board, a *Agent) {
		b.says(80, 10*time.Minute)
		expect(t, b, "enough")
		b.says(9, 20*time.Second)
		expect(t, b, "for less than the time", "tell true 30s")
		b.says(9, time.Minute)
		expect(t, b, "for the time", "off")
		b.says(8, 2*time.Minute)
		expect(t, b, "a machine that is still on", "off")
		b.says(12, 10*time.Minute)
		expect(t, b, "charged again", "tell false 0s")
	})
}

// TestEnd: a site that ends because the machine is powered off does not say that it stays on; one that ends before
// does.
func TestEnd(t *testing.T) {
	for length, want := range map[time.Duration][]string{
		20 * time.Second: {"tell true 30s", "tell false 0s"}, time.Minute: {"tell true 30s", "off"},
	} {
		b := onBoard(t, func(t *testing.T, b *board, a *Agent) {
			b.says(80, 10*time.Minute)
			b.says(9, length)
		})
		if !slices.Equal(b.did, want) {
			t.Errorf("after %v: %q instead of %q", length, b.did, want)
		}
	}
}

// TestOffer: the time goes on where the offer has changed, but not the points of the condition.
func TestOffer(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board, a *Agent) {
		b.says(80, 10*time.Minute)
		b.mu.Lock()
		b.offer = true
		b.mu.Unlock()
		b.says(9, time.Minute)
		expect(t, b, "for the time", "tell true 30s", "off")
	})
}

// TestBootLoop: a machine that starts with an empty battery stays on for a while, in which it can be changed.
func TestBootLoop(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board, a *Agent) {
		b.says(3, notBefore-10*time.Second)
		expect(t, b, "after the start", "tell true 5m0s")
		b.says(3, time.Minute)
		expect(t, b, "later", "off")
	})
}

// TestBroken: no gauge that jumps, is stale, fails, or hangs at its last value powers a machine off.
func TestBroken(t *testing.T) {
	bad := agents.Reading{Quality: device.Bad, Why: "NaN"}
	stale := agents.Reading{Value: device.Number(3), Quality: device.Stale}
	for name, breaks := range map[string]func(b *board){
		"jumps":        func(b *board) { b.says(3, 20*time.Second); b.says(80, every) },
		"fails":        func(b *board) { b.say(bad); time.Sleep(every) },
		"is stale":     func(b *board) { b.say(stale); time.Sleep(every) },
		"fails in two": func(b *board) { b.says(3, 20*time.Second); b.say(bad); time.Sleep(every) },
	} {
		t.Run(name, func(t *testing.T) {
			onBoard(t, func(t *testing.T, b *board, a *Agent) {
				b.says(80, 10*time.Minute)
				for range 100 {
					breaks(b)
				}
				did := b.done()
				if slices.Contains(did, "off") {
					t.Error("the machine is powered off")
				}
				if len(did) > 2*6 {
					t.Errorf("it tells %d times in 50 minutes or less", len(did))
				}
			})
		})
	}
	t.Run("hangs", func(t *testing.T) {
		onBoard(t, func(t *testing.T, b *board, a *Agent) {
			b.says(80, 10*time.Minute)
			b.say(good(device.Number(3))) // and never again, though nothing says that it is stale
			time.Sleep(time.Hour)
			if slices.Contains(b.done(), "off") {
				t.Error("the machine is powered off")
			}
		})
	})
	t.Run("mains", func(t *testing.T) {
		onBoard(t, func(t *testing.T, b *board, a *Agent) {
			b.mu.Lock()
			b.mains = agents.Reading{Quality: device.Bad}
			b.mu.Unlock()
			b.says(3, time.Hour)
			expect(t, b, "it is not known whether mains is there")
		})
	})
}

// TestRefused: a machine that cannot be powered off says so, and is asked again.
func TestRefused(t *testing.T) {
	onBoard(t, func(t *testing.T, b *board, a *Agent) {
		b.refuses = errors.New("no service of root's is there")
		b.says(80, 10*time.Minute)
		b.says(9, time.Minute)
		expect(t, b, "once", "tell true 30s", "off")
		if r := a.Report(t.Context()); r.State != agent.Failed {
			t.Errorf("%+v", r)
		}
		b.says(9, 2*time.Minute)
		expect(t, b, "again", "off")
	})
}

func TestDefine(t *testing.T) {
	define := func(when string, length time.Duration) (agent.Definition, error) {
		a := Kind(World{}).New().(*Agent)
		a.OffWhen, a.For = when, length
		return a.Define()
	}
	d, err := define("ups/charge < 10 % and mains/input is off", 30*time.Second)
	if err != nil || !slices.Equal(d.Reads, []string{"ups/charge", "mains/input"}) || d.Moves != nil || d.Doubts != nil {
		t.Errorf("%+v %v", d, err)
	}
	if d, err := define("ups/charge < 10 %", 30*time.Second); err != nil || len(d.Doubts) != 1 {
		t.Errorf("%+v %v", d, err)
	}
	for when, length := range map[string]time.Duration{
		"": time.Minute, "on": time.Minute, "now > 6:00 and ups/charge < 10 %": time.Minute,
		"mean(ups/charge, 1m) < 10 %": time.Minute, "cellar/ups/charge < 10 %": time.Minute,
		"ups/charge < 10 % and ups/charge > 20 %": time.Minute, "ups/charge < 10 %": time.Second,
		"ups/charge < 11 %": 2 * time.Hour,
	} {
		if _, err := define(when, length); err == nil {
			t.Errorf("%q for %v is accepted", when, length)
		}
	}
}

// TestOutput: no condition has an output, which others than the owner move.
func TestOutput(t *testing.T) {
	w := World{}
	w.Rules.Points = []agents.Point{
		{Point: "ups/charge", Kind: device.KindMeasurement, Unit: "%"}, {Point: "lamp/switch", Kind: device.KindSwitch},
	}
	for when, ok := range map[string]bool{"ups/charge < 10 %": true, "ups/charge < 10 % and lamp/switch is off": false} {
		a := Kind(w).New().(*Agent)
		a.OffWhen = when
		if _, err := a.Define(); (err == nil) != ok {
			t.Errorf("%s: %v", when, err)
		}
	}
}
