package tools_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/device"
	"agentsite/device/guard"
	"agentsite/node"
	"agentsite/transport/rpc"
)

// updates is a watch of a site. Updates since the last look are merged into one.
type updates struct {
	mu   sync.Mutex
	next agents.Update
	end  func() error
}

func (u *updates) merge(n agents.Update) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if n.Offer {
		u.next = agents.Update{Offer: true}
	}
next:
	for _, r := range n.Readings {
		for i, have := range u.next.Readings {
			if have.Point == r.Point {
				u.next.Readings[i] = r
				continue next
			}
		}
		u.next.Readings = append(u.next.Readings, r)
	}
	if n.Approvals != nil {
		u.next.Approvals = n.Approvals
		for i := range n.Approvals {
			u.next.Approvals[i].Handle = ""
		}
	}
	if n.Stops != nil {
		u.next.Stops = n.Stops
	}
	return nil
}

// told returns what was told since it was called last.
func (u *updates) told() agents.Update {
	synctest.Wait()
	u.mu.Lock()
	defer u.mu.Unlock()
	next := u.next
	u.next = agents.Update{}
	return next
}

func watch(t *testing.T, s agents.Site, r agents.WatchRequest) *updates {
	u := &updates{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- s.Watch(ctx, agents.Principal{Kind: principal.LocalAgent, ID: "local-agent"}, r, u.merge)
	}()
	u.end = func() error { cancel(); return <-ended }
	time.Sleep(time.Second) // a stream reads on only then
	return u
}

// broken is a sensor that has one reading.
type broken struct {
	device.Device
	once sync.Once
}

func (b *broken) Sample(ctx context.Context) (all []device.Reading, err error) {
	b.once.Do(func() {
		all = []device.Reading{{Point: "temperature", Value: device.Number(4), Quality: device.Good, At: time.Now()}}
	})
	return all, nil
}

// guarded tells the readings of outputs.
type guarded struct{ *guard.Guard }

func (g guarded) Watch(ctx context.Context, emit func(device.Reading)) error {
	last := make(map[string]device.Value)
	for {
		changed := g.Changed()
		for _, s := range g.Status() {
			if v, told := last[s.Output]; !told || v != s.Value {
				last[s.Output] = s.Value
				emit(s.Reading())
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// TestWatchSites: the node, its clients in either encoding, and a group of it alone send the same
// updates, except that a group leaves the caller and the arguments out of waiting approvals.
func TestWatchSites(t *testing.T) {
	told := make(map[string][]agents.Update)
	steps := []string{"begin", "change", "same", "lease", "time", "renewal", "release", "approval", "answer", "stale", "configuration", "stop"}
	kinds := []string{"node", "JSON", "CBOR", "group"}
	for _, kind := range kinds {
		synctest.Test(t, func(t *testing.T) {
			devices := wire(t, "greenhouse", "greenhouse", "outside", "climate", "shed", "climate")
			devices[0].Confirm = []string{"lamp"}
			r := newRig(t, devices)
			defer r.stop()
			sampling, stopSampling := context.WithCancel(t.Context())
			var all sync.WaitGroup
			defer all.Wait()
			defer stopSampling()
			all.Go(func() { r.hub.Sample(sampling, nil, guarded{r.guard}) })
			time.Sleep(time.Minute)
			all.Go(func() {
				r.hub.Sample(sampling, []node.Source{{Name: "shed", Device: &broken{Device: devices[2].Device}, Every: time.Minute}})
			})
			r.put("outside/pressure", device.Reading{Value: device.Number(100653.5), Quality: device.Good, At: time.Now().Add(-time.Second)})
			var site agents.Site = r.node
			if codec, ok := map[string]rpc.Codec{"JSON": rpc.JSON, "CBOR": rpc.CBOR, "group": rpc.CBOR}[kind]; ok {
				c, end := r.connect(t, codec)
				defer end()
				site = c
			}
			if kind == "group" {
				g, end := asGroup(t, site)
				defer end()
				site = g
			}
			ctx, p := t.Context(), agents.Principal{Kind: principal.LocalAgent, ID: "local-agent"}
			u := watch(t, site, agents.WatchRequest{})
			defer func() {
				if err := u.end(); !errors.Is(err, context.Canceled) {
					t.Errorf("%s: the watch ends with %v", kind, err)
				}
			}()
			named := watch(t, site, agents.WatchRequest{Points: []string{"outside/pressure", "greenhouse/heater"}, Every: 10})
			defer named.end()
			offer := watch(t, site, agents.WatchRequest{OfferOnly: true})
			defer offer.end()
			say := func() { told[kind] = append(told[kind], u.told()) }
			move := func(m agents.MoveRequest) {
				t.Helper()
				var needs *agents.ApprovalNeeded
				if _, err := site.Move(ctx, p, m); err != nil && !errors.As(err, &needs) {
					t.Error(err)
				}
			}
			heater := agents.MoveRequest{Output: "greenhouse/heater", Value: device.Bool(true), For: new(100.0)}
			say()
			r.put("outside/pressure", device.Reading{Value: device.Number(1), Quality: device.Good, At: time.Now()})
			say()
			r.hub.Announce(agents.Change{URI: agents.PointURI("outside/pressure")})
			say()
			move(heater)
			say()
			time.Sleep(10 * time.Second)
			say()
			heater.For = new(200.0)
			move(heater)
			say()
			heater.Value, heater.For = device.Value{}, nil
			move(heater)
			say()
			move(agents.MoveRequest{Output: "greenhouse/lamp", Value: device.Bool(true)})
			say()
			waiting, err := r.node.Requests(agents.Principal{Kind: principal.Local, ID: "local", Owner: true})
			if err != nil || len(waiting) != 1 || r.node.Approve(agents.Principal{Kind: principal.Local, ID: "local", Owner: true}, waiting[0].Handle, true) != nil {
				t.Fatal(waiting, err)
			}
			say()
			time.Sleep(4 * time.Minute)
			say()
			again := r.site
			again.Devices = devices[:2]
			if err := r.node.Replace(again); err != nil {
				t.Fatal(err)
			}
			say()
			if _, err := site.Stop(ctx, p, agents.SiteRequest{}); err != nil {
				t.Fatal(err)
			}
			say()
			time.Sleep(time.Minute)
			told[kind] = append(told[kind], named.told(), offer.told())
		})
	}
	steps = append(steps, "named", "offer")
	for i, step := range steps {
		if u := told["node"][i]; step == "time" { // that it was read back, once in ten seconds
			if len(u.Readings) != 1 || u.Readings[0].Detail.Measured.Value != device.Bool(true) {
				t.Errorf("at %s the update is %s", step, shown(u))
			}
		} else if reflect.DeepEqual(u, agents.Update{}) != (step == "same") {
			t.Errorf("at %s the update is %s", step, shown(u))
		}
		for _, kind := range kinds[1:] {
			got, want := told[kind][i], told["node"][i]
			if kind == "group" {
				want.Approvals = slices.Clone(want.Approvals)
				for i := range want.Approvals {
					want.Approvals[i].Caller, want.Approvals[i].Args = "", ""
				}
				for j := range min(len(got.Readings), len(want.Readings)) { // an offer may come with the update after that of its values
					if got, want := &got.Readings[j], want.Readings[j]; step == "named" {
						got.Age = want.Age
						if got.Detail != nil && want.Detail != nil {
							got.Detail.Set.Age, got.Detail.Measured.Age = want.Detail.Set.Age, want.Detail.Measured.Age
						}
					}
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: at %s the updates are\n%s\nwant\n%s", kind, step, shown(got), shown(want))
			}
		}
	}
}

func shown(u agents.Update) string {
	text := ""
	for _, r := range u.Readings {
		d := ""
		if r.Detail != nil {
			d = fmt.Sprintf(" %+v", *r.Detail)
		}
		r.Detail = nil
		text += fmt.Sprintf("\n  %+v%s", r, d)
	}
	return fmt.Sprintf("offer %v, approvals %+v of %v, stops %+v%s", u.Offer, u.Approvals, u.Approvals != nil, u.Stops, text)
}
