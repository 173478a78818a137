package outbox

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestUrgentPasses: what is urgent passes what waits for its turn, and has places of its own.
func TestUrgentPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for n := range burst {
			r.Add(item(n, "a"))
			time.Sleep(2 * gather)
		}
		for n := range 100 {
			r.Add(item(n, fmt.Sprint("output", n)))
		}
		for n := range 100 { // calls that wait for an owner, too many for one message
			r.Add(Item{ID: fmt.Sprint("a", n), Key: fmt.Sprint("approval ", n), Passing: true, Urgent: true, Until: time.Now().Add(time.Millisecond)})
		}
		time.Sleep(time.Millisecond)
		before := len(r.messages())
		r.Add(Item{ID: "stop", Key: "stop", Urgent: true})
		time.Sleep(2 * gather)
		if before != burst || len(r.messages()) != burst+1 || r.messages()[burst].Items[0].ID != "stop" || len(r.messages()[burst].Items) != maxItems-keepFree+1 || r.messages()[burst].More != 200-maxItems+keepLast {
			t.Errorf("%d messages, and then %+v", before, r.messages()[before:])
		}
		r.end()
	})
}

// TestUrgentEndsPause: what is urgent does not wait for the end of a pause after failures, and does not have a receiver
// that is gone be tried all the time.
func TestUrgentEndsPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer func() { r.end() }()
		r.set(func() { r.fails = &Later{errors.New("429"), time.Hour} })
		r.Add(item(1, "x"))
		time.Sleep(time.Minute)
		r.set(func() { r.fails = errors.New("503") })
		ask := func(n int) {
			until := time.Now().Add(2 * time.Minute)
			r.Add(Item{ID: fmt.Sprint(n), Key: fmt.Sprint("approval ", n), Urgent: true, Passing: true, Until: until})
		}
		r.Add(item(2, "y"))
		time.Sleep(time.Second)
		if r.tried() != 1 {
			t.Errorf("%d tries for what is not urgent", r.tried())
		}
		ask(1)
		time.Sleep(time.Minute)
		r.set(func() { r.fails = nil })
		time.Sleep(time.Minute)
		if all := r.messages(); len(all) != 2 || all[0].ID != "x 1" || all[1].Items[0].ID != "1" {
			t.Errorf("%+v", all)
		}

		time.Sleep(time.Hour)
		r.set(func() { r.fails = errors.New("503"); r.tries = 0 })
		r.Add(Item{ID: "stop", Key: "stop", Urgent: true})
		time.Sleep(time.Hour)
		if r.tried() > 20 {
			t.Errorf("%d tries in an hour", r.tried())
		}
		r.set(func() { r.tries = 0 })
		for n := range 3600 {
			ask(2 + n)
			time.Sleep(time.Second)
		}
		if r.tried() > 5*60 {
			t.Errorf("%d tries in an hour of calls that wait", r.tried())
		}
	})
}
