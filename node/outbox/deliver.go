package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"slices"
	"time"

	"agentsite/device"
)

// rate spaces messages: some at once, and then one at a time.
type rate struct {
	burst   int
	spacing time.Duration
	full    time.Time // when all are there again
}

// wait returns how long it is until one is there.
func (r *rate) wait() time.Duration {
	return max(0, time.Until(r.full)) - time.Duration(r.burst-1)*r.spacing
}

func (r *rate) take() {
	if now := time.Now(); r.full.Before(now) {
		r.full = now
	}
	r.full = r.full.Add(r.spacing)
}

// deliver tells one receiver until ctx ends.
func (b *Outbox) deliver(ctx context.Context, x *box, to Sender) {
	usual, urgent := rate{burst: burst, spacing: spacing}, rate{burst: urgentBurst, spacing: urgentSpace}
	poke(x.wake) // of what the file has
	for {
		select {
		case <-ctx.Done():
			return
		case <-x.wake:
		}
		if device.Sleep(ctx, gather) != nil {
			return
		}
		for b.next(x, false) {
			r := &usual
			if b.next(x, true) {
				r = &urgent
			}
			if wait := r.wait(); wait > 0 {
				if !b.sleep(ctx, x, wait) {
					return
				}
				continue // there may be something urgent now
			}
			r.take()
			m := b.take(x)
			if m != nil && !b.try(ctx, x, to, *m, &urgent) {
				return
			}
		}
	}
}

// sleep waits, or until something comes. It reports false when ctx has ended.
func (b *Outbox) sleep(ctx context.Context, x *box, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-x.wake:
	}
	return true
}

// next reports whether something waits, or something urgent.
func (b *Outbox) next(x *box, urgent bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if urgent {
		return slices.ContainsFunc(x.items, func(i Item) bool { return i.Urgent }) ||
			x.sending != nil && slices.ContainsFunc(x.sending.Items, func(i Item) bool { return i.Urgent })
	}
	return x.sending != nil || len(x.items) > 0 || x.more > 0
}

// take returns the message to send: the one that was not told before, or one of all that waits; nil
// where that is too old.
func (b *Outbox) take(x *box) *Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	if x.sending == nil {
		if x.items = x.current(x.items); len(x.items) == 0 && x.more == 0 {
			return nil
		}
		m := &Message{Items: x.items, More: x.more + x.refused}
		slices.SortStableFunc(m.Items, func(a, b Item) int {
			switch {
			case a.Urgent == b.Urgent:
				return 0
			case a.Urgent:
				return -1
			}
			return 1
		})
		sum := sha256.New()
		for _, i := range m.Items {
			sum.Write([]byte(i.ID))
		}
		sum.Write([]byte{byte(m.More), byte(m.More >> 8)})
		if m.ID = hex.EncodeToString(sum.Sum(nil)[:12]); len(m.Items) == 1 && m.More == 0 {
			m.ID = m.Items[0].ID
		}
		x.items, x.more, x.refused, x.sending, x.hurry = nil, 0, 0, m, false
	}
	return x.sending
}

// current removes the items that are too old, which it counts, or over. The lock is held.
func (x *box) current(all []Item) []Item {
	return slices.DeleteFunc(all, func(i Item) bool {
		old := time.Since(i.since) > maxAge
		if old {
			x.more += i.Count
		}
		return old || i.Passing && time.Until(i.Until) <= 0
	})
}

// try sends a message until the receiver has it, and reports false when ctx has ended. The pauses begin anew when
// something urgent comes.
func (b *Outbox) try(ctx context.Context, x *box, to Sender, m Message, urgent *rate) bool {
	for pause := firstPause; ; {
		err := to.Send(ctx, m)
		b.mu.Lock()
		was := x.fault
		var refused *Refused
		switch {
		case err == nil:
			x.sending, x.fault = nil, ""
			x.told++
		case ctx.Err() == nil && errors.As(err, &refused):
			slog.Warn("a receiver does not take a notification", "receiver", x.name, "err", err)
			x.refused += m.More
			for _, i := range m.Items {
				x.refused += i.Count
			}
			if x.fault, x.sending, err = refused.Error(), nil, nil; was == "" {
				x.since = time.Now()
			}
		case ctx.Err() == nil:
			if x.fault = err.Error(); was == "" {
				x.since = time.Now()
			}
			if b.expire(x); x.sending == nil {
				err = nil // given up
			} else {
				m = *x.sending
			}
		}
		b.mu.Unlock()
		switch {
		case err == nil:
			poke(b.dirty)
			return true
		case was == "" && ctx.Err() == nil:
			slog.Warn("a receiver of notifications is not reached", "receiver", x.name, "err", err)
		}
		wait := pause
		var later *Later
		if errors.As(err, &later) {
			wait = min(max(later.After, pause), maxPause)
		}
		switch came, ok := b.pause(ctx, x, wait, urgent); {
		case !ok:
			return false
		case came:
			pause = firstPause
		default:
			pause = min(2*pause, maxPause)
		}
	}
}

// pause waits, or until something urgent comes, as often as its rate says; came reports that. ok is false when ctx has
// ended.
func (b *Outbox) pause(ctx context.Context, x *box, d time.Duration, urgent *rate) (came, ok bool) {
	for end := time.Now().Add(d); ; {
		left := time.Until(end)
		b.mu.Lock()
		if first := urgent.wait(); x.hurry && first < left {
			if left, came = first, first <= 0; came {
				x.hurry = false
				urgent.take()
			}
		}
		b.mu.Unlock()
		if left <= 0 {
			return came, true
		}
		if !b.sleep(ctx, x, left) {
			return false, false
		}
	}
}

// expire gives up a message of which everything is too old or over. A passing item in it is left out, so
// that the others are a message of their own. The lock is held.
func (b *Outbox) expire(x *box) {
	m := *x.sending
	kept := x.current(slices.Clone(m.Items))
	if len(kept) == len(m.Items) {
		return
	}
	x.sending, x.items, x.more = nil, append(kept, x.items...), x.more+m.More
}
