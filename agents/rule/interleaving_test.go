package rule_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/group"
	"agentsite/agents/rule"
	"agentsite/device"
	"agentsite/device/guard"
	"agentsite/node"
	"agentsite/node/elsewhere"

	"pgregory.net/rapid"
)

// permitAll permits everything.
type permitAll struct{ node.Access }

func (permitAll) May(agents.Principal, agents.Ask) (agents.Limits, error) {
	return agents.Limits{}, nil
}
func (permitAll) Take(agents.Principal, agents.Ask, bool) (agents.Limits, error) {
	return agents.Limits{}, nil
}
func (permitAll) MayRenew(agents.Principal, agents.Ask) (agents.Limits, error) {
	return agents.Limits{}, nil
}
func (permitAll) CanSee(agents.Principal, agents.Ask) bool { return true }
func (permitAll) MayHold(string, string) bool              { return true }
func (permitAll) Owns(id string) bool                      { return id == owner.ID }
func (permitAll) NameOf(string) string                     { return "" }
func (permitAll) AgentName(string) string                  { return "" }
func (permitAll) Version(agents.Principal) uint64          { return 1 }
func (permitAll) PassedOn(string, string) bool             { return false }
func (permitAll) Root(p agents.Principal) string           { return p.ID }

// numbered is a guard whose states have a run, as those of a guard's process have.
type numbered struct {
	*guard.Guard
	run int64
}

func (n numbered) with(s guard.Status, err error) (guard.Status, error) {
	if s.State != 0 {
		s.State += n.run
	}
	return s, err
}

func (n numbered) Move(ctx context.Context, holder, output string, v device.Value, length time.Duration) (guard.Status, error) {
	return n.with(n.Guard.Move(ctx, holder, output, v, length))
}

func (n numbered) Renew(ctx context.Context, holder, output string, v device.Value, length time.Duration) (guard.Status, error) {
	return n.with(n.Guard.Renew(ctx, holder, output, v, length))
}

func (n numbered) MoveOver(ctx context.Context, holder, from, output string, v device.Value, length time.Duration) (guard.Status, error) {
	return n.with(n.Guard.MoveOver(ctx, holder, from, output, v, length))
}

func (n numbered) Release(ctx context.Context, output string) (guard.Status, error) {
	return n.with(n.Guard.Release(ctx, output))
}

func (n numbered) StatusOf(output string) (guard.Status, bool) {
	s, ok := n.Guard.StatusOf(output)
	s, _ = n.with(s, nil)
	return s, ok
}

// wire is the connection to a house, of which each way has a delay of its own. What it has taken it
// delivers, also after it broke; calls that were under way then are not answered.
type wire struct {
	agents.Site
	to *house

	mu     sync.Mutex
	ask    time.Duration // of a request,
	answer time.Duration // its answer,
	told   time.Duration // and an update
	broken chan struct{} // closed while there is no connection
}

var errNoLink = device.Faultf(device.Offline, "no connection")

func (w *wire) delays() (ask, answer, told time.Duration, broken chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ask, w.answer, w.told, w.broken
}

// join ends the connection, or makes it anew.
func (w *wire) join(up bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.broken:
		if up {
			w.broken = make(chan struct{})
		}
	default:
		if !up {
			close(w.broken)
		}
	}
}

func over[T any](ctx context.Context, w *wire, call func() (T, error)) (none T, err error) {
	ask, answer, _, broken := w.delays()
	pass := func(d time.Duration) error {
		select {
		case <-broken:
			return errNoLink
		default:
		}
		select {
		case <-broken:
			return errNoLink
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d):
			return nil
		}
	}
	if err := pass(ask); err != nil {
		return none, err
	}
	out, err := call()
	if gone := pass(answer); gone != nil {
		return none, gone
	}
	return out, err
}

func (w *wire) Offer(ctx context.Context, _ agents.Principal) (*agents.Offer, error) {
	return over(ctx, w, func() (*agents.Offer, error) { return w.to.node.Offer(ctx, self) })
}

func (w *wire) Points(ctx context.Context, _ agents.Principal, r agents.SiteRequest) (agents.PointList, error) {
	return over(ctx, w, func() (agents.PointList, error) { return w.to.node.Points(ctx, self, r) })
}

func (w *wire) Read(ctx context.Context, _ agents.Principal, r agents.ReadRequest) (agents.Readings, error) {
	return over(ctx, w, func() (agents.Readings, error) { return w.to.node.Read(ctx, self, r) })
}

func (w *wire) Move(ctx context.Context, _ agents.Principal, r agents.MoveRequest) (agents.Output, error) {
	return over(ctx, w, func() (agents.Output, error) { return w.to.node.Move(context.WithoutCancel(ctx), self, r) })
}

// sent is an update on its way.
type sent struct {
	agents.Update
	due time.Time
}

func (w *wire) Watch(ctx context.Context, _ agents.Principal, r agents.WatchRequest, emit func(agents.Update) error) error {
	_, _, _, broken := w.delays()
	select {
	case <-broken:
		return errNoLink
	default:
	}
	watching, end := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer end()
	queue := make(chan sent, 10000)
	all.Go(func() {
		defer close(queue)
		all.Go(func() {
			select {
			case <-broken:
				end()
			case <-watching.Done():
			}
		})
		w.to.node.Watch(watching, self, r, func(u agents.Update) error {
			_, _, told, _ := w.delays()
			queue <- sent{u, time.Now().Add(told)}
			return nil
		})
	})
	for u := range queue {
		if err := device.Sleep(ctx, time.Until(u.due)); err != nil {
			return err
		}
		if err := emit(u.Update); err != nil {
			return err
		}
	}
	return errNoLink
}

const (
	shedHeater      = "shed/" + heater
	shedTemperature = "shed/" + temperature
)

// TestInterleavings: a rule has an output of its own site and one of another site, by a reading of
// that site. A person, restarts of the rule and of both guards, lost connections and delays come in
// any order. The rule yields only to the person, leaves alone what the person released, and has its
// outputs as its condition says once nothing changes any more.
func TestInterleavings(t *testing.T) {
	delays := rapid.SampledFrom([]time.Duration{0, time.Millisecond, 50 * time.Millisecond, 150 * time.Millisecond, 450 * time.Millisecond, 2 * time.Second})
	events := rapid.Custom(func(rt *rapid.T) event {
		return event{
			what: rapid.SampledFrom([]string{
				"cold", "cold", "cold", "warm", "warm", "unknown", "person on", "person off", "person off", "delay", "journal", "break", "join", "restart rule", "restart guard", "minutes",
			}).Draw(rt, "what"),
			site: rapid.IntRange(0, 1).Draw(rt, "site"), ask: delays.Draw(rt, "ask"), answer: delays.Draw(rt, "answer"), told: delays.Draw(rt, "told"),
			minutes: rapid.IntRange(1, 12).Draw(rt, "minutes"),
			pause:   rapid.SampledFrom([]time.Duration{0, time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond, time.Second, 20 * time.Second}).Draw(rt, "pause"),
		}
	})
	rapid.Check(t, func(rt *rapid.T) {
		all := rapid.SliceOfN(events, 1, 40).Draw(rt, "events")
		var m *interleaving
		synctest.Test(t, func(t *testing.T) { m = interleave(t, all) })
		if m.wrong != "" {
			rt.Fatalf("%s\n%s", m.wrong, strings.Join(m.log, "\n"))
		}
	})
}

// event is one event of the model.
type event struct {
	what              string
	site              int
	ask, answer, told time.Duration
	minutes           int
	pause             time.Duration
}

// interleaving is one run of the model.
type interleaving struct {
	t     *testing.T
	sites [2]*house       // with the rule, and the other one
	site  *elsewhere.Site // as the rule has both
	wire  *wire
	made  *rule.Rule
	end   func()
	cold  bool
	away  bool      // there is no connection
	since time.Time // both have been so
	// touched is set for outputs that the person moved or released since the rule knew nothing of it,
	// kept for those that the person released while the rule held them, until the rule may forget that.
	touched, kept [2]bool
	at            [2]time.Time // when it touched them
	log           []string
	wrong         string
}

func interleave(t *testing.T, events []event) *interleaving {
	m := &interleaving{t: t}
	var ends [2]func()
	for i := range m.sites {
		m.sites[i], ends[i] = newHouse(t, permitAll{})
	}
	here, there := m.sites[0], m.sites[1]
	m.wire = &wire{to: there, broken: make(chan struct{})}
	far := group.New(func() []group.Member { return []group.Member{{Name: "shed", Site: m.wire}} })
	m.site = elsewhere.New(here.node, "remote", func(principal string) elsewhere.Others {
		if principal != self.ID {
			return nil
		}
		return far
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { far.Run(ctx) })
	time.Sleep(guard.DefaultRest + time.Second)
	m.read(false)
	m.begin()
	for _, e := range events {
		m.step(e)
		m.checkYields()
	}
	m.settle()
	m.checkSettled()
	m.end()
	cancel()
	running.Wait()
	for _, end := range ends {
		end()
	}
	return m
}

func (m *interleaving) begin() {
	m.made = rule.Kind(m.sites[0].world()).New().(*rule.Rule)
	m.made.When, m.made.Hold = shedTemperature+" < 5 Cel", map[string]device.Value{heater: on, shedHeater: on}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := m.made.Run(ctx, self, m.site); ctx.Err() == nil {
			m.t.Errorf("the rule ended: %v", err)
		}
	}()
	m.end = func() { cancel(); <-ended }
	for i, h := range m.sites { // what the person did long ago the new one is not told of
		if s, _ := h.guard.StatusOf(heater); s.Holder == "" && time.Since(m.at[i]) > time.Minute {
			m.touched[i] = false
		}
	}
	m.kept = [2]bool{}
}

// holds reports whether the rule holds an output.
func (m *interleaving) holds(i int) bool {
	s, _ := m.sites[i].guard.StatusOf(heater)
	return s.Holder == self.ID
}

// read has the thermometer of the other site be read.
func (m *interleaving) read(cold bool) {
	celsius := 20.0
	if cold {
		celsius = 3
	}
	if !cold || !m.cold {
		m.since = time.Now()
	}
	m.cold = cold
	m.sites[1].feed <- device.Reading{Point: temperature, Value: device.Number(celsius), Quality: device.Good, At: time.Now()}
}

func (m *interleaving) step(e event) {
	i := e.site
	m.note(fmt.Sprintf("%+v", e))
	switch e.what {
	case "cold", "warm":
		m.read(e.what == "cold")
	case "unknown":
		m.cold = false
		m.sites[1].feed <- device.Reading{Point: temperature, Quality: device.Bad, At: time.Now()}
	case "person on":
		length := float64(e.minutes)
		m.touched[i], m.kept[i], m.at[i] = true, false, time.Now()
		m.sites[i].node.Move(context.Background(), owner, agents.MoveRequest{Output: heater, Value: on, For: &length})
	case "person off":
		m.touched[i], m.kept[i], m.at[i] = true, m.kept[i] || m.cold && !m.away && time.Since(m.since) > time.Minute && m.holds(i), time.Now()
		if _, err := m.sites[i].node.Move(context.Background(), owner, agents.MoveRequest{Output: heater}); err != nil {
			m.fail("the person's release: %v", err)
		}
	case "delay":
		m.wire.mu.Lock()
		m.wire.ask, m.wire.answer, m.wire.told = e.ask, e.answer, e.told
		m.wire.mu.Unlock()
	case "journal":
		m.sites[i].mu.Lock()
		m.sites[i].before = func() { time.Sleep(e.ask) }
		m.sites[i].mu.Unlock()
	case "break", "join":
		m.wire.join(e.what == "join")
		m.kept, m.since, m.away = [2]bool{}, time.Now(), e.what == "break" // what is not known ends the hold
	case "restart rule":
		m.end()
		m.begin()
	case "restart guard":
		m.sites[i].stopGuard()
		m.sites[i].offer(m.sites[i].newGuard(), "Cel")
		m.kept[i] = false
	case "minutes":
		time.Sleep(time.Duration(e.minutes) * time.Minute)
	}
	if !m.cold {
		m.kept = [2]bool{}
	}
	time.Sleep(e.pause)
	synctest.Wait()
}

// checkYields is for each moment.
func (m *interleaving) checkYields() {
	if r := m.made.Report(context.Background()); r.State == agent.Yielding && m.touched == [2]bool{} {
		m.fail("it yields, and nobody has touched its outputs: %s", r.Says)
	}
}

// settle has the connection stand for ten minutes, with a reading in each.
func (m *interleaving) settle() {
	m.note("settles")
	m.wire.join(true)
	for range 10 {
		m.read(m.cold)
		time.Sleep(time.Minute)
		synctest.Wait()
		m.checkYields()
	}
}

// checkSettled is for the end: what the condition says is so, but for what the person had.
func (m *interleaving) checkSettled() {
	for i, name := range []string{heater, shedHeater} {
		held := false
		for range 30 { // max_on ends a lease for ten seconds
			held = held || m.holds(i)
			time.Sleep(time.Second)
		}
		switch {
		case held && !m.cold:
			m.fail("%s is held although the condition is false", name)
		case held && m.kept[i]:
			m.fail("%s is held although a person released it", name)
		case !held && m.cold && !m.touched[i]:
			m.fail("%s is not held although the condition is true: %s", name, m.made.Report(context.Background()).Says)
		}
	}
}

func (m *interleaving) note(what string) {
	m.log = append(m.log, fmt.Sprintf("%v %s", time.Since(m.sites[0].began), what))
}

func (m *interleaving) fail(format string, args ...any) {
	if m.wrong == "" {
		m.wrong = fmt.Sprintf(format, args...)
		m.note(m.wrong)
	}
}
