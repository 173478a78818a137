package outbox

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"syscall"
	"time"

	"agentsite/device"

	"github.com/go-json-experiment/json"
)

// MaxFile bounds the file.
const MaxFile = 1 << 20

// file is the content of the file.
type file struct {
	Version int      `json:"version"`
	Open    []string `json:"open,omitzero"`
	Seen    []string `json:"seen,omitzero"`
	Boxes   []stored `json:"receivers,omitzero"`
}

type stored struct {
	Name    string   `json:"name"`
	Items   []Item   `json:"items,omitzero"`
	More    int      `json:"more,omitzero"`
	Sending *Message `json:"sending,omitzero"`
}

// Open returns an outbox with what its file has. An error says that the file is damaged; the outbox then
// stores nothing and takes nothing of askers.
func Open(o Options) (*Outbox, error) {
	b := &Outbox{Options: o, dirty: make(chan struct{}, 1)}
	if o.File == nil && o.Err == nil {
		return b, nil
	}
	var f file
	err := o.Err
	if err == nil {
		err = json.Unmarshal(o.File, &f)
	}
	if err == nil && f.Version != 1 {
		err = errors.New("its version is another one")
	}
	if err != nil {
		b.damage = device.Faultf(device.Unavailable, "the messages of before cannot be read: %w", bare(err))
		return b, b.damage
	}
	b.open, b.seen, b.written = f.Open, f.Seen, string(o.File)
	for _, s := range f.Boxes {
		x := &box{name: s.Name, items: s.Items, more: s.More, sending: s.Sending}
		b.age(x.items)
		if x.items = x.current(x.items); x.sending != nil {
			b.age(x.sending.Items)
			b.expire(x)
		}
		b.take(x) // it may have been sent, and has the same ID then
		b.boxes = append(b.boxes, x)
	}
	return b, nil
}

// age sets since when items wait, as far as that is known.
func (b *Outbox) age(all []Item) {
	now, sure := b.Now()
	for i := range all {
		all[i].since = time.Now()
		if age := now.Sub(all[i].At); sure && all[i].Sure && age > 0 {
			all[i].since = all[i].since.Add(-age)
		}
	}
}

// keep stores what changes, until ctx ends. What could not be stored is tried again.
func (b *Outbox) keep(ctx context.Context) {
	writes := rate{burst: writeBurst, spacing: writePause}
	for failing := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-b.dirty:
		}
		if wait := writes.wait(); wait > 0 && device.Sleep(ctx, wait) != nil {
			return
		}
		writes.take()
		err := b.save()
		if err != nil && !failing {
			slog.Error("messages that wait are not stored", "err", err)
		}
		if failing = err != nil; failing {
			poke(b.dirty)
			if device.Sleep(ctx, writePause) != nil {
				return
			}
		}
	}
}

// save writes the file, unless it is so already.
func (b *Outbox) save() error {
	if b.damage != nil {
		return b.damage
	}
	b.writing.Lock()
	defer b.writing.Unlock()
	b.mu.Lock()
	f := file{Version: 1, Open: b.open, Seen: b.seen}
	for _, x := range b.boxes {
		s := stored{x.name, lasting(x.items), x.more + x.refused, nil}
		if m := x.sending; m != nil {
			if kept := lasting(m.Items); len(kept) > 0 || m.More > 0 {
				s.Sending = &Message{m.ID, kept, m.More}
			}
		}
		if len(s.Items) > 0 || s.More > 0 || s.Sending != nil {
			f.Boxes = append(f.Boxes, s)
		}
	}
	text, err := json.Marshal(f, json.Deterministic(true))
	same := string(text) == b.written
	b.mu.Unlock()
	if err == nil && !same {
		if err = b.Write(text); err == nil {
			b.written = string(text)
		}
	}
	if err != nil {
		return device.Faultf(device.Unavailable, "the site cannot store this now: %w", bare(err))
	}
	return nil
}

// bare returns an error without the name of a file, which callers are not told.
func bare(err error) error {
	if code, ok := errors.AsType[syscall.Errno](err); ok {
		return code
	}
	return err
}

// lasting returns the items that outlive a restart.
func lasting(all []Item) []Item {
	return slices.DeleteFunc(slices.Clone(all), func(i Item) bool { return i.Passing })
}
