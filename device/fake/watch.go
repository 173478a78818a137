package fake

import (
	"context"

	"agentsite/device"
)

// maxUnread bounds the readings that wait for a watcher. The oldest are dropped first.
const maxUnread = 1024

// watcher is one Watch, with the readings that it has not emitted yet.
type watcher struct {
	unread []device.Reading
	ready  chan struct{} // has room for one
}

// emit has all watchers emit a reading. d.mu is held.
func (d *Device) emit(r device.Reading) {
	for _, w := range d.watchers {
		if len(w.unread) == maxUnread {
			w.unread = w.unread[1:]
		}
		w.unread = append(w.unread, r)
		select {
		case w.ready <- struct{}{}:
		default:
		}
	}
}

// Watch emits what measurements and states are at its start, and then each change and event.
func (d *Device) Watch(ctx context.Context, emit func(device.Reading)) error {
	w := &watcher{ready: make(chan struct{}, 1)}
	d.mu.Lock()
	d.watchers = append(d.watchers, w)
	for _, s := range d.points {
		if measured(s.Point) {
			w.unread = append(w.unread, d.read(s))
		}
	}
	d.mu.Unlock()
	defer d.forget(w)
	for {
		d.mu.Lock()
		unread := w.unread
		w.unread = nil
		d.mu.Unlock()
		for _, r := range unread {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			emit(r)
		}
		select {
		case <-w.ready:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (d *Device) forget(w *watcher) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.watchers {
		if d.watchers[i] == w {
			d.watchers = append(d.watchers[:i:i], d.watchers[i+1:]...)
			return
		}
	}
}
