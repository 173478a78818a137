package mqtt

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

// moved is a site that notes what is moved, and when.
type moved struct {
	agents.Site
	began time.Time
	fails map[int]error // by the number of the call

	mu  sync.Mutex
	all []string
}

func (m *moved) Move(_ context.Context, _ agents.Principal, r agents.MoveRequest) (agents.Output, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	says := time.Since(m.began).Round(time.Second).String() + " " + r.Value.String()
	if r.Held {
		says += " held"
	}
	m.all = append(m.all, says)
	if err := m.fails[len(m.all)]; err != nil {
		return agents.Output{}, err
	}
	out := agents.Output{Output: r.Output, Value: r.Value}
	if r.For != nil {
		out.Left = *r.For
	}
	return out, nil
}

// TestHold: an output is renewed at two thirds of its lease, until it is told otherwise, nothing is said for long, a
// renewal fails, or the connection ends.
func TestHold(t *testing.T) {
	for what, tt := range map[string]struct {
		fails map[int]error
		do    func(o *output, end func())
		want  []string
	}{
		"nothing is said": {nil, func(*output, func()) {}, []string{"0s on", "40s on held", "1m20s on held", "2m0s on held", "2m40s - held"}},
		"off": {nil, func(o *output, _ func()) {
			time.Sleep(50 * time.Second)
			o.want(device.Bool(false), false)
		}, []string{"0s on", "40s on held", "50s -"}},
		"somebody else has it": {map[int]error{2: device.Faultf(device.Expired, "not held")}, func(*output, func()) {}, []string{"0s on", "40s on held"}},
		"refused":              {map[int]error{1: device.Faultf(device.Denied, "no")}, func(*output, func()) {}, []string{"0s on"}},
		"not known":            {map[int]error{1: device.Faultf(device.UnknownOutcome, "?")}, func(*output, func()) {}, []string{"0s on", "0s - held"}},
		"the end": {nil, func(o *output, end func()) {
			time.Sleep(10 * time.Second)
			end()
		}, []string{"0s on", "10s - held"}},
		"lost": {nil, func(o *output, _ func()) {
			time.Sleep(10 * time.Second)
			o.want(device.Value{}, true)
			time.Sleep(10 * time.Second)
			o.want(device.Value{}, true)
		}, []string{"0s on", "10s - held"}},
		"off before it was taken": {nil, func(o *output, _ func()) {
			o.want(device.Bool(true), false)
			o.want(device.Bool(false), false)
		}, []string{"0s on", "0s -"}},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				site := &moved{began: time.Now(), fails: tt.fails}
				b := newBridge(&Agent{Hold: 150 * time.Second, lease: lease}, agents.Principal{}, site, nil)
				o := &output{bridge: b, address: "a/b", wake: make(chan struct{}, 1)}
				o.set(agents.Point{Point: "a/b", Kind: device.KindSwitch, Safe: device.Bool(false), MaxSeconds: 600})
				ctx, end := context.WithCancel(t.Context())
				o.want(device.Bool(true), false)
				o.begin(ctx)
				synctest.Wait()
				tt.do(o, end)
				b.moving.Wait() // it ends when it holds nothing
				end()
				if !slices.Equal(site.all, tt.want) {
					t.Errorf("%q, want %q", site.all, tt.want)
				}
			})
		})
	}
}
