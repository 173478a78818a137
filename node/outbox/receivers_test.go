package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// TestReceiversChange: a receiver that comes is told from then on, one that goes is told nothing more and what waits
// for it is dropped, and the others keep their pace.
func TestReceiversChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stays, comes := new(receiver), new(receiver)
		b, err := Open(Options{Write: func([]byte) error { return nil }, Now: func() (time.Time, bool) { return time.Now().Round(0), true }})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		all := []Receiver{{Name: "stays", Sender: stays}}
		changed := make(chan struct{})
		set := func(now ...Receiver) {
			mu.Lock()
			all = now
			mu.Unlock()
			changed <- struct{}{}
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			b.RunChanging(ctx, func() []Receiver { mu.Lock(); defer mu.Unlock(); return all }, changed)
		}()
		synctest.Wait()
		n := 0
		tell := func() { n++; b.Add(item(n, fmt.Sprint("key", n))); time.Sleep(2 * time.Second) }
		for range burst {
			tell()
			set(all[0], Receiver{Name: "comes", Sender: comes})
			set(all[0])
		}
		set(all[0], Receiver{Name: "comes", Sender: comes})
		tell()
		if got := len(stays.messages()); got != burst {
			t.Errorf("it got %d messages at once, with its receivers changing", got)
		}
		if got := comes.messages(); len(got) != 1 || got[0].Items[0].Key != fmt.Sprint("key", n) {
			t.Errorf("who came got %+v", got)
		}
		comes.set(func() { comes.hangs = true })
		tell()
		set(all[0])
		if all := b.Waiting(); len(all) != 1 || all[0].Receiver != "stays" {
			t.Errorf("%+v", all)
		}
		tries := comes.tried()
		time.Sleep(time.Hour)
		if comes.tried() != tries {
			t.Error("who went is told")
		}
		cancel()
		<-ended
	})
}

// TestSpare: a spare receiver that is not reached keeps no asker from others, and has no more places for askers than
// others; where there is no other, an asker is refused.
func TestSpare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := &receiver{fails: errors.New("not reached")}
		r := &rig{receiver: new(receiver)}
		r.start(t, Receiver{Name: "spare", Sender: lost, Spare: true})
		defer func() { r.end() }()
		ask := func(n int) error {
			i := item(n, fmt.Sprint("asked", n))
			i.From = fmt.Sprint("asker", n%3)
			return r.Ask(i)
		}
		for n := range 60 {
			if err := ask(n); err != nil {
				t.Fatal(n, err)
			}
			time.Sleep(spacing)
		}
		for _, w := range r.Waiting() {
			if w.Receiver == "phone" && w.Items > 0 {
				t.Errorf("%+v", w)
			}
		}
		r.Outbox.mu.Lock()
		places := len(r.boxes[1].items)
		r.Outbox.mu.Unlock()
		if places > maxAsked {
			t.Errorf("askers have %d places", places)
		}
		r.end()
		r.SetReceivers([]Receiver{{Name: "spare", Sender: lost, Spare: true}})
		var last error
		for n := 100; n < 120; n++ {
			last = ask(n)
		}
		if device.AsFault(last).Kind != device.Busy {
			t.Error(last)
		}
	})
}
