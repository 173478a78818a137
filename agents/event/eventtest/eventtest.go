// Package eventtest has an event.Source for the tests of what delivers events.
package eventtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/event"
	"agentsite/device"
)

// Name is the one type of a Source. Its argument is the point of its events.
const Name = "point.changed"

// Source is a scripted event.Source: Add makes events. Its cursors count them, and are of one run.
type Source struct {
	mu      sync.Mutex
	all     []event.Event
	points  []string // of all
	first   int      // the events before it are forgotten
	err     error    // of all calls, nil for none
	unread  map[string]bool
	changed chan struct{}
}

// New returns a source without events.
func New() *Source { return &Source{unread: make(map[string]bool), changed: make(chan struct{})} }

// Add makes an event of a point.
func (s *Source) Add(point string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.all) + 1
	s.points = append(s.points, point)
	s.all = append(s.all, event.Event{
		ID: fmt.Sprint("e", n), Name: Name, At: time.Date(2026, 11, 28, 0, 0, n, 0, time.UTC), Sure: true,
		Data: fmt.Appendf(nil, `{"point":%q,"value":%d}`, point, n), Cursor: strconv.Itoa(n),
	})
	s.wake()
}

// Forget drops the events until now, as a history does with old ones.
func (s *Source) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first = len(s.all)
}

// Fail has all calls fail; nil for none.
func (s *Source) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	s.wake()
}

// Hide has nobody read a point any more.
func (s *Source) Hide(point string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unread[point] = true
	s.wake()
}

func (s *Source) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Types implements event.Source.
func (s *Source) Types(context.Context, agents.Principal) ([]event.Type, error) {
	return []event.Type{{
		Name: Name, Description: "A point has another value.",
		Input:   json.RawMessage(`{"type":"object","properties":{"point":{"type":"string"}},"required":["point"]}`),
		Payload: json.RawMessage(`{"type":"object"}`),
	}}, nil
}

type args struct {
	Point string `json:"point"`
	Every int    `json:"every,omitempty"`
}

// Check implements event.Source.
func (s *Source) Check(_ context.Context, _ agents.Principal, r event.Request) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, err := s.check(r)
	if err != nil {
		return nil, err
	}
	return json.Marshal(a)
}

func (s *Source) check(r event.Request) (a args, err error) {
	if s.err != nil {
		return a, s.err
	}
	if r.Name != Name {
		return a, event.ErrUnknown
	}
	if err := json.Unmarshal(r.Args, &a); err != nil || a.Point == "" {
		return a, device.Faultf(device.Invalid, "point: name a point")
	}
	if s.unread[a.Point] {
		return a, event.ErrUnknown
	}
	if n, err := strconv.Atoi(r.Cursor); r.Cursor != "" && (err != nil || n < 0) {
		return a, device.Faultf(device.Invalid, "cursor: is not of this site")
	}
	return a, nil
}

// Poll implements event.Source.
func (s *Source) Poll(_ context.Context, _ agents.Principal, r event.Request) (event.Page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.poll(r)
}

func (s *Source) poll(r event.Request) (p event.Page, err error) {
	a, err := s.check(r)
	if err != nil {
		return p, err
	}
	p.Cursor, p.Next = strconv.Itoa(len(s.all)), 5*time.Second
	if r.Cursor == "" {
		return p, nil
	}
	at, _ := strconv.Atoi(r.Cursor)
	if at < s.first || at > len(s.all) {
		at, p.Truncated = s.first, true
	}
	for i, e := range s.all[at:] {
		if s.points[at+i] != a.Point {
			continue
		}
		if r.Max > 0 && len(p.Events) == r.Max {
			p.More, p.Cursor = true, strconv.Itoa(at+i)
			break
		}
		p.Events = append(p.Events, e)
	}
	p.Events = slices.Clip(p.Events)
	return p, nil
}

// Follow implements event.Source.
func (s *Source) Follow(ctx context.Context, _ agents.Principal, r event.Request, emit func(event.Page) error) error {
	for first := true; ; first = false {
		s.mu.Lock()
		changed := s.changed
		asked := r
		if first && r.Cursor != "" {
			asked.Max = 1 // to learn whether events are missing
		}
		p, err := s.poll(asked)
		s.mu.Unlock()
		if errors.Is(err, event.ErrUnknown) && !first {
			err = event.ErrForbidden
		}
		if err != nil {
			return err
		}
		if first && r.Cursor != "" {
			p.Events, p.Cursor = nil, r.Cursor
			if p.Truncated {
				p.Cursor = strconv.Itoa(s.forgotten())
			}
		}
		if first || len(p.Events) > 0 || p.Truncated {
			if err := emit(p); err != nil {
				return err
			}
		}
		r.Cursor = p.Cursor
		if first {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

func (s *Source) forgotten() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}
