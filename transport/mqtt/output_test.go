package mqtt

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/node/occurrence"

	"github.com/go-json-experiment/json"
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
	out := agents.Output{Output: r.Output, Value: r.Value, Left: 30}
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
		"refused":              {map[int]error{1: device.Faultf(device.Busy, "no")}, func(*output, func()) {}, []string{"0s on"}},
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
				b := newBridge(&Agent{Hold: 150 * time.Second, lease: time.Minute}, agents.Principal{}, site, nil)
				o := &output{bridge: b, address: "a/b", wake: make(chan struct{}, 1)}
				o.set(agents.Point{Point: "a/b", Kind: device.KindSwitch, Safe: device.Bool(false)})
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

// TestFlicker: an output is moved away from safe so often only that a card can bear it, whatever is asked for; the
// return to safe does not wait.
func TestFlicker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := &moved{began: time.Now()}
		b := newBridge(&Agent{Hold: time.Hour}, agents.Principal{}, site, nil)
		o := &output{bridge: b, address: "a/b", wake: make(chan struct{}, 1)}
		o.set(agents.Point{Point: "a/b", Kind: device.KindLevel, Safe: device.Number(0)})
		const minutes = 10
		for n := range minutes * 60 * 100 {
			o.want(device.Number(float64(n%3)), false)
			o.begin(t.Context())
			time.Sleep(10 * time.Millisecond)
		}
		o.want(device.Number(7), false)
		o.begin(t.Context())
		time.Sleep(movePause)
		synctest.Wait()
		o.want(device.Number(0), false)
		synctest.Wait()
		moves := 0
		for _, says := range site.all {
			if !strings.HasSuffix(says, " -") {
				moves++
			}
		}
		if most := moveBurst + minutes*20 + 2; moves > most || moves < most/2 {
			t.Errorf("%d moves, at most %d", moves, most)
		}
		if n := len(site.all); site.all[n-1] != "10m3s -" || !strings.HasSuffix(site.all[n-2], " 7") {
			t.Errorf("%q", site.all[n-2:])
		}
		b.moving.Wait()
	})
}

// TestToldAgain: who subscribed only after the description is told the states that have not changed.
func TestToldAgain(t *testing.T) {
	r := newRig(t, all, nil, nil)
	r.until("the state is told again", func() bool { _, n := r.last(r.topic("heater")); return n > 1 })
}

// TestHappened: what happens at the site is told as events, if its owner wants that, and without what the bridge may
// not read.
func TestHappened(t *testing.T) {
	source := occurrence.New(occurrence.Options{Now: func() (time.Time, bool) { return time.Now(), true }})
	source.Returned("greenhouse/heater", "somebody", "max_on") // before
	r := newRig(t, "read greenhouse/temperature+greenhouse/heater", nil,
		func(a *Agent) { a.world.Source, a.About = source, []string{"lease", "approval"} })
	source.Returned("greenhouse/lamp", "somebody", "max_on")      // which it may not read
	source.Ending("somebody", "grant", time.Now().Add(time.Hour)) // nobody asked for
	if text, _ := r.last(r.base() + "/happened"); text != "" {
		t.Fatal(text)
	}
	source.Returned("greenhouse/heater", "somebody", "max_on")
	var says map[string]any
	r.until("the lease is told", func() bool {
		text, _ := r.last(r.base() + "/happened")
		return json.Unmarshal([]byte(text), &says) == nil
	})
	if says["event_type"] != "lease" || says["of"] != "greenhouse/heater" || len(says) != 3 {
		t.Errorf("%v", says)
	}
	if text, _ := r.last("homeassistant/device/agentsite-test/config"); !strings.Contains(text, `"event_types":["lease","approval"]`) {
		t.Error(text)
	}
}

// counted is a host that counts what it is asked.
type counted struct {
	task.Host
	n int
}

func (c *counted) Ask(context.Context, agents.Principal, task.Request) (task.Task, error) {
	c.n++
	return task.Task{}, nil
}

// TestPresses: a button is pressed so often only that a card can bear the tasks, whatever is sent.
func TestPresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := new(counted)
		link := &link{keyed: make(map[string]message), wake: make(chan struct{}, 1), longest: maxPacket}
		b := newBridge(&Agent{world: World{Tasks: func() task.Host { return host }}}, agents.Principal{}, nil, link)
		b.asks = map[string]asked{"a/b": {agent: "a", skill: task.Skill{ID: "b"}}}
		const minutes = 10
		for range minutes * 60 * 10 {
			b.ask(t.Context(), "a/b", nil)
			time.Sleep(100 * time.Millisecond)
		}
		b.moving.Wait()
		if most := moveBurst + minutes*20 + 2; host.n > most || host.n < most/2 {
			t.Errorf("%d tasks, at most %d", host.n, most)
		}
	})
}
