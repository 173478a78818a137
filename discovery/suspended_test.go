package discovery

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/node/identity"
)

// TestSleepEndsWhatHolds: sites that a directory held at a suspension are gone when the machine
// wakes, and watchers are told within a minute.
func TestSleepEndsWhatHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slept atomic.Int64
		d := NewDirectory(slog.New(slog.DiscardHandler), nil)
		d.suspended = func() time.Duration { return time.Duration(slept.Load()) }
		key := identity.New()
		sign := func(sequence uint64) *Signed {
			r, err := Record{Site: key.ID(), Sequence: sequence, Name: "garden", Addresses: []string{"https://192.0.2.1/mcp"}, Lifetime: 24 * time.Hour}.Sign(key)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		newest := sign(5)
		if err := d.handleSighting("air", Sighting{Site: key.ID(), Record: newest.Bytes(), For: time.Hour}); err != nil {
			t.Fatal(err)
		}
		var older *OlderError
		if err := d.handleSighting("air", Sighting{Site: key.ID(), Record: sign(4).Bytes(), For: time.Hour}); !errors.As(err, &older) || !errors.Is(err, ErrReplayed) || older.Newest.Sequence != 5 {
			t.Errorf("of an older record: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		gone := make(chan struct{})
		go d.Watch(ctx, func(c Change, _ Site) {
			if c == Gone {
				close(gone)
			}
		})
		synctest.Wait()
		slept.Store(int64(2 * time.Hour))
		time.Sleep(61 * time.Second)
		select {
		case <-gone:
		default:
			t.Error("a watcher is not told")
		}
		if _, there := d.Site(key.ID()); there {
			t.Error("it is still there")
		}
	})
}
