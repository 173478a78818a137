package outbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// receiver keeps what it was sent, unless it fails.
type receiver struct {
	mu    sync.Mutex
	got   []Message
	tries int
	fails error
	hangs bool
}

func (r *receiver) Send(ctx context.Context, m Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tries++
	if r.hangs {
		return errors.Join(device.Sleep(ctx, 10*time.Second), errors.New("it hangs"))
	}
	if r.fails == nil {
		r.got = append(r.got, m)
	}
	return r.fails
}

// set changes the receiver.
func (r *receiver) set(change func()) { r.mu.Lock(); defer r.mu.Unlock(); change() }

// tried returns how often it was tried.
func (r *receiver) tried() int { r.mu.Lock(); defer r.mu.Unlock(); return r.tries }

// messages returns what it got.
func (r *receiver) messages() []Message { r.mu.Lock(); defer r.mu.Unlock(); return slices.Clone(r.got) }

// rig is an outbox with a receiver, and its file.
type rig struct {
	*Outbox
	*receiver
	file   []byte
	writes int
	full   error // of the disk
	clock  func() (time.Time, bool)
	end    func()
}

func (r *rig) start(t *testing.T, more ...Receiver) {
	b, err := Open(Options{File: r.file, Write: r.write, Now: func() (time.Time, bool) {
		if r.clock != nil {
			return r.clock()
		}
		return time.Now().Round(0), true
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	r.Outbox = b
	go func() {
		defer close(ended)
		b.Run(ctx, append([]Receiver{{Name: "phone", Sender: r.receiver}}, more...))
	}()
	synctest.Wait()
	r.end = func() { cancel(); <-ended }
}

func (r *rig) write(text []byte) (err error) {
	r.set(func() {
		if r.writes++; r.full == nil {
			r.file = text
		}
		err = r.full
	})
	return err
}

// stored returns the file, and written how often it was written.
func (r *rig) stored() []byte  { r.mu().Lock(); defer r.mu().Unlock(); return r.file }
func (r *rig) written() int    { r.mu().Lock(); defer r.mu().Unlock(); return r.writes }
func (r *rig) mu() *sync.Mutex { return &r.receiver.mu }

func newRig(t *testing.T) *rig {
	r := &rig{receiver: new(receiver)}
	r.start(t)
	return r
}

func item(n int, key string) Item {
	return Item{ID: fmt.Sprintf("%s %d", key, n), Key: key, Kind: "lease", At: time.Now().Round(0), Sure: true}
}

// TestStorm: a thousand alarms a minute become a few messages, few writes, and name what is left out.
func TestStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for minute := range 5 {
			for n := range 1000 {
				r.Add(item(minute*1000+n, fmt.Sprint("output", n%100)))
				time.Sleep(time.Minute / 1000)
			}
		}
		time.Sleep(10 * time.Minute)
		sum := 0
		for _, m := range r.messages() {
			if len(m.Items) > maxItems {
				t.Errorf("a message has %d items", len(m.Items))
			}
			sum += m.More
			for _, i := range m.Items {
				sum += i.Count
			}
		}
		if len(r.messages()) > burst+5 || sum != 5000 {
			t.Errorf("%d messages tell of %d", len(r.messages()), sum)
		}
		if r.written() > 24 {
			t.Errorf("%d writes", r.written())
		}
		r.Add(Item{ID: "stop", Key: "stop", Urgent: true})
		time.Sleep(2 * gather)
		if last := r.messages()[len(r.messages())-1]; last.Items[0].ID != "stop" || last.ID != "stop" {
			t.Errorf("the stop waits behind others: %+v", last)
		}
		writes := r.written()
		time.Sleep(time.Hour)
		if r.written() > writes+1 {
			t.Error("it writes at rest")
		}
		r.end()
	})
}

// TestRestart: what was taken is told after a restart that cuts the site off, once, and under the same ID.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.set(func() { r.fails = errors.New("no route") })
		if err := r.Ask(Item{ID: "task", Key: "task", From: "rule:frost", Text: "frost", At: time.Now().Round(0), Sure: true}); err != nil {
			t.Fatal(err)
		}
		r.Add(Item{ID: "A", Key: "approval H", Passing: true, Until: time.Now().Add(time.Hour)})
		r.Add(Item{ID: "1", Key: "device climate", Begins: true})
		time.Sleep(time.Second / 2) // before anything was tried
		stored := r.stored()        // a crash: the end of Run writes no more that counts
		r.end()
		r.file = stored
		r.set(func() { r.fails = nil })
		r.start(t)
		if err := r.Ask(Item{ID: "task", Key: "task", From: "rule:frost"}); err != nil {
			t.Fatal(err)
		}
		r.Add(Item{ID: "2", Key: "device climate", Begins: true}) // it is found again
		time.Sleep(time.Minute)
		if len(r.messages()) != 1 || len(r.messages()[0].Items) != 2 || r.messages()[0].Items[0].Text != "frost" || r.messages()[0].Items[1].Key != "device climate" {
			t.Errorf("%+v", r.messages())
		}
		r.Add(Item{ID: "3", Key: "device climate", Ends: true})
		r.Add(Item{ID: "4", Key: "device tank", Ends: true})
		time.Sleep(time.Minute)
		if len(r.messages()) != 2 || r.messages()[1].ID != "3" {
			t.Errorf("%+v", r.messages())
		}

		// It ended while the site was off, which the first look tells: it is told again when it begins again.
		r.Add(Item{ID: "5", Key: "device climate", Begins: true})
		time.Sleep(time.Minute)
		r.end()
		r.start(t)
		r.Add(Item{ID: "6", Key: "device climate", Ends: true})
		r.Add(Item{ID: "7", Key: "device climate", Begins: true})
		time.Sleep(time.Minute)
		if all := r.messages(); len(all) != 4 || all[3].Items[0].ID != "7" || all[3].Items[0].Count != 2 {
			t.Errorf("%+v", all)
		}

		// A message that was sent, but of which the answer was lost, has the same ID after a restart.
		r.set(func() { r.fails = errors.New("the answer is lost") })
		r.Add(item(1, "x"))
		r.Add(item(2, "y"))
		time.Sleep(time.Minute)
		r.Outbox.mu.Lock()
		first := r.Outbox.boxes[0].sending.ID
		r.Outbox.mu.Unlock()
		stored = r.stored()
		r.end()
		r.file = stored
		r.set(func() { r.fails = nil })
		before := len(r.messages())
		r.start(t)
		r.Add(item(3, "z"))
		time.Sleep(time.Hour)
		if all := r.messages()[before:]; len(all) != 2 || all[0].ID != first || all[1].ID != "z 3" {
			t.Errorf("%s became %+v", first, all)
		}
		r.end()
	})
}

// TestFullDisk: what could not be stored is stored once it can be. An asker that is refused for that is not told names
// of files, and its message is not told.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.set(func() {
			r.fails, r.full = errors.New("no route"), &fs.PathError{Op: "write", Path: "/secret", Err: syscall.ENOSPC}
		})
		r.Add(item(1, "x"))
		err := r.Ask(Item{ID: "task"})
		if err == nil || device.AsFault(err).Kind != device.Unavailable || strings.Contains(err.Error(), "secret") {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		if n := r.written(); r.stored() != nil || n > 150 {
			t.Errorf("%d writes of %s", n, r.stored())
		}
		r.set(func() { r.full = nil })
		time.Sleep(time.Minute)
		b, err := Open(Options{File: r.stored(), Now: r.Now})
		if err != nil || len(b.boxes) != 1 || b.boxes[0].sending == nil || b.boxes[0].sending.ID != "x 1" {
			t.Errorf("%s: %v", r.stored(), err)
		}
		if err := r.Ask(Item{ID: "task"}); err != nil || !strings.Contains(string(r.stored()), `"task"`) {
			t.Errorf("%s: %v", r.stored(), err)
		}
		r.end()
	})
}

// TestRetry: a receiver that fails is tried less and less often, for a day; one that hangs delays no other.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &receiver{hangs: true}
		r := &rig{receiver: new(receiver)}
		r.start(t, Receiver{Name: "slow", Sender: slow})
		r.set(func() { r.fails = errors.New("503") })
		r.Add(item(1, "x"))
		time.Sleep(time.Hour)
		if r.tried() < 8 || r.tried() > 20 {
			t.Errorf("%d tries in an hour", r.tried())
		}
		if w := r.Waiting(); w[0].Fault != "503" || w[0].Items != 1 || w[1].Fault == "" {
			t.Errorf("%+v", w)
		}
		r.set(func() { r.fails = nil })
		time.Sleep(maxPause + time.Second)
		if len(r.messages()) != 1 {
			t.Errorf("%+v", r.messages())
		}
		r.set(func() { r.fails = &Later{errors.New("429"), time.Hour * 1000} })
		r.set(func() { r.tries = 0 })
		r.Add(item(2, "x"))
		time.Sleep(maxPause + 5*time.Second)
		if r.tried() != 2 {
			t.Errorf("%d tries after it asked for time", r.tried())
		}
		time.Sleep(25 * time.Hour)
		r.set(func() { r.fails = nil })
		r.Add(item(3, "x"))
		time.Sleep(time.Hour)
		if last := r.messages()[len(r.messages())-1]; len(r.messages()) != 2 && len(r.messages()) != 3 || last.Items[0].ID != "x 3" || r.messages()[1].More+last.More != 1 {
			t.Errorf("%+v", r.messages())
		}
		r.end()
	})
}

// TestRefused: a message that a receiver does not take for its content is tried once, holds up none, and is counted in
// the next. No message is made of the count alone.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{receiver: new(receiver)}
		r.start(t)
		r.set(func() { r.fails = &Refused{errors.New("413")} })
		r.Add(item(1, "x"))
		r.Add(item(2, "y"))
		time.Sleep(24 * time.Hour)
		if w := r.Waiting()[0]; r.tried() != 1 || w.Refused != 2 || w.Items != 0 || w.Fault != "413" {
			t.Errorf("%d tries, %+v", r.tried(), w)
		}
		r.set(func() { r.fails = nil })
		r.Add(item(3, "x"))
		time.Sleep(time.Minute)
		if all := r.messages(); len(all) != 1 || len(all[0].Items) != 1 || all[0].More != 2 {
			t.Errorf("%+v", all)
		}
		if w := r.Waiting()[0]; w.Refused != 0 || w.Fault != "" {
			t.Errorf("%+v", w)
		}
		r.end()
	})
}

// TestPassing: an approval that is over is not told late.
func TestPassing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.set(func() { r.fails = errors.New("503") })
		r.Add(Item{ID: "A", Key: "approval A", Urgent: true, Passing: true, Until: time.Now().Add(2 * time.Minute)})
		time.Sleep(time.Minute)
		if r.writes > 0 { // strangers cause some
			t.Errorf("%d writes for what is not kept", r.writes)
		}
		r.Add(item(1, "x"))
		time.Sleep(5 * time.Minute)
		r.set(func() { r.fails = nil })
		time.Sleep(time.Hour)
		if len(r.messages()) != 1 || len(r.messages()[0].Items) != 1 || r.messages()[0].Items[0].ID != "x 1" {
			t.Errorf("%+v", r.messages())
		}
		r.end()
	})
}

// TestPassingOnCard: calls that wait for an owner are told, and write nothing to the card, however many there are.
func TestPassingOnCard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.Add(item(1, "x"))
		time.Sleep(time.Hour)
		before := r.written()
		const calls = 2 * maxSeen
		for n := range calls {
			id := strconv.Itoa(n)
			r.Add(Item{ID: id, Key: "approval " + id, Urgent: true, Passing: true, Until: time.Now().Add(2 * time.Minute)})
			time.Sleep(time.Minute)
		}
		r.Add(item(1, "x")) // known still
		time.Sleep(time.Hour)
		if n := r.written(); n != before || len(r.messages()) < calls/2 {
			t.Errorf("%d writes, %d messages", n-before, len(r.messages()))
		}
		for _, m := range r.messages()[1:] {
			for _, i := range m.Items {
				if !i.Passing {
					t.Errorf("told again: %+v", i)
				}
			}
		}
		r.end()
	})
}

// TestAskers: askers have few places, and none takes those of the others or of the site.
func TestAskers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.set(func() { r.fails = errors.New("503") })
		ask := func(n int, from string) error {
			err := r.Ask(Item{ID: fmt.Sprint(from, n), Key: fmt.Sprint(from, n), From: from, Kind: "message"})
			if err != nil && device.AsFault(err).Kind != device.Busy {
				t.Error(err)
			}
			return err
		}
		r.Add(item(0, "x"))
		time.Sleep(time.Minute) // it is tried
		refused := 0
		for n := range 20 {
			if ask(n, "llm:gardener") != nil {
				refused++
			}
		}
		if refused != 16 || ask(0, "rule:frost") != nil {
			t.Errorf("%d are refused", refused)
		}
		for n := range 100 {
			ask(n, fmt.Sprint("rule:r", n))
		}
		for n := range 10 {
			r.Add(item(n, fmt.Sprint("output", n)))
		}
		r.Outbox.mu.Lock()
		n := len(r.boxes[0].items)
		r.Outbox.mu.Unlock()
		if n != maxAsked+10 {
			t.Errorf("%d wait", n)
		}
		none, err := Open(Options{Write: func([]byte) error { return nil }, Now: r.Now})
		if err == nil {
			err = none.Ask(Item{ID: "1"})
		}
		if err == nil || device.AsFault(err).Kind != device.Unavailable {
			t.Error(err)
		}
		r.end()
	})
}

// TestAbout: a receiver is told what it wants, and one that is gone is forgotten.
func TestAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := new(receiver)
		r := &rig{receiver: new(receiver)}
		r.start(t, Receiver{Name: "other", Sender: other, About: []string{"stop"}})
		r.Add(item(1, "x"))
		r.Add(Item{ID: "s", Key: "stop", Kind: "stop"})
		time.Sleep(time.Minute)
		if len(r.messages()) != 1 || len(r.messages()[0].Items) != 2 || len(other.messages()) != 1 || len(other.messages()[0].Items) != 1 {
			t.Errorf("%+v, %+v", r.messages(), other.messages())
		}
		other.set(func() { other.fails = errors.New("503") })
		r.Add(Item{ID: "t", Key: "stop", Kind: "stop"})
		time.Sleep(time.Minute)
		r.end()
		r.start(t)
		if w := r.Waiting(); len(w) != 1 || w[0].Receiver != "phone" {
			t.Errorf("%+v", w)
		}
		r.end()
	})
}

// TestFile: a damaged file is kept as it is, and nothing is promised; the age of items counts as far as
// it is known.
func TestFile(t *testing.T) {
	for _, text := range []string{"{", `{"version":2}`, `{"version":1,"receivers":7}`} {
		wrote := false
		b, err := Open(Options{File: []byte(text), Write: func([]byte) error { wrote = true; return nil }})
		if err == nil || b.Ask(Item{ID: "1"}) == nil || b.save() == nil || wrote {
			t.Errorf("%s: %v", text, err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.set(func() { r.fails = errors.New("503") })
		r.Add(item(1, "old"))
		guess := item(2, "guess")
		guess.At, guess.Sure = time.Unix(1000, 0), false
		r.Add(guess)
		time.Sleep(time.Minute)
		r.end()
		r.clock = func() (time.Time, bool) { return time.Now().Round(0).Add(48 * time.Hour), true }
		r.set(func() { r.fails = nil })
		r.start(t)
		time.Sleep(time.Hour)
		var ids []string
		for _, m := range r.messages() {
			for _, i := range m.Items {
				ids = append(ids, i.ID)
			}
		}
		if m := r.messages(); !slices.Equal(ids, []string{"guess 2"}) || m[0].More != 1 {
			t.Errorf("%q: %+v", ids, m)
		}
		r.end()
	})
}
