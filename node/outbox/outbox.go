// Package outbox keeps what has to be told to receivers outside of the site until it was told: over
// failures of a receiver and over restarts, in bounded memory, and with few writes. Equal items are
// merged, and a receiver gets few messages with many items rather than many messages.
package outbox

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"agentsite/device"
)

const (
	maxItems    = 32               // that wait for a receiver
	maxAsked    = 8                // of them from askers, as the next
	maxAsker    = 4                // from one
	keepFree    = 8                // places for what is urgent
	keepLast    = 2                // of these, for what does not pass: callers cannot take the place of the stop
	maxSeen     = 128              // IDs that are known
	maxOpen     = 128              // keys of what lasts
	gather      = time.Second      // before a message, for further items
	firstPause  = 5 * time.Second  // after a failure; it doubles
	maxPause    = 10 * time.Minute // as the most that a receiver may ask for
	maxAge      = 24 * time.Hour   // of an item
	writeBurst  = 8                // writes at once, and then one each writePause
	writePause  = 30 * time.Second
	burst       = 4 // messages at once, and then one each spacing
	spacing     = 3 * time.Minute
	urgentBurst = 8 // as burst and spacing, of urgent messages
	urgentSpace = time.Minute
)

// Item is one thing to tell.
type Item struct {
	ID    string // an item whose ID is known already is dropped
	Key   string // items with the same key are merged while they wait: the last, and how many
	Kind  string
	From  string `json:",omitzero"` // who asks for it; "" for the site itself
	Title string
	Text  string
	Link  string    `json:",omitzero"`
	At    time.Time // by the site's clock
	Sure  bool      `json:",omitzero"` // that was known
	Count int
	// Urgent items have places and a rate of their own. Passing items are not told after Until, and not
	// after a restart.
	Urgent  bool      `json:",omitzero"`
	Passing bool      `json:"-"`
	Until   time.Time `json:"-"`
	// Begins and Ends are of what lasts, by its Key: a second beginning, and an end without a
	// beginning, are dropped.
	Begins, Ends bool `json:"-"`

	since time.Time // when it came, or was read from the file
}

// Message has the items that a receiver is told at once. A message that is tried again is the same.
type Message struct {
	ID    string
	Items []Item
	More  int `json:",omitzero"` // items that are left out
}

// Sender tells a receiver. It blocks until that has the message, for a bounded time. An error that
// is a *Later says when it may be tried again.
type Sender interface {
	Send(context.Context, Message) error
}

// Later is the error of a receiver that wants no more for some time.
type Later struct {
	Err   error
	After time.Duration
}

func (l *Later) Error() string { return l.Err.Error() }
func (l *Later) Unwrap() error { return l.Err }

// Refused is the error of a receiver that does not take a message for its content, now or later: it is given up
// and counted.
type Refused struct{ Err error }

func (r *Refused) Error() string { return r.Err.Error() }
func (r *Refused) Unwrap() error { return r.Err }

// Options are the parameters of an Outbox.
type Options struct {
	File  []byte // the last argument of Write; nil at first
	Err   error  // why File cannot be read
	Write func([]byte) error
	Now   func() (time.Time, bool) // the site's clock, and whether it is known
}

// Receiver is somebody to tell.
type Receiver struct {
	Name string
	Sender
	About []string // kinds; all where there are none
	Spare bool     // it refuses no asker whom another one takes: what finds no place is counted
}

// Outbox is safe for concurrent use.
type Outbox struct {
	Options
	damage error

	writing sync.Mutex // held during a write; locked before mu
	mu      sync.Mutex
	boxes   []*box
	open    []string // keys of what lasts
	seen    []string // IDs
	passed  []string // of passing items, which are not stored: callers that ask an owner write nothing to the card
	written string
	dirty   chan struct{} // receives when there is something new to write
}

// box is the queue of one receiver.
type box struct {
	name  string
	about []string
	spare bool
	wake  chan struct{}

	items   []Item
	more    int      // that found no place
	sending *Message // is tried again until it is there
	refused int      // items that the receiver did not take: told with the next message
	hurry   bool     // something urgent came behind it, and no pause has ended for that yet
	fault   string   // of the last try
	since   time.Time
	told    int // messages
}

// SetReceivers replaces the receivers: what waits for one that is gone is dropped. It is called
// before Run and not during it.
func (b *Outbox) SetReceivers(all []Receiver) { b.replace(all, nil) }

// replace is SetReceivers for receivers of which some are being told already: ends ends each of these that is gone.
func (b *Outbox) replace(all []Receiver, ends map[string]context.CancelFunc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.boxes
	b.boxes = nil
	for _, r := range all {
		x := &box{name: r.Name}
		if i := slices.IndexFunc(before, func(x *box) bool { return x.name == r.Name }); i >= 0 {
			x = before[i]
		}
		if ends[r.Name] == nil {
			x.about, x.spare, x.wake, x.fault = r.About, r.Spare, make(chan struct{}, 1), ""
		}
		b.boxes = append(b.boxes, x)
	}
	for name, end := range ends {
		if !slices.ContainsFunc(all, func(r Receiver) bool { return r.Name == name }) {
			end()
			delete(ends, name)
		}
	}
}

// Add takes an item for all receivers that want its kind. It does not block for the disk or a
// receiver. Where there is no place any more it is only counted.
func (b *Outbox) Add(i Item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := &b.seen
	if i.Passing {
		seen = &b.passed
	}
	if slices.Contains(*seen, i.ID) {
		return
	}
	switch lasts := slices.Contains(b.open, i.Key); {
	case i.Begins && lasts, i.Ends && !lasts:
		return
	case i.Begins:
		b.note(&b.open, i.Key, maxOpen)
	case i.Ends:
		b.open = slices.DeleteFunc(b.open, func(k string) bool { return k == i.Key })
	}
	b.note(seen, i.ID, maxSeen)
	if b.add(i) && !i.Passing || i.Begins || i.Ends {
		poke(b.dirty)
	}
}

func (b *Outbox) note(list *[]string, text string, most int) {
	if over := len(*list) + 1 - most; over > 0 {
		*list = slices.Delete(*list, 0, over)
	}
	*list = append(*list, text)
}

// Ask takes an item of an asker, and returns once it is stored: then it is told, over restarts too.
// An item with an ID that was taken is not taken again. Its errors are faults; what is refused is not told, unless it
// was sent already.
func (b *Outbox) Ask(i Item) error {
	if b.damage != nil {
		return b.damage
	}
	b.mu.Lock()
	known := slices.Contains(b.seen, i.ID)
	if !known {
		some, full := false, (*box)(nil)
		for _, x := range b.boxes {
			switch {
			case !x.wants(i.Kind):
			case !x.full(&i):
				some = true
			case full == nil || !x.spare:
				full = x
			}
		}
		switch {
		case full != nil && !(full.spare && some):
			b.mu.Unlock()
			return device.Faultf(device.Busy,
				"messages wait for %s already, which is not reached or told too often: try again later", full.name)
		case !some:
			b.mu.Unlock()
			return device.Faultf(device.Unavailable,
				"no receiver wants messages: its owner writes one under notify:, or message under its about:")
		}
		b.note(&b.seen, i.ID, maxSeen)
		b.add(i)
	}
	b.mu.Unlock()
	err := b.save()
	if err != nil && !known {
		b.withdraw(i.ID)
	}
	return err
}

// withdraw forgets an item that is not sent yet.
func (b *Outbox) withdraw(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen = slices.DeleteFunc(b.seen, func(s string) bool { return s == id })
	for _, x := range b.boxes {
		x.items = slices.DeleteFunc(x.items, func(i Item) bool { return i.ID == id })
	}
}

// asked counts the items of askers, and those of one.
func (x *box) asked(from string) (all, own int) {
	for _, i := range x.items {
		if i.From != "" {
			all++
		}
		if i.From == from {
			own++
		}
	}
	return all, own
}

// full reports whether an item finds no place.
func (x *box) full(i *Item) bool {
	if all, own := x.asked(i.From); i.From != "" && (all >= maxAsked || own >= maxAsker) {
		return true
	}
	return len(x.items) >= x.room(i)
}

// room returns how many items may wait before an item of that sort.
func (x *box) room(i *Item) int {
	switch {
	case !i.Urgent:
		return maxItems - keepFree
	case i.Passing:
		return maxItems - keepLast
	}
	return maxItems
}

func (x *box) wants(kind string) bool { return len(x.about) == 0 || slices.Contains(x.about, kind) }

// add puts an item into the boxes, and reports whether it took a place. The lock is held.
func (b *Outbox) add(i Item) (placed bool) {
	i.Count, i.since = max(i.Count, 1), time.Now()
	for _, x := range b.boxes {
		if !x.wants(i.Kind) {
			continue
		}
		at := slices.IndexFunc(x.items, func(other Item) bool { return other.Key == i.Key && other.From == i.From })
		switch {
		case at >= 0 && i.From == "":
			count := x.items[at].Count + i.Count
			x.items[at] = i
			x.items[at].Count = count
		case x.full(&i):
			x.more++
		default:
			x.items = append(x.items, i)
			placed = true
		}
		x.hurry = x.hurry || i.Urgent
		poke(x.wake)
	}
	return placed
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Waiting is the state of the queue of a receiver.
type Waiting struct {
	Receiver string
	Items    int
	Told     int    // messages since the start
	Refused  int    // items that it did not take
	Fault    string // of the last try; "" where it succeeded
	Since    time.Time
}

// Waiting returns the state of each queue.
func (b *Outbox) Waiting() (all []Waiting) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, x := range b.boxes {
		w := Waiting{x.name, len(x.items) + x.more, x.told, x.refused, x.fault, x.since}
		if x.sending != nil {
			w.Items += len(x.sending.Items) + x.sending.More
		}
		all = append(all, w)
	}
	return all
}

// Run tells the receivers until ctx ends. What is not told then is stored.
func (b *Outbox) Run(ctx context.Context, all []Receiver) {
	b.RunChanging(ctx, func() []Receiver { return all }, nil)
}

// RunChanging is Run for receivers that change: all returns them, again whenever changed receives. Those of the same
// name as before go on, with the Sender and the kinds that they had.
func (b *Outbox) RunChanging(ctx context.Context, all func() []Receiver, changed <-chan struct{}) {
	var running sync.WaitGroup
	if b.damage == nil {
		running.Go(func() { b.keep(ctx) })
	}
	ends := make(map[string]context.CancelFunc)
	for ctx.Err() == nil {
		now := all()
		b.replace(now, ends)
		for _, r := range now {
			if ends[r.Name] != nil {
				continue
			}
			of, end := context.WithCancel(ctx)
			ends[r.Name] = end
			x := b.box(r.Name)
			running.Go(func() { b.deliver(of, x, r.Sender) })
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
	for _, end := range ends {
		end()
	}
	running.Wait()
	if err := b.save(); err != nil {
		slog.Error("messages that wait are not stored", "err", err)
	}
}

// box returns the box of a receiver.
func (b *Outbox) box(name string) *box {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.boxes[slices.IndexFunc(b.boxes, func(x *box) bool { return x.name == name })]
}
