package group

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

var offerChange = agents.Change{Tools: true, Resources: true}

// TestComesBack: a site that was away is found without anybody asking, soon after a short
// time and with few attempts after a long one, and at once when somebody calls.
func TestComesBack(t *testing.T) {
	attic := newFake(usual()).answers(`{"output":"lamp/relay","value":true,"safe":false}`)
	over(t, func(t *testing.T, r *rig) {
		sleep(time.Hour)
		for _, away := range []time.Duration{100 * time.Millisecond, 5 * time.Second, 25 * time.Second} {
			attic.die()
			if told := r.told(); !slices.Equal(told, []agents.Change{offerChange}) || r.names(t, "read_history")[0] != "attic/a/t" {
				t.Error("it went, and", told, r.names(t, "read_history"))
			}
			sleep(away)
			attic.rise()
			sleep(3 * time.Second)
			if told := r.told(); !slices.Equal(told, []agents.Change{offerChange}) || len(r.resources(t)) != 2 {
				t.Error("it came back after", away, "and", told, r.resources(t))
			}
			sleep(time.Minute)
		}
		attic.die()
		sleep(time.Hour)
		before := attic.tries()
		sleep(time.Hour)
		if attempts := attic.tries() - before; attempts < 55 || attempts > 65 {
			t.Error(attempts, "attempts in an hour")
		}
		attic.rise()
		if _, err := r.Move(t.Context(), caller, agents.MoveRequest{Output: "attic/lamp/relay", Value: device.Bool(true)}); err != nil {
			t.Error("a call does not reach what is there again:", err)
		}
	}, Member{"attic", attic})
}

// TestFlaps: who goes as soon as it has come is looked for less and less often.
func TestFlaps(t *testing.T) {
	attic := newFake(usual())
	attic.flaps = true
	over(t, func(t *testing.T, r *rig) {
		sleep(time.Hour)
		before := attic.tries()
		sleep(time.Hour)
		if attempts := attic.tries() - before; attempts > 65 {
			t.Error(attempts, "attempts in an hour")
		}
	}, Member{"attic", attic})
}

// TestSilent: a site that does not say what it offers is given up and tried again.
func TestSilent(t *testing.T) {
	attic := newFake(usual())
	attic.mute = true
	over(t, func(t *testing.T, r *rig) {
		if tries := attic.tries(); tries < 1 {
			t.Error(tries)
		}
		sleep(3 * offerPatience)
		if tries := attic.tries(); tries < 2 {
			t.Error("it is not tried again")
		}
		if _, missed := r.missing()[0].Site, r.missing()[0].Why; !strings.Contains(missed, errSilent.Error()) {
			t.Error(missed)
		}
	}, Member{"attic", attic})
}

// TestTellsTooMuch: who floods is left alone, and the others stay.
func TestTellsTooMuch(t *testing.T) {
	for what, flood := range map[string]agents.Update{
		"readings":  {Readings: []agents.Reading{{Point: "a/t"}}},
		"approvals": {Approvals: make([]agents.Approval, 99)},
		"stops":     {Stops: make([]agents.StopState, 99)},
		"missed":    {Missed: make([]agents.Missed, 99)},
	} {
		attic, cellar := newFake(usual()).answers(`{"readings":[]}`), newFake(usual()).answers(`{"readings":[]}`)
		over(t, func(t *testing.T, r *rig) {
			_, end := r.values(t, agents.WatchRequest{})
			defer end()
			synctest.Wait()
			told := 0
			for each := len(flood.Readings) + len(flood.Approvals) + len(flood.Stops) + len(flood.Missed); told < 100*toldAtOnce; told += each {
				select {
				case attic.updates <- flood:
					continue
				case <-time.After(time.Millisecond):
				}
				break
			}
			if told > toldAtOnce {
				t.Error(told, what, "are heard at once")
			}
			if all := r.resources(t); len(all) != 2 || all[0] != "cellar/a/t" {
				t.Error("it is still there:", all)
			}
			if got := r.text(t, "read_points", `{"points":["cellar/a/t"]}`); got != `{"readings":[]}` {
				t.Error(got)
			}
		}, Member{"attic", attic}, Member{"cellar", cellar})
	}
}

// TestMembers: sites that are known come and go while the group runs.
func TestMembers(t *testing.T) {
	attic, cellar := newFake(usual()), newFake(usual())
	over(t, func(t *testing.T, r *rig) {
		set := func(m ...Member) {
			r.mu.Lock()
			r.members = m
			r.mu.Unlock()
			r.tools(t)
			r.told()
		}
		cellar.updates = make(chan agents.Update)
		set(Member{"attic", attic}, Member{"cellar", cellar})
		if got := fmt.Sprint(r.names(t, "switch_output")); got != "[attic/lamp/relay cellar/lamp/relay]" {
			t.Error(got)
		}
		_, end := r.values(t, agents.WatchRequest{Points: []string{"attic/a/t"}})
		defer end()
		again := newFake(usual()) // with another grant, say
		again.updates = make(chan agents.Update)
		set(Member{"attic", again})
		if got := fmt.Sprint(r.names(t, "switch_output")); got != "[attic/lamp/relay]" || !again.watched() {
			t.Error(got, again.watched())
		}
		set(Member{"cellar", cellar})
		back := newFake(usual())
		back.updates = make(chan agents.Update)
		set(Member{"cellar", cellar}, Member{"attic", back})
		if !back.watched() {
			t.Error("what is watched is forgotten")
		}
		set()
		if got := r.tools(t); len(got) != 0 {
			t.Error(got)
		}
		if got, err := r.Read(t.Context(), caller, agents.ReadRequest{}); err != nil || len(got.Readings) != 0 {
			t.Error(got, err)
		}
	}, Member{"attic", attic})
}

// values watches values until end is called. A watcher that is slow holds the group up in
// nothing.
func (r *rig) values(t *testing.T, request agents.WatchRequest) (updates chan agents.Update, end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	updates, ended := make(chan agents.Update), make(chan struct{})
	go func() {
		defer close(ended)
		r.Watch(ctx, caller, request, func(u agents.Update) error {
			select {
			case updates <- u:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	return updates, func() {
		cancel()
		<-ended
	}
}
