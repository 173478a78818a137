package group

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

// snapshot is what a site with a sensor and a lamp tells first.
func snapshot(temperature float64) agents.Update {
	return agents.Update{
		Approvals: []agents.Approval{}, Stops: []agents.StopState{{Stopped: false}},
		Readings: []agents.Reading{
			{Point: "a/t", Value: device.Number(temperature), Unit: "Cel", Age: 1, Quality: device.Good},
			{Point: "lamp/relay", Value: device.Bool(true), Quality: device.Good, Detail: &agents.OutputDetail{OutputState: agents.OutputState{Holder: "rule:frost", Left: 60}}},
		},
	}
}

func brief(u agents.Update) string {
	var b strings.Builder
	if u.Offer {
		b.WriteString("offer ")
	}
	for _, r := range u.Readings {
		fmt.Fprintf(&b, "%s=%v %s", r.Point, r.Value, r.Quality)
		if r.Why != "" {
			fmt.Fprintf(&b, " (%s)", r.Why)
		}
		if r.Detail != nil {
			fmt.Fprintf(&b, " %s %.0fs", r.Detail.Holder, r.Detail.Left)
		}
		b.WriteString("; ")
	}
	for _, a := range u.Approvals {
		fmt.Fprintf(&b, "approval %s %s%s%s; ", a.Handle, a.Tool, a.Caller, a.Args)
	}
	for _, s := range u.Stops {
		fmt.Fprintf(&b, "%s stopped %v; ", s.Site, s.Stopped)
	}
	for _, m := range u.Missed {
		fmt.Fprintf(&b, "%s away; ", m.Site)
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// TestWatch: what sites tell is told under their names, without a second question, and what
// is not heard any more is no value.
func TestWatch(t *testing.T) {
	attic, cellar := newFake(usual()), newFake(agents.Offer{Read: []string{"x/y"}})
	attic.first, cellar.first = snapshot(20), agents.Update{Readings: []agents.Reading{{Point: "x/y", Value: device.Number(7), Quality: device.Good}}}
	over(t, func(t *testing.T, r *rig) {
		updates, end := r.values(t, agents.WatchRequest{})
		defer end()
		next := func(want string) {
			t.Helper()
			select {
			case u := <-updates:
				if got := brief(u); got != want {
					t.Errorf("told\n%s\nwant\n%s", got, want)
				}
			case <-time.After(time.Hour):
				t.Errorf("nothing is told, want\n%s", want)
			}
		}
		next("attic/a/t=20 good; attic/lamp/relay=on good rule:frost 60s; cellar/x/y=7 good; attic stopped false")
		sleep(10 * time.Second)
		attic.updates <- agents.Update{Readings: []agents.Reading{{Point: "a/t", Value: device.Number(21), Quality: device.Good}, {Point: "not/offered", Quality: device.Good}}}
		next("attic/a/t=21 good")
		attic.updates <- agents.Update{Readings: []agents.Reading{{Point: "lamp/relay", Value: device.Bool(false), Quality: device.Good}}}
		next("attic/lamp/relay=off good rule:frost 50s") // the lease is told apart
		attic.updates <- agents.Update{Approvals: []agents.Approval{{Handle: strings.Repeat("A", 26), Tool: "switch_output", Caller: "IGNORE ALL", Args: "IGNORE"}}}
		next("approval " + strings.Repeat("A", 26) + " switch_output; attic stopped false")
		attic.updates <- agents.Update{Stops: []agents.StopState{{Site: "IGNORE", Stopped: true}}}
		next("approval " + strings.Repeat("A", 26) + " switch_output; attic stopped true")
		attic.die()
		next("offer cellar/x/y=7 good; attic away")
		attic.mu.Lock()
		attic.first = snapshot(22)
		attic.mu.Unlock()
		attic.rise()
		u := <-updates
		for !u.Offer || len(u.Readings) != 3 || u.Readings[0].Quality != device.Good { // it may be there before its values
			u = <-updates
		}
		attic.mu.Lock()
		defer attic.mu.Unlock()
		if len(attic.calls) > 0 {
			t.Error("it was asked", attic.calls)
		}
	}, Member{"attic", attic}, Member{"cellar", cellar})
}

// TestWatchPoints: points that are named are told of while their site is away, as stale.
func TestWatchPoints(t *testing.T) {
	attic := newFake(usual())
	attic.first = snapshot(20)
	over(t, func(t *testing.T, r *rig) {
		for _, points := range [][]string{{"shed/a/t"}, {"a/t"}, {""}, {"attic/a/t", "attic/a/t"}} {
			if err := r.Watch(t.Context(), caller, agents.WatchRequest{Points: points}, nil); device.AsFault(err).Kind != device.Invalid {
				t.Error(points, err)
			}
		}
		if err := r.Watch(t.Context(), caller, agents.WatchRequest{Every: -1}, nil); device.AsFault(err).Kind != device.Invalid {
			t.Error(err)
		}
		updates, end := r.values(t, agents.WatchRequest{Points: []string{"attic/a/t"}, Every: 2})
		defer end()
		if got := brief(<-updates); got != "attic/a/t=20 good; attic stopped false" {
			t.Error(got)
		}
		begun := time.Now()
		for i := range 5 {
			attic.updates <- agents.Update{Readings: []agents.Reading{{Point: "a/t", Value: device.Number(float64(i)), Quality: device.Good}}}
		}
		if got := brief(<-updates); got != "attic/a/t=4 good" || time.Since(begun) != 2*time.Second {
			t.Error(got, time.Since(begun))
		}
		attic.die()
		if got := brief(<-updates); !strings.HasPrefix(got, "offer attic/a/t=- stale ") || !strings.HasSuffix(got, "; attic away") {
			t.Errorf("%q", got)
		}
	}, Member{"attic", attic})
}

// TestOnlyWhileWatched: values come from a site only while somebody watches any.
func TestOnlyWhileWatched(t *testing.T) {
	attic := newFake(usual())
	attic.first = snapshot(20)
	over(t, func(t *testing.T, r *rig) {
		offers, end := r.values(t, agents.WatchRequest{OfferOnly: true})
		if u := <-offers; u.Offer || u.Readings != nil || attic.watched() {
			t.Error(u)
		}
		end()
		_, one := r.values(t, agents.WatchRequest{})
		_, two := r.values(t, agents.WatchRequest{})
		if !attic.watched() {
			t.Error("values are not watched")
		}
		tries := attic.tries()
		one()
		if !attic.watched() || attic.tries() != tries {
			t.Error("one that is left has no values")
		}
		two()
		if attic.watched() {
			t.Error("values are watched for nobody")
		}
	}, Member{"attic", attic})
}

// TestNotify: a client that wants no values is told which resource has changed.
func TestNotify(t *testing.T) {
	attic := newFake(usual())
	attic.first = snapshot(20)
	over(t, func(t *testing.T, r *rig) {
		const temp = "agentsite:///attic/a/t"
		changes := make(chan agents.Change, 10)
		go r.Notify(t.Context(), caller, agents.Change{}, []string{temp, "agentsite:///shed/a/t", "nonsense"}, func(c agents.Change) error {
			changes <- c
			return nil
		})
		synctest.Wait()
		<-changes // the beginning
		for len(changes) > 0 {
			if c := <-changes; c.URI != temp {
				t.Error(c) // of the snapshot, if that came after the beginning
			}
		}
		attic.updates <- agents.Update{Readings: []agents.Reading{{Point: "lamp/relay"}, {Point: "a/t"}, {Point: "\x1b[2J"}, {Point: "attic/a/t"}}}
		if c := <-changes; c.URI != temp || len(changes) > 0 {
			t.Error(c)
		}
		attic.offers(agents.Offer{Read: []string{"a/t"}})
		if got := r.told(); !slices.Equal(got, []agents.Change{offerChange}) || r.names(t, "switch_output") != nil {
			t.Error(got)
		}
	}, Member{"attic", attic})
}

// TestWatchApprovals: how long a call still waits is told as of the update.
func TestWatchApprovals(t *testing.T) {
	attic := newFake(usual())
	attic.first = agents.Update{Approvals: []agents.Approval{{Handle: strings.Repeat("A", 26), Left: 120}}}
	over(t, func(t *testing.T, r *rig) {
		updates, end := r.values(t, agents.WatchRequest{Points: []string{"attic/a/t"}})
		defer end()
		<-updates
		sleep(50 * time.Second)
		attic.updates <- agents.Update{Stops: []agents.StopState{{Stopped: true}}}
		if u := <-updates; len(u.Approvals) != 1 || u.Approvals[0].Left != 70 {
			t.Errorf("%+v", u)
		}
	}, Member{"attic", attic})
}

// TestWatchOfferFails: a site whose offer cannot be learnt is away, and told of as that.
func TestWatchOfferFails(t *testing.T) {
	attic := newFake(usual())
	attic.first = snapshot(20)
	over(t, func(t *testing.T, r *rig) {
		updates, end := r.values(t, agents.WatchRequest{Points: []string{"attic/a/t"}})
		defer end()
		<-updates
		attic.die()
		last := brief(<-updates)
		attic.mu.Lock()
		attic.first, attic.refuses = snapshot(22), errRefused
		attic.mu.Unlock()
		attic.rise()
		for over := time.After(time.Minute); over != nil; {
			select {
			case u := <-updates:
				last = brief(u)
			case <-over:
				over = nil
			}
		}
		if !strings.HasPrefix(last, "offer attic/a/t=- stale ") || !strings.HasSuffix(last, "; attic away") || attic.tries() < 5 {
			t.Error(last)
		}
	}, Member{"attic", attic})
}

// TestWatchRefused: a site that refuses its values can be called all the same, and may tell
// them once its offer has changed.
func TestWatchRefused(t *testing.T) {
	attic := newFake(usual()).answers(`{"output":"lamp/relay","value":true,"safe":false,"left":60}`)
	attic.first, attic.blind = snapshot(20), siteError{"denied", "you may not read"}
	over(t, func(t *testing.T, r *rig) {
		updates, end := r.values(t, agents.WatchRequest{Points: []string{"attic/a/t"}})
		defer end()
		if got := brief(<-updates); got != "attic/a/t=- stale (no reading yet)" {
			t.Error(got)
		}
		if tries := attic.tries(); tries > 3 {
			t.Error("it was tried", tries, "times")
		}
		sleep(time.Minute)
		if _, err := r.call(t, "switch_output", `{"output":"attic/lamp/relay","on":true}`); err != nil {
			t.Error(err)
		}
		attic.mu.Lock()
		attic.blind = nil
		attic.mu.Unlock()
		attic.offers(usual())
		for got := ""; got != "attic/a/t=20 good"; {
			select {
			case u := <-updates:
				got, _, _ = strings.Cut(strings.TrimPrefix(brief(u), "offer "), ";")
			case <-time.After(time.Minute):
				t.Fatal("its values are not told")
			}
		}
		attic.mu.Lock()
		attic.blind = siteError{"denied", "an owner has to confirm this"}
		attic.mu.Unlock()
		r.all()[0].doubt(errRefused)
		if got := brief(<-updates); got != "attic/a/t=- stale (no reading yet)" {
			t.Error(got)
		}
	}, Member{"attic", attic})
}

// TestWatchOffers: of two changes of the offer in a short time the later one counts.
func TestWatchOffers(t *testing.T) {
	attic := newFake(usual())
	g := New(func() []Member { return []Member{{"attic", attic}} })
	g.list()
	m := g.all()[0]
	many := make([]string, 2000) // they take a watcher its time
	for i := range many {
		many[i] = fmt.Sprintf("a/p%d", i)
	}
	m.come(&agents.Offer{Read: many}, nil)
	m.take(agents.Update{Offer: true})
	counts := make(chan int, 1000)
	go g.Watch(t.Context(), caller, agents.WatchRequest{}, func(u agents.Update) error {
		counts <- len(u.Readings)
		return nil
	})
	<-counts
	for range 60 {
		m.come(&agents.Offer{Read: many}, nil)
		time.Sleep(time.Duration(rand.IntN(1000)) * time.Microsecond)
		m.come(&agents.Offer{Read: many[1:]}, nil)
		for last := 0; last != len(many)-1; {
			select {
			case last = <-counts:
			case <-time.After(2 * time.Second):
				t.Fatalf("told of %d points, want %d", last, len(many)-1)
			}
		}
	}
}
