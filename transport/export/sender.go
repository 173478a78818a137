package export

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/device"
)

const (
	// settled is the least age of a reading that is sent, so that no earlier one of its point comes after it.
	settled = 15 * time.Second
	// reach is the age of the oldest readings that are sent of a new point.
	reach = 10 * time.Minute
	// page is the part of the history that is read at a time. States are repeated at the beginning of each, so that they do not
	// end at a store, which takes a series for ended after five minutes without a sample.
	page = 4 * time.Minute
	// pageSteps are the steps of a page where readings are there as minutes only.
	pageSteps = 240
	// maxSamples is the number of samples that fill a request; it has one page more at most.
	maxSamples = 2000
	// maxSplits bounds how often samples that were refused together are parted, and minSplits after requests of which
	// nothing was taken.
	maxSplits, minSplits = 64, 4
	// clockBack is by how much a clock is set back at least that the series begin again at its time.
	clockBack = time.Minute
	// warnEvery is the time between two lines in the log about samples that are left out; all are counted.
	warnEvery = time.Hour
)

// series is a point that is sent.
type series struct {
	agents.Point
	key    string
	at     time.Time // up to which it was sent
	next   time.Time // up to which the pending request has it
	listed bool      // now; one that the site has no more, or that may not be read, keeps its time
	ended  bool      // the stale marker was sent
	unread bool      // in this round
}

// sender sends the history while the agent runs.
type sender struct {
	*Agent
	self   agents.Principal
	site   agents.Site
	client *http.Client

	all     []*series // in the order of the site, then those that are gone
	batch   []sample
	pending []*series // with samples in batch, or none up to their next
	stored  stored
	warned  time.Time // of samples that are left out
	splits  int
	took    bool // a part of the batch was taken
}

func newSender(a *Agent, self agents.Principal, site agents.Site) (*sender, error) {
	c, err := a.newClient()
	if err != nil {
		return nil, err
	}
	s := &sender{Agent: a, self: self, site: site, client: c, splits: maxSplits}
	return s, s.load()
}

// round sends what is new of all points. What is not sent with an error is read again by the next one.
func (s *sender) round(ctx context.Context) error {
	now, known := s.world.Now()
	if !known {
		s.Say(agent.Waiting, "the site's clock is not set, and nothing is sent before: agentsite clock --set")
		return nil
	}
	list, err := s.site.Points(ctx, s.self, agents.SiteRequest{})
	if err != nil {
		return err
	}
	end := now.Add(-settled).Truncate(time.Second)
	s.batch, s.pending = s.batch[:0], s.pending[:0]
	s.adopt(list.Points, now, end)
	s.tell(func(t *told) { t.unread = "" })
	for {
		began := time.Now()
		from := end
		for _, x := range s.all {
			if x.listed && !x.unread && x.at.Before(from) {
				from = x.at
			}
		}
		if !from.Before(end) {
			break
		}
		if err := s.pass(ctx, from, now, end); err != nil {
			return err
		}
		if err := device.Sleep(ctx, time.Since(began)); err != nil { // leaves half of the time to others
			return err
		}
	}
	if err := s.flush(ctx); err != nil { // of markers, where there is nothing else
		return err
	}
	until := end
	some := false
	for _, x := range s.all {
		if some = some || x.listed; x.listed && x.at.Before(until) {
			until = x.at
		}
	}
	s.tell(func(t *told) { t.until = until })
	if s.Say(agent.Idle, ""); !some {
		s.Say(agent.Waiting, "it may read no point, and sends nothing: write may: 'read *'")
	}
	s.keep(false)
	return nil
}

// pass sends a page of each point that is as far behind as from, so that all points proceed together: a store may
// refuse what is much older than the newest that it has.
func (s *sender) pass(ctx context.Context, from, now, end time.Time) error {
	until, step := from.Add(page), time.Second
	if s.world.Raw > 0 && now.Sub(from) > s.world.Raw {
		step = time.Minute
		until = from.Truncate(step).Add(pageSteps * step)
	}
	if until.After(end) {
		until = end
	}
	for _, x := range s.all {
		if !x.listed || x.unread || !x.at.Before(until) {
			continue
		}
		all, err := s.read(ctx, x, x.at, until, step)
		if err != nil {
			if ctx.Err() != nil || device.AsFault(err).Kind == device.Busy {
				return err
			}
			x.unread = true
			s.tell(func(t *told) { t.unread = "the history of " + x.Point.Point + " cannot be read: " + err.Error() })
			continue
		}
		x.next = until
		s.batch, s.pending = append(s.batch, all...), append(s.pending, x)
		if len(s.batch) >= maxSamples {
			if err := s.flush(ctx); err != nil {
				return err
			}
		}
	}
	return s.flush(ctx)
}

// flush sends the batch, and notes that its points were sent.
func (s *sender) flush(ctx context.Context) error {
	if len(s.batch) > 0 {
		s.took = false
		if _, err := s.deliver(ctx, s.batch, s.splits); err != nil {
			return err
		}
		if s.splits = maxSplits; !s.took {
			s.splits = minSplits
		}
	}
	for _, x := range s.pending {
		if x.listed {
			x.at = x.next
		} else {
			x.ended = true
		}
	}
	s.batch, s.pending = s.batch[:0], s.pending[:0]
	s.keep(false)
	return nil
}

// deliver sends samples. Those that are refused are sent again in halves, the older ones first, because a store may
// refuse a request for one sample in it; what is still refused is left out and counted. It returns how many of splits
// are left.
func (s *sender) deliver(ctx context.Context, all []sample, splits int) (left int, err error) {
	err = s.post(ctx, encode(all))
	answer, ok := errors.AsType[*answerError](err)
	switch {
	case err == nil:
		s.took = true
		s.tell(func(t *told) { t.sent += len(all) })
		return splits, nil
	case !ok || !answer.refused():
		return splits, err
	case len(all) > 1 && splits > 0:
		slices.SortStableFunc(all, func(a, b sample) int { return cmp.Compare(a.at, b.at) })
		older := (splits - 1) / 2 // the newer half has the others
		if left, err = s.deliver(ctx, all[:len(all)/2], older); err != nil {
			return left, err
		}
		return s.deliver(ctx, all[len(all)/2:], splits-1-older+left)
	}
	if time.Since(s.warned) > warnEvery {
		s.warned = time.Now()
		slog.Warn("remote write: the store refuses samples, which are left out", "samples", len(all), "err", err)
	}
	s.tell(func(t *told) { t.refused += len(all); t.why = err.Error() })
	return splits, nil
}

// adopt takes over the list of points. A point that is new begins a little before the end, and one whose time is ahead
// of the clock, which was set back, at the end. The series of a point that went ends with a stale marker.
func (s *sender) adopt(points []agents.Point, now, end time.Time) {
	was := make(map[string]*series, len(s.all))
	for _, x := range s.all {
		was[x.key] = x
	}
	all, back := make([]*series, 0, len(points)), 0
	for _, p := range points {
		if !exported(p) {
			continue
		}
		x := was[keyOf(p)]
		if x == nil {
			x = &series{key: keyOf(p), at: end.Add(-reach)}
		}
		if delete(was, x.key); x.at.After(now.Add(clockBack)) {
			x.at = end
			back++
		}
		x.Point, x.listed, x.ended, x.unread = p, true, false, false
		all = append(all, x)
	}
	if back > 0 {
		slog.Warn("remote write: the clock was set back; series go on at its time, which the store may refuse",
			"points", back)
	}
	for _, x := range s.all {
		if was[x.key] == nil {
			continue
		}
		x.listed = false
		if x.Point.Point != "" && len(x.Values) == 0 && !x.ended { // it was there since the start
			s.mark(x)
		}
		if now.Sub(x.at) < forget {
			all = append(all, x)
		}
	}
	s.all = all
}

// mark has a series end with the next request.
func (s *sender) mark(x *series) {
	s.batch = append(s.batch, sample{s.labels(x.Point, ""), x.at.UnixMilli() + 1, math.Float64frombits(staleBits)})
	s.pending = append(s.pending, x)
}
