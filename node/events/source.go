// Package events makes the events that callers can be told of, from what the site records: readings and changes of the
// history, and the occurrences of a run. What is live only wakes: whoever polls, follows or is pushed to is told the
// same events under the same IDs.
package events

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"agentsite/agents"
	"agentsite/agents/event"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/node/history"
	"agentsite/node/occurrence"

	"github.com/go-json-experiment/json"
)

const (
	nextPoll  = 5 * time.Second
	quietPoll = 40 * time.Second
	maxReplay = 24 * time.Hour // of recorded time
	maxChain  = 1000           // events of pages that follow each other without an end
	maxPage   = 100
	// settle is the longest that a record can wait for an earlier one of another point.
	settle = time.Second
	// minFollow is the least time between two looks at several points, of which each wakes who follows them.
	minFollow = settle / 2
	// A page that a permission's rate does not allow yet is tried again less and less often.
	retryMin = time.Second
	retryMax = time.Minute
	// maxQuiet is the longest time for which a follower keeps a cursor: an older one than maxReplay says that events may
	// be missing.
	maxQuiet = maxReplay / 2
)

// Options are the parts of the site that events are made of.
type Options struct {
	Node interface {
		Readable(agents.Principal) ([]agents.Point, error)
		MayRead(p agents.Principal, points []string) error
		ChargeRead(p agents.Principal, points []string) error
		Offer(context.Context, agents.Principal) (*agents.Offer, error)
		Owner(agents.Principal) error
		ReadPast(context.Context, agents.Principal) (leave func(), err error)
	}
	Hub interface {
		Latest(address string) (device.Reading, bool)
		GoodFor(address string) time.Duration
		OnPoints(points []string, wake func()) (leave func())
	}
	History interface {
		Marks(points []string) ([]history.Mark, history.Mark)
		After(points []string, marks []history.Mark, yield func(history.Entry) bool) (whole bool)
	}
	Occurrences *occurrence.Source // nil for none
	Tasks       interface {
		Agents(context.Context, agents.Principal) ([]task.Agent, error)
	} // nil for none
	Now    func() (time.Time, bool) // the site's clock, and whether it is known
	Secret string                   // of the site, for its cursors
	Ready  <-chan struct{}          // closed when the history is open, or stays in memory; nil for now
}

// Source is an event.Source.
type Source struct {
	Options
	seal sealer
	ring ring
	run  uint64 // of this process
}

var _ event.Source = (*Source)(nil)

// New returns a Source, which watches nothing before it is asked.
func New(o Options) *Source {
	s := &Source{Options: o, seal: newSealer(o.Secret)}
	var b [8]byte
	rand.Read(b[:])
	s.run = binary.BigEndian.Uint64(b[:]) | 1
	return s
}

// plan checks a request. A cursor proves that the caller could ask once.
func (s *Source) plan(ctx context.Context, p agents.Principal, r event.Request) (*plan, error) {
	if s.Ready != nil {
		select {
		case <-s.Ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	readable, err := s.Node.Readable(p)
	if err != nil {
		return nil, err
	}
	pl, err := parse(p, r)
	if err != nil {
		return nil, err
	}
	err = pl.resolve(readable)
	if of, _ := find(pl.name); err == nil && of.fits == nil && !s.offers(ctx, p, pl.name) {
		err = event.ErrUnknown
	}
	if errors.Is(err, event.ErrUnknown) && r.Cursor != "" {
		if _, wrong := s.seal.open(pl, r.Cursor); wrong == nil {
			err = event.ErrForbidden
		}
	}
	for _, address := range pl.addresses {
		pl.goodFor = append(pl.goodFor, s.Hub.GoodFor(address).Milliseconds())
	}
	return pl, err
}

// Check implements event.Source.
func (s *Source) Check(
	ctx context.Context, p agents.Principal, r event.Request,
) (canonical stdjson.RawMessage, err error) {
	pl, err := s.plan(ctx, p, r)
	if err == nil && r.Cursor != "" {
		_, err = s.open(pl, r.Cursor)
	}
	if err != nil {
		return nil, err
	}
	return pl.canonical, nil
}

func (s *Source) open(pl *plan, cursor string) (state, error) {
	st, err := s.seal.open(pl, cursor)
	if err != nil {
		return st, invalid("cursor: %v; leave it out for the events from now on", err)
	}
	return st, nil
}

// Poll implements event.Source.
func (s *Source) Poll(ctx context.Context, p agents.Principal, r event.Request) (event.Page, error) {
	pl, err := s.plan(ctx, p, r)
	if err != nil {
		return event.Page{}, err
	}
	page, _, err := s.poll(ctx, pl, r)
	return page, err
}

// poll is Poll of a plan that was made just now. After due there may be more without a wake; 0 for never.
func (s *Source) poll(
	ctx context.Context, pl *plan, r event.Request,
) (page event.Page, due time.Duration, err error) {
	var st state
	if r.Cursor != "" {
		if st, err = s.open(pl, r.Cursor); err != nil {
			return page, 0, err
		}
	}
	if r.Max <= 0 || r.Max > maxChain {
		r.Max = maxPage
	}
	if of, _ := find(pl.name); of.fits == nil {
		return s.pollRing(pl, r, st), 0, nil
	}
	if r.Cursor != "" { // before a look: with a rate that is used up, nobody learns whether there are events
		if err := s.Node.MayRead(pl.who, pl.addresses); err != nil {
			return page, 0, s.refused(err)
		}
	}
	t := &teller{source: s, plan: pl, request: r, state: st}
	if err := t.tell(ctx); err != nil {
		return page, 0, err
	}
	if err := s.charge(t); err != nil {
		return page, 0, err
	}
	return t.page, t.due, nil
}

// charge charges for the readings in a page, as many as the caller would read for them, and leaves out the events
// that a rate does not allow yet.
func (s *Source) charge(t *teller) error {
	for i, about := range t.about {
		err := s.Node.ChargeRead(t.plan.who, about)
		if err == nil {
			continue
		}
		if i == 0 || device.AsFault(err).Kind != device.Busy {
			return s.refused(err)
		}
		t.page.Events = t.page.Events[:i]
		t.page.Cursor, t.page.More, t.due = t.page.Events[i-1].Cursor, true, 0
		return nil
	}
	return nil
}

// refused returns why a caller is not told of readings.
func (s *Source) refused(err error) error {
	if device.AsFault(err).Kind == device.Denied {
		return event.ErrForbidden
	}
	return err
}

// pollRing returns the occurrences after a cursor.
func (s *Source) pollRing(pl *plan, r event.Request, st state) (page event.Page) {
	s.ring.join(s.Occurrences)
	all, next, whole := s.ring.after(st.number)
	if r.Cursor != "" && st.run != s.run { // of another run: all that there is is new to it
		all, next, _ = s.ring.after(0)
		whole = false
	} else if r.Cursor == "" {
		all, whole = nil, true
	}
	now, _ := s.Now()
	owner := s.Node.Owner(pl.who) == nil
	page.Truncated = !whole
	cursor := state{run: s.run, quiet: st.quiet, number: next - uint64(len(all))}
	for i := range all {
		o := &all[i]
		data := pl.occurred(o, pl.who, owner)
		if data == nil || r.MaxAge > 0 && now.Sub(o.At) > r.MaxAge {
			cursor.number++
			continue
		}
		if len(page.Events) == r.Max {
			page.More = true
			break
		}
		cursor.number++
		page.Events = append(page.Events, event.Event{
			ID: o.ID, Name: pl.name, At: o.At, Sure: o.Sure, Data: encode(data), Cursor: s.seal.close(pl, &cursor),
		})
	}
	page.Next = cursor.pause(nextPoll, len(page.Events))
	page.Cursor = s.seal.close(pl, &cursor)
	return page
}

func encode(data any) []byte {
	b, err := json.Marshal(data)
	if err != nil { // a text of a device that is not UTF-8
		return []byte("{}")
	}
	return b
}

// Follow implements event.Source.
func (s *Source) Follow(
	ctx context.Context, p agents.Principal, r event.Request, emit func(event.Page) error,
) error {
	pl, err := s.plan(ctx, p, r)
	if err != nil {
		return err
	}
	wakes := make(chan struct{}, 1)
	wake := func() {
		select {
		case wakes <- struct{}{}:
		default:
		}
	}
	leave, watched := s.Hub.OnPoints(pl.addresses, wake), pl.addresses
	defer func() { leave() }()
	if of, _ := find(pl.name); of.fits == nil {
		s.ring.join(s.Occurrences)
		defer s.ring.on(wake)()
	}
	if r.Cursor == "" {
		page, _, err := s.poll(ctx, pl, r)
		if err != nil {
			return err
		}
		r.Cursor = page.Cursor
	} else if _, err := s.open(pl, r.Cursor); err != nil {
		return err
	}
	if err := emit(event.Page{Cursor: r.Cursor, Next: nextPoll}); err != nil {
		return err
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	retry, emitted := retryMin, time.Now()
	for {
		pl, err := s.plan(ctx, p, r)
		if err != nil {
			return err
		}
		if !slices.Equal(pl.addresses, watched) { // devices have come or gone
			leave()
			leave, watched = s.Hub.OnPoints(pl.addresses, wake), pl.addresses
		}
		looked := time.Now()
		page, due, err := s.poll(ctx, pl, r)
		switch {
		case err == nil:
			retry = retryMin
		case device.AsFault(err).Kind == device.Busy: // a rate
			due, retry = retry, min(2*retry, retryMax)
			page = event.Page{Cursor: r.Cursor}
		default:
			return err
		}
		r.Cursor = page.Cursor
		if len(page.Events) > 0 || page.Truncated || time.Since(emitted) >= maxQuiet {
			if err := emit(page); err != nil {
				return err
			}
			emitted = time.Now()
		}
		if page.More {
			continue
		}
		if due == 0 || due > maxQuiet {
			due = maxQuiet
		}
		timer.Reset(due)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-wakes:
		case <-timer.C:
		}
		if len(pl.addresses) > 1 {
			if err := device.Sleep(ctx, minFollow-time.Since(looked)); err != nil {
				return err
			}
		}
	}
}

// id returns the ID of an event about a record.
func (pl *plan) id(run uint64, address string, m history.Mark, v device.Value) string {
	condition := ""
	if pl.when != nil {
		condition = string(pl.canonical)
	}
	h := sha256.New()
	fmt.Fprintf(h, "MCP event\x00%s\x00%s\x00%s\x00%d\x00%d\x00%d\x00%d\x00%v", pl.name, condition, address, run, m.Run,
		m.At, m.N, v.Any())
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}
