package web

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"agentsite/device"
	"agentsite/device/driver"
)

// peer is a server without a network: two switches, in one document, and a state in another.
type peer struct {
	on       map[string]bool
	asked    []string // the documents
	told     []string // the commands, such as "a=true"
	released int
	// ask and set come before an answer and after a command; nil for none.
	ask func(ctx context.Context, document string) error
	set func(ctx context.Context) error
}

var errGone = &linkFault{device.Faultf(device.Offline, "gone")}

// open returns the device of p.
func (p *peer) open(t *testing.T) *remote {
	p.on = make(map[string]bool)
	document := func(name string) *source {
		return &source{ask: func(ctx context.Context) ([]byte, error) {
			p.asked = append(p.asked, name)
			if p.ask != nil {
				if err := p.ask(ctx, name); err != nil {
					return nil, err
				}
			}
			return fmt.Appendf(nil, `{"a":%t,"b":%t,"state":true}`, p.on["a"], p.on["b"]), nil
		}}
	}
	outputs := document("outputs")
	var points []*point
	for _, name := range []string{"a", "b"} {
		points = append(points, &point{
			Point:  device.Point{Name: name, Kind: device.KindSwitch, Safe: device.Bool(false)},
			source: outputs, path: driver.Path(name), renew: 10 * time.Second,
			set: func(ctx context.Context, v device.Value) error {
				p.on[name] = v.Bool()
				p.told = append(p.told, fmt.Sprintf("%s=%t", name, v.Bool()))
				if p.set != nil {
					return p.set(ctx)
				}
				return nil
			},
		})
	}
	state := device.Point{Name: "state", Kind: device.KindState}
	points = append(points, &point{Point: state, source: document("state"), path: "state"})
	var desc device.Description
	for _, it := range points {
		it.decode = func(raw jsontext.Value) (device.Value, error) { return device.Bool(string(raw) == "true"), nil }
		desc.Points = append(desc.Points, it.Point)
	}
	r, err := newRemote(desc, points, func() error { p.released++; return nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// said returns the commands since the last call.
func (p *peer) said() []string {
	told := p.told
	p.told = nil
	return told
}

// waitEnd ends with its context, as an exchange with a silent server does.
func waitEnd(ctx context.Context) error { <-ctx.Done(); return errGone }

// TestCloseIsSafe: Close brings an output to safe unless it is known to be there, and tells a lost server once only.
func TestCloseIsSafe(t *testing.T) {
	refuses := func(context.Context) error { return device.Faultf(device.Offline, "no") }
	lost := func(context.Context) error { return errGone }
	for name, tt := range map[string]struct {
		before func(ctx context.Context, p *peer, r *remote) error
		set    func(context.Context) error
		want   []string
	}{
		"never moved": {func(context.Context, *peer, *remote) error { return nil }, nil, []string{"a=false", "b=false"}},
		"away": {func(ctx context.Context, _ *peer, r *remote) error { return r.Apply(ctx, "b", device.Bool(true)) }, nil,
			[]string{"a=false", "b=false"}},
		"safe": {func(ctx context.Context, _ *peer, r *remote) error { return r.Apply(ctx, "a", device.Bool(false)) }, nil,
			[]string{"b=false"}},
		"safe, then not known": {func(ctx context.Context, p *peer, r *remote) error {
			err := r.Apply(ctx, "a", device.Bool(false))
			p.set = lost
			if r.Apply(ctx, "a", device.Bool(true)) == nil {
				err = errors.New("confirmed")
			}
			return err
		}, nil, []string{"a=false", "b=false"}},
		"refuses": {func(context.Context, *peer, *remote) error { return nil }, refuses, []string{"a=false", "b=false"}},
		"lost":    {func(context.Context, *peer, *remote) error { return nil }, lost, []string{"a=false"}},
		"silent":  {func(context.Context, *peer, *remote) error { return nil }, waitEnd, []string{"a=false"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := new(peer)
			r := p.open(t)
			if err := tt.before(t.Context(), p, r); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			p.said()
			p.set = tt.set
			begun := time.Now()
			if err := r.Close(); (err == nil) != (tt.set == nil) || time.Since(begun) > closeTime {
				t.Errorf("%s: %v after %v", name, err, time.Since(begun))
			}
			if told := p.said(); !slices.Equal(told, tt.want) {
				t.Errorf("%s: Close says %v", name, told)
			}
			p.asked = nil
			_, sampled := r.Sample(t.Context())
			if sampled == nil || r.Apply(t.Context(), "a", device.Bool(true)) == nil || r.Close() != nil ||
				len(p.asked)+len(p.said()) > 0 || p.released != 1 {
				t.Errorf("%s: a closed device is used", name)
			}
		})
	}
}

// TestCloseInterrupts: Close does not wait for a Sample.
func TestCloseInterrupts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{ask: func(ctx context.Context, document string) error {
			if document == "state" {
				return waitEnd(ctx)
			}
			return nil
		}}
		r := p.open(t)
		go r.Sample(t.Context())
		synctest.Wait()
		begun := time.Now()
		if err := r.Close(); err != nil || time.Since(begun) > closeTime {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

// TestSamplesGiveWay: an Apply overtakes also the Samples that wait before it.
func TestSamplesGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fast atomic.Bool
		p := &peer{ask: func(ctx context.Context, document string) error {
			if !fast.Load() && document == "state" {
				return waitEnd(ctx)
			}
			return nil
		}}
		r := p.open(t)
		var samples sync.WaitGroup
		for range 3 {
			samples.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if all, err := r.Sample(ctx); err != nil || len(all) != 3 || all[2].Quality != device.Good {
					t.Errorf("a Sample that gave way: %v, %v", all, err)
				}
			})
		}
		synctest.Wait()
		begun := time.Now()
		if err := r.Apply(t.Context(), "a", device.Bool(true)); err != nil || time.Since(begun) > patience {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		fast.Store(true)
		time.Sleep(time.Second)
		samples.Wait()
	})
}

// TestRenewInTime: a value away from safe is sent again when its time is over, once.
func TestRenewInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(peer)
		r := p.open(t)
		sent := func() int {
			p.said()
			r.Sample(t.Context())
			return len(p.said())
		}
		p.on["a"] = true // by somebody else
		if n := sent(); n != 0 {
			t.Errorf("what was not applied is sent %d times", n)
		}
		if err := r.Apply(t.Context(), "a", device.Bool(true)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			time.Sleep(9 * time.Second)
			if n := sent(); n != 0 {
				t.Errorf("it is sent %d times before its time", n)
			}
			time.Sleep(time.Second)
			if n, more := sent(), sent(); n != 1 || more != 0 {
				t.Errorf("it is sent %d times, and %d times at once after that", n, more)
			}
		}
		time.Sleep(10 * time.Second)
		p.set = waitEnd
		begun := time.Now()
		if n := sent(); n != 1 || time.Since(begun) > renewTimeout {
			t.Errorf("it is sent %d times in %v", n, time.Since(begun))
		}
	})
}

// TestUnconfirmed: whatever hides the effect of a write that was sent, its outcome is not known.
func TestUnconfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(peer)
		r := p.open(t)
		for _, err := range []error{errGone, device.Faultf(device.Offline, "refused")} {
			p.ask = func(context.Context, string) error { return err }
			got := r.Apply(t.Context(), "a", device.Bool(true))
			if got == nil || device.AsFault(got).Kind != device.UnknownOutcome {
				t.Error(got)
			}
		}
		p.ask = nil
	})
}

// TestAskedAgain: a server that is lost is asked for one document, and then not for a while; a caller that has given
// up is no reason for a pause.
func TestAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(peer)
		r := p.open(t)
		asked := func() int {
			p.asked = nil
			r.Sample(t.Context())
			return len(p.asked)
		}
		ctx, cancel := context.WithCancel(t.Context())
		p.ask = func(ctx context.Context, _ string) error { cancel(); return waitEnd(ctx) }
		if _, err := r.Sample(ctx); err == nil {
			t.Error("it does not end with its context")
		}
		p.ask = nil
		if n := asked(); n != 2 {
			t.Errorf("after a caller gave up %d documents", n)
		}
		for _, document := range []string{"outputs", "state"} {
			p.ask = func(_ context.Context, of string) error {
				if of == document {
					return errGone
				}
				return nil
			}
			want := map[string]int{"outputs": 1, "state": 2}[document]
			if n, again := asked(), asked(); n != want || again != 0 {
				t.Errorf("without %s: %d documents, and %d at once after that", document, n, again)
			}
			time.Sleep(2 * time.Minute)
		}
		p.ask = nil
	})
}
