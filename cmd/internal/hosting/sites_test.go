package hosting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/principal"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/transport/mcp/client"
)

const twoRules = `  b: { kind: remote, peer: "KEY_b", may: "read *, set heater max 1m" }
  frost: { kind: rule, may: set b/heater, when: b/climate/temperature < 5 Cel, hold: { b/heater/relay: on } }
  push: { kind: rule, may: set b/heater+b/lamp, when: climate/temperature < 5 Cel, hold: { b/lamp/relay: on } }
`

// TestRuleElsewhere: a rule holds an output of another site by its grant, narrowed by all
// permissions, and that site's journal names it. When the link is lost, the readings are unknown,
// and the lease there expires. Then the site is tried seldom, whatever is asked of it.
func TestRuleElsewhere(t *testing.T) {
	over(t, []string{"a", "b"}, func(v *village) {
		a, b := v.sites["a"], v.sites["b"]
		if err := v.configure("a", twoRules); err != nil {
			v.Fatal(err)
		}
		v.sleep(time.Minute)
		if r := a.report(v.ctx, "b"); r.State != agent.Waiting || !strings.Contains(r.Says, "no grant") {
			v.Errorf("without a grant: %+v", r)
		}
		if r := a.report(v.ctx, "frost"); r.State != agent.Waiting || !strings.Contains(r.Says, "b/climate/temperature was not read yet") {
			v.Errorf("without a grant: %+v", r)
		}
		v.grant("a", "b", "read *, set *")
		a.sites.Renew(func(peer string) bool { return peer == b.key.ID().String() })
		v.sleep(20 * time.Second)
		if r := a.report(v.ctx, "frost"); r.State != agent.Holding || !b.on("heater/relay") {
			v.Fatalf("%+v, and the heater is %t", r, b.on("heater/relay"))
		}
		if r := a.report(v.ctx, "b"); r.State != agent.Running || !strings.Contains(r.Says, "rule:frost, rule:push") {
			v.Errorf("%+v", r)
		}
		// All agents together may move the heater only: the other rule is refused here, and there.
		if r := a.report(v.ctx, "push"); r.State != agent.Waiting || b.on("lamp/relay") {
			v.Errorf("what no agent may is done: %+v", r)
		}
		its, here := b.book.moves(), a.book.moves()
		frost := a.key.Derive("rule:frost").ID().String()
		if len(its) != 1 || its[0].Who != frost || strings.Join(its[0].Via, " ") != a.key.ID().String()+" frost" || its[0].Tool != tools.SwitchOutput {
			v.Errorf("there: %+v", its)
		}
		if len(here) != 1 || here[0].Who != "rule:frost" || !strings.Contains(string(here[0].Args), `"b/heater/relay"`) {
			v.Errorf("here: %+v", here)
		}
		// It is renewed, and not counted again.
		v.sleep(8 * time.Minute)
		if n := len(b.book.moves()); !b.on("heater/relay") || n != 1 {
			v.Errorf("it is on: %t, after %d moves", b.on("heater/relay"), n)
		}

		b.hang(true)
		time.Sleep(time.Second)
		synctest.Wait()
		if r := a.report(v.ctx, "frost"); r.State != agent.Waiting || !strings.Contains(r.Says, "b/climate/temperature is unknown") {
			v.Errorf("without a link: %+v", r)
		}
		v.sleep(61 * time.Second)
		if b.on("heater/relay") {
			v.Error("the lease did not end by itself")
		}
		v.sleep(time.Hour)
		b.mu.Lock()
		first := b.dialed
		b.mu.Unlock()
		v.sleep(2 * time.Hour)
		b.mu.Lock()
		tries := b.dialed - first
		b.mu.Unlock()
		if tries < 2*12*2-6 || tries > 2*12*2+6 { // two agents, each twelve times an hour
			v.Errorf("%d tries in two hours", tries)
		}
		b.hang(false)
		v.sleep(5*time.Minute + 20*time.Second) // the longest pause between two tries
		if r := a.report(v.ctx, "frost"); r.State != agent.Holding || !b.on("heater/relay") {
			v.Errorf("back again: %+v", r)
		}

		// A person of that site wins.
		if _, err := b.Move(v.ctx, agents.Principal{ID: v.owner.ID().String(), Owner: true}, agents.MoveRequest{Output: "heater/relay"}); err != nil {
			v.Fatal(err)
		}
		v.sleep(time.Minute)
		if r := a.report(v.ctx, "frost"); r.State != agent.Yielding || b.on("heater/relay") {
			v.Errorf("%+v, and the heater is %t", r, b.on("heater/relay"))
		}
	})
}

// TestSilentSite: a site that answers no call delays nothing that a rule does here.
func TestSilentSite(t *testing.T) {
	over(t, []string{"a", "b"}, func(v *village) {
		a, b := v.sites["a"], v.sites["b"]
		v.grant("a", "b", "read *, set *")
		if err := v.configure("a", `  b: { kind: remote, peer: "KEY_b", may: "read *, set *" }
  both: { kind: rule, may: set b/heater+lamp, when: climate/temperature < 5 Cel, hold: { b/heater/relay: on, lamp/relay: on } }
`); err != nil {
			v.Fatal(err)
		}
		held := func() {
			v.Helper()
			b.hush(false)
			v.sleep(time.Minute)
			if !a.on("lamp/relay") || !b.on("heater/relay") {
				v.Fatal(a.report(v.ctx, "both"))
			}
			b.hush(true)
		}
		released := func(why string) {
			v.Helper()
			time.Sleep(time.Second)
			synctest.Wait()
			if a.on("lamp/relay") {
				v.Errorf("%s: it is held here, because another site does not answer", why)
			}
		}
		held()
		a.warm(20)
		released("the condition ended")
		a.warm(3)
		held()
		if err := a.manager.Pause("both"); err != nil {
			v.Fatal(err)
		}
		released("paused")
		time.Sleep(20 * time.Second)
	})
}

// TestNewGrant: a grant in place of another holds at once, also while the site is connected.
func TestNewGrant(t *testing.T) {
	over(t, []string{"a", "b"}, func(v *village) {
		a, b := v.sites["a"], v.sites["b"]
		v.grant("a", "b", "read *")
		if err := v.configure("a", twoRules); err != nil {
			v.Fatal(err)
		}
		v.sleep(time.Minute)
		if b.on("heater/relay") {
			v.Fatal("it is moved without a permission")
		}
		v.grant("a", "b", "read *, set *")
		a.sites.Renew(func(peer string) bool { return peer == b.key.ID().String() })
		v.sleep(6 * time.Minute) // a rule tries less and less often what it is refused
		if r := a.report(v.ctx, "frost"); r.State != agent.Holding || !b.on("heater/relay") {
			v.Errorf("%+v", r)
		}
	})
}

// TestPausedElsewhere: a site that an owner pauses here is not asked, and at once again when it is
// resumed. A configuration without it ends what was asked.
func TestPausedElsewhere(t *testing.T) {
	over(t, []string{"a", "b"}, func(v *village) {
		a, b := v.sites["a"], v.sites["b"]
		v.grant("a", "b", "read *, set *")
		if err := v.configure("a", twoRules); err != nil {
			v.Fatal(err)
		}
		v.sleep(20 * time.Second)
		if !b.on("heater/relay") {
			v.Fatal(a.report(v.ctx, "frost"))
		}
		if err := a.manager.Pause("b"); err != nil {
			v.Fatal(err)
		}
		v.sleep(2 * time.Minute)
		if r := a.report(v.ctx, "frost"); r.State != agent.Waiting || b.on("heater/relay") {
			v.Errorf("paused: %+v", r)
		}
		if err := a.manager.Resume("b"); err != nil {
			v.Fatal(err)
		}
		v.sleep(12 * time.Second)
		if r := a.report(v.ctx, "frost"); r.State != agent.Holding || !b.on("heater/relay") {
			v.Errorf("resumed: %+v", r)
		}
		if err := v.configure("a", "  alone: { kind: rule, may: set lamp, when: climate/temperature > 90 Cel, hold: { lamp/relay: on } }\n"); err != nil {
			v.Fatal(err)
		}
		v.sleep(2 * time.Minute)
		if b.on("heater/relay") || a.sites.Of("rule:frost") != nil {
			v.Error("it is asked still")
		}
	})
}

// TestOnlyHostedAgents: the points of another site are those of the agents whose words name them,
// and nobody else's.
func TestOnlyHostedAgents(t *testing.T) {
	over(t, []string{"a", "b"}, func(v *village) {
		a, b := v.sites["a"], v.sites["b"]
		v.grant("a", "b", "read *, set *")
		if err := v.configure("a", twoRules+"  all: { kind: rule, may: \"read *, set *\", when: climate/temperature > 90 Cel, hold: { lamp/relay: on } }\n"); err != nil {
			v.Fatal(err)
		}
		v.sleep(20 * time.Second)
		frost, all, owner := agents.Principal{ID: "rule:frost"}, agents.Principal{ID: "rule:all"}, agents.Principal{Kind: principal.Local, ID: "local", Owner: true}
		for _, p := range []agents.Principal{all, owner, {Kind: principal.LocalAgent, ID: "local-agent"}} {
			o, err := a.Offer(v.ctx, p)
			if err != nil || slices.ContainsFunc(append(slices.Clone(o.Read), o.Switch...), func(s string) bool { return strings.HasPrefix(s, "b/") }) {
				v.Errorf("%s: %+v %v", p.ID, o, err)
			}
			if _, err := a.Move(v.ctx, p, agents.MoveRequest{Output: "b/heater/relay", Value: device.Bool(true)}); err == nil {
				v.Errorf("%s moves it", p.ID)
			}
			if _, err := a.Read(v.ctx, p, agents.ReadRequest{Points: []string{"b/climate/temperature"}}); err == nil {
				v.Errorf("%s reads it", p.ID)
			}
			if err := a.Watch(v.ctx, p, agents.WatchRequest{Points: []string{"b/climate/temperature"}}, func(agents.Update) error { return nil }); err == nil {
				v.Errorf("%s watches it", p.ID)
			}
		}
		o, err := a.Offer(v.ctx, frost)
		if err != nil || !slices.Equal(o.Read, []string{"b/heater/relay", "b/climate/temperature"}) || !slices.Equal(o.Switch, []string{"b/heater/relay"}) {
			v.Errorf("%+v %v", o, err)
		}
		if again, _ := a.Offer(v.ctx, frost); again != o {
			v.Error("the same offer is another one")
		}
		list, err := a.Points(v.ctx, frost, agents.SiteRequest{})
		if err != nil || len(list.Points) != 2 || list.Missed != nil {
			v.Errorf("%+v %v", list, err)
		}
		before := len(a.book.moves())
		for _, r := range []agents.MoveRequest{
			{Output: "b/lamp/relay", Value: device.Bool(true)}, {Output: "c/heater/relay", Value: device.Bool(true)}, {Output: "b/x/y/z", Value: device.Bool(true)},
			{Output: "b/heater/relay", Value: device.Bool(true), For: new(90.0)},
		} {
			if _, err := a.Move(v.ctx, frost, r); err == nil {
				v.Errorf("%+v is made", r)
			}
		}
		if n := len(a.book.moves()) - before; n != 0 {
			v.Errorf("%d refused moves were begun", n)
		}
		read, err := a.Read(v.ctx, frost, agents.ReadRequest{Points: []string{"b/heater/relay", "b/climate/temperature"}})
		if err != nil || len(read.Readings) != 2 || read.Readings[1].Point != "b/climate/temperature" || read.Readings[1].Value.IsZero() {
			v.Errorf("%+v %v", read, err)
		}
		if w, err := a.Why(v.ctx, frost, agents.WhyRequest{Point: "b/heater/relay"}); err != nil || w.Output == nil || w.Output.Holder != "rule:frost" {
			v.Errorf("%+v %v", w, err)
		}
		b.hang(true)
		synctest.Wait()
		began := time.Now()
		read, err = a.Read(v.ctx, frost, agents.ReadRequest{Points: []string{"b/climate/temperature"}})
		if err != nil || read.Readings[0].Quality != device.Stale || !read.Readings[0].Value.IsZero() || time.Since(began) > time.Second {
			v.Errorf("away: %+v %v", read, err)
		}
		if list, err := a.Points(v.ctx, frost, agents.SiteRequest{}); err != nil || len(list.Points) != 2 || len(list.Missed) != 1 {
			v.Errorf("away: %+v %v", list, err)
		}
	})
}

// TestRing: calls of sites in a ring end, over each encoding. A call names the sites that it came
// through, and the first of them refuses it. No call comes through more than four.
func TestRing(t *testing.T) {
	over(t, []string{"a", "b", "c"}, func(v *village) {
		for here, there := range map[string]string{"a": "b", "b": "c", "c": "a"} {
			v.grant(here, there, "read *, set *")
			if err := v.configure(here, fmt.Sprintf(`  %s: { kind: remote, peer: "KEY_%[1]s", may: "read *, set *" }
  next: { kind: rule, may: "read %[1]s, set %[1]s", when: %[1]s/climate/temperature > 90 Cel, hold: { %[1]s/heater/relay: on } }
`, there)); err != nil {
				v.Fatal(err)
			}
		}
		v.sleep(20 * time.Second)
		next := agents.Principal{ID: "rule:next"}
		move := func(here, there string, via []string) error {
			_, err := v.sites[here].Move(v.ctx, next, agents.MoveRequest{Output: there + "/lamp/relay", Value: device.Bool(true), Terms: agents.Terms{Via: via}})
			return err
		}
		var via []string
		for _, hop := range []string{"ab", "bc"} {
			if err := move(hop[:1], hop[1:], via); err != nil {
				v.Fatal(hop, err)
			}
			its := v.sites[hop[1:]].book.moves()
			last := its[len(its)-1].Via
			if via = last[:len(last)-1]; len(via) == 0 || via[len(via)-1] != v.sites[hop[:1]].key.ID().String() || last[len(last)-1] != "next" {
				v.Fatal(last)
			}
		}
		if err := move("c", "a", via); device.AsFault(err).Kind != device.Denied || v.sites["a"].on("lamp/relay") {
			v.Errorf("a ring is made: %v", err)
		}
		if err := move("a", "b", []string{"1", "2", "3", "4"}); device.AsFault(err).Kind != device.Denied {
			v.Errorf("a fifth hop is made: %v", err)
		}
		// Whatever a caller writes there.
		d := &dialer{v: v, from: v.sites["a"], to: v.sites["b"], key: v.sites["a"].key.Derive("rule:next")}
		self := v.sites["b"].key.ID()
		if err := client.New(d, "test", "1").Alive(v.ctx); err != nil {
			v.Error(err)
		}
		var refused *client.RequestError
		for _, self := range []string{self.String(), self.PeerID()} {
			if _, err := client.NewForSite(d, "test", self).Tools(v.ctx); !errors.As(err, &refused) || refused.Kind != string(device.Denied) {
				v.Errorf("through itself: %v", err)
			}
		}
		for _, via := range [][]string{{"1", "2", "3", "4", "5"}, slices.Repeat([]string{"x"}, 10_000)} {
			_, err := client.New(d, "test", "1").Move(v.ctx, next, agents.MoveRequest{Output: "lamp/relay", Value: device.Bool(true), Terms: agents.Terms{Via: via}})
			var says interface{ FaultKind() string }
			if !errors.As(err, &says) || says.FaultKind() != string(device.Denied) {
				v.Errorf("through %d: %v", len(via), err)
			}
		}
	})
}

// TestRatesElsewhere: the rates of an agent's own words and of those for all agents count here,
// too. A reading that may not be told is unknown rather than an older one.
func TestRatesElsewhere(t *testing.T) {
	over(t, []string{"a", "b"}, func(v *village) {
		a, b := v.sites["a"], v.sites["b"]
		v.grant("a", "b", "read *, set *")
		if err := v.configure("a", `  b: { kind: remote, peer: "KEY_b", may: "read * 30/m, set * 2/h" }
  frost: { kind: rule, may: "set b/lamp", when: b/climate/temperature > 90 Cel, hold: { b/lamp/relay: on } }
`); err != nil {
			v.Fatal(err)
		}
		v.sleep(10 * time.Second)
		frost := agents.Principal{ID: "rule:frost"}
		var mu sync.Mutex
		var all []agents.Reading
		told := func() []agents.Reading { mu.Lock(); defer mu.Unlock(); return slices.Clone(all) }
		ctx, cancel := context.WithCancel(v.ctx)
		ended := make(chan error)
		go func() {
			ended <- a.Watch(ctx, frost, agents.WatchRequest{Points: []string{"b/climate/temperature"}}, func(u agents.Update) error {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, u.Readings...)
				return nil
			})
		}()
		for i := range 20 { // beside the rule's own watch, which counts, too
			b.warm(float64(i))
			time.Sleep(time.Second)
		}
		synctest.Wait()
		seen := told()
		known, unknown := 0, 0
		for _, r := range seen {
			if r.Value.IsZero() && r.Quality == device.Stale {
				unknown++
			} else {
				known++
			}
		}
		if known > 15 || known < 10 || unknown == 0 || !seen[len(seen)-1].Value.IsZero() {
			v.Errorf("%d values and %d without one: %+v", known, unknown, seen)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		seen = told()
		if last := seen[len(seen)-1]; last.Value.IsZero() {
			v.Errorf("%+v", last)
		}
		cancel()
		<-ended
		for i := range 4 {
			_, err := a.Move(v.ctx, frost, agents.MoveRequest{Output: "b/lamp/relay", Value: device.Bool(true), For: new(5.0)})
			if busy := err != nil && device.AsFault(err).Kind == device.Busy; busy != (i >= 2) || !busy && err != nil {
				v.Errorf("move %d: %v", i, err)
			}
			v.sleep(20 * time.Second)
		}
		if _, err := a.Move(v.ctx, frost, agents.MoveRequest{Output: "b/lamp/relay"}); err != nil {
			v.Errorf("a release counts: %v", err)
		}
	})
}

// TestConfirmElsewhere: a move that an owner has to confirm is confirmed each time, and the other
// site is not told of that approval.
func TestConfirmElsewhere(t *testing.T) {
	over(t, []string{"a", "b"}, func(v *village) {
		a := v.sites["a"]
		v.grant("a", "b", "read *, set *")
		if err := v.configure("a", `  b: { kind: remote, peer: "KEY_b", may: "read *, set * max 5m" }
  frost: { kind: rule, may: "set b/lamp confirm", when: b/climate/temperature > 90 Cel, hold: { b/lamp/relay: on } }
`); err != nil {
			v.Fatal(err)
		}
		v.sleep(10 * time.Second)
		frost := agents.Principal{ID: "rule:frost"}
		r := agents.MoveRequest{Output: "b/lamp/relay", Value: device.Bool(true), For: new(60.0)}
		_, err := a.Move(v.ctx, frost, r)
		var needed *agents.ApprovalNeeded
		if !errors.As(err, &needed) {
			v.Fatal(err)
		}
		if err := a.Approve(agents.Principal{ID: v.owner.ID().String(), Owner: true}, needed.State, true); err != nil {
			v.Fatal(err)
		}
		r.Approval = needed.State
		if _, err := a.Move(v.ctx, frost, r); err != nil || !v.sites["b"].on("lamp/relay") {
			v.Fatal("approved:", err)
		}
		v.sleep(50 * time.Second)
		r.Approval, r.Held = "", true
		if _, err := a.Move(v.ctx, frost, r); err == nil || device.AsFault(err).Kind != device.Expired {
			v.Error("it is held longer without a confirmation:", err)
		}
		v.sleep(20 * time.Second)
		if v.sites["b"].on("lamp/relay") {
			v.Error("it is on after its time")
		}
	})
}

// TestHeldBackAndLost: a reading that a rate holds back is not told once its site is away.
func TestHeldBackAndLost(t *testing.T) {
	over(t, []string{"a", "b"}, func(v *village) {
		a, b := v.sites["a"], v.sites["b"]
		v.grant("a", "b", "read *, set *")
		if err := v.configure("a", `  b: { kind: remote, peer: "KEY_b", may: "read * 10/m" }
  frost: { kind: rule, may: "set lamp", when: b/climate/temperature > 90 Cel, hold: { lamp/relay: on } }
`); err != nil {
			v.Fatal(err)
		}
		v.sleep(10 * time.Second)
		var mu sync.Mutex
		known, after := 0, 0
		away := false
		ctx, cancel := context.WithCancel(v.ctx)
		ended := make(chan error)
		go func() {
			ended <- a.Watch(ctx, agents.Principal{ID: "rule:frost"}, agents.WatchRequest{Points: []string{"b/climate/temperature"}}, func(u agents.Update) error {
				mu.Lock()
				defer mu.Unlock()
				for _, r := range u.Readings {
					if known++; away && !r.Value.IsZero() {
						after++
					}
				}
				return nil
			})
		}()
		synctest.Wait()
		for i := range 20 {
			b.warm(float64(i))
			time.Sleep(100 * time.Millisecond)
		}
		b.hang(true)
		synctest.Wait()
		mu.Lock()
		away = true
		mu.Unlock()
		time.Sleep(3 * time.Minute)
		cancel()
		<-ended
		if known < 2 || after != 0 {
			v.Errorf("%d readings, and %d of a site that was away", known, after)
		}
	})
}
