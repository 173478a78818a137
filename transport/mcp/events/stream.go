package events

import (
	"context"
	"errors"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/event"
	"agentsite/device"
	"agentsite/transport/rpc"
)

const (
	// heartbeat is the longest silence of a stream.
	heartbeat = 25 * time.Second
	// maxPause bounds the time between two tries to follow events.
	maxPause = time.Minute
)

// Notified are the parameters of a notification of a stream, but for its _meta.
type Notified struct {
	Method string     `json:"-"`
	Cursor *string    `json:"cursor,omitzero"`
	Error  *rpc.Error `json:"error,omitzero"`
	// Of the first notification, and at a gap.
	Truncated *bool `json:"truncated,omitzero"`
	// Event is the whole of a notification of an event.
	Event *Occurrence `json:"-"`
}

// Stream sends the notifications of events/stream until ctx ends, and then returns nil. An error before the first is
// the answer to the request. send is called by one goroutine at a time.
func (s *Server) Stream(
	ctx context.Context, who agents.Principal, a *Asked, declared bool, send func(Notified) error,
) error {
	r, err := a.request()
	if err != nil {
		return err
	}
	f := &following{source: s.Source, who: who, request: r}
	out := &stream{send: send}
	ctx, cancel := context.WithCancel(ctx)
	var beats sync.WaitGroup
	defer beats.Wait()
	defer cancel()
	err = f.run(ctx, func(p event.Page) error {
		if !out.begun {
			beats.Go(func() { out.beat(ctx, cancel) })
		}
		return out.page(ctx, f, p)
	}, func(err error) error {
		if !out.begun {
			return err
		}
		return out.tell(Notified{Method: "error", Error: public(err, declared)})
	})
	switch {
	case ctx.Err() != nil:
		return nil
	case !out.begun:
		return err
	}
	return out.tell(Notified{Method: "terminated", Error: public(err, declared)})
}

// public returns an error as a client is told it: of a defect only that it is one.
func public(err error, declared bool) *rpc.Error {
	if e := Refuse(err, declared); e != nil {
		return e
	}
	if f := device.AsFault(err); f.Kind != device.Internal {
		return rpc.Errorf(rpc.CodeInternal, "%s", f.Msg)
	}
	return rpc.Errorf(rpc.CodeInternal, "the site failed at this; its log says more")
}

// following follows the events of one request, over errors that pass.
type following struct {
	source  event.Source
	who     agents.Principal
	request event.Request
	unseen  time.Duration // for which a missing permission is waited for, before the first page
}

// run calls emit with the pages of Follow, which brings the cursor of the request up to date, until ctx ends, emit
// fails, or an error comes that does not pass. Of one that does, it tells failed, and goes on after a pause.
func (f *following) run(ctx context.Context, emit func(event.Page) error, failed func(error) error) error {
	var broken error // of emit
	seen, began := false, time.Now()
	for pause := time.Second; ; pause = min(2*pause, maxPause) {
		err := f.source.Follow(ctx, f.who, f.request, func(p event.Page) error {
			seen, pause = true, time.Second
			broken = emit(p)
			return broken
		})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case broken != nil:
			return broken
		case err == nil:
			return errors.New("the source of events ended")
		case final(err) && (seen || time.Since(began)+pause > f.unseen):
			return err
		}
		if err := failed(err); err != nil {
			return err
		}
		if err := device.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// final reports whether to ask again would not help.
func final(err error) bool {
	if r := asRefusal(err); r != nil {
		return r.kind != exhausted
	}
	return device.AsFault(err).Kind == device.Invalid
}

// check refuses what the caller may not be told any more: a permission may end within a page.
func (f *following) check(ctx context.Context) error {
	r := f.request
	r.Cursor = ""
	_, err := f.source.Check(ctx, f.who, r)
	if errors.Is(err, event.ErrUnknown) {
		return event.ErrForbidden // it was known before
	}
	return err
}

// stream is the client's side of an events/stream.
type stream struct {
	send func(Notified) error

	mu     sync.Mutex
	begun  bool
	cursor string
	last   time.Time // of a notification
}

func (s *stream) tell(n Notified) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tellLocked(n)
}

func (s *stream) tellLocked(n Notified) error {
	s.last = time.Now()
	n.Method = "notifications/events/" + n.Method
	return s.send(n)
}

// page tells a page: that the stream begins or has a gap, and each event.
func (s *stream) page(ctx context.Context, f *following, p event.Page) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun || len(p.Events) == 0 {
		s.cursor = p.Cursor
	}
	if !s.begun || p.Truncated {
		s.begun = true
		if err := s.tellLocked(Notified{Method: "active", Cursor: orNull(s.cursor), Truncated: &p.Truncated}); err != nil {
			return err
		}
	}
	for _, e := range p.Events {
		if err := f.check(ctx); err != nil {
			return err
		}
		o := occurrence(e)
		o.Cursor = orNull(e.Cursor)
		if err := s.tellLocked(Notified{Method: "event", Event: &o}); err != nil {
			return err
		}
		s.cursor = e.Cursor
	}
	s.cursor = p.Cursor
	f.request.Cursor = p.Cursor
	return nil
}

// beat sends heartbeats in what would be silence, and ends the stream where none can be sent.
func (s *stream) beat(ctx context.Context, cancel func()) {
	timer := time.NewTimer(heartbeat)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		s.mu.Lock()
		left := heartbeat - time.Since(s.last)
		if left <= 0 {
			left = heartbeat
			if s.tellLocked(Notified{Method: "heartbeat", Cursor: orNull(s.cursor)}) != nil {
				cancel()
			}
		}
		s.mu.Unlock()
		timer.Reset(left)
	}
}
