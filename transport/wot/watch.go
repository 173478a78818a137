package wot

import (
	"context"
	"errors"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/transport/adapter"
)

// maxPoll bounds one request of long polling, in which nothing happened.
const maxPoll = 50 * time.Minute

// notGood is the name of the event that says why a property has no value now.
const notGood = "quality"

// quality says that a property has no value now, and why.
type quality struct {
	Quality device.Quality `json:"quality"`
	Why     string         `json:"why,omitzero"`
}

// changes calls emit with the readings of a point: first with the present one, then when its
// value or quality has changed.
func (s server) changes(ctx context.Context, who agents.Principal, address string, emit func(r agents.Reading) error) error {
	var told agents.Reading
	first := true
	err := s.Node.Watch(ctx, who, agents.WatchRequest{Points: []string{address}}, func(u agents.Update) error {
		for _, r := range u.Readings {
			if !first && r.Value == told.Value && r.Quality == told.Quality {
				continue
			}
			first, told = false, r
			if err := emit(r); err != nil {
				return err
			}
		}
		return nil
	})
	return s.notFound(ctx, who, address, err)
}

// sameMoment is by how much the time of one event differs between two updates, which have ages.
const sameMoment = 20 * time.Millisecond

// happenings calls emit with the events of a point: first, with begun, once no event can be missed
// any more, and then with each event.
func (s server) happenings(ctx context.Context, who agents.Principal, address string, emit func(begun bool, r agents.Reading) error) error {
	var last time.Time
	first := true
	err := s.Node.Watch(ctx, who, agents.WatchRequest{Points: []string{address}}, func(u agents.Update) error {
		now := time.Now()
		for _, r := range u.Readings {
			if r.Value.IsZero() {
				continue
			}
			at := now.Add(-time.Duration(r.Age * float64(time.Second)))
			// A later snapshot, for another permission, has the last event again.
			before := first || u.Offer && at.Sub(last) < sameMoment
			last = at
			if !before {
				if err := emit(false, r); err != nil {
					return err
				}
			}
		}
		if first {
			first = false
			return emit(true, agents.Reading{})
		}
		return nil
	})
	return s.notFound(ctx, who, address, err)
}

// wantsEvents reports whether a request asks for server-sent events; otherwise it polls.
func wantsEvents(c *adapter.Call) bool {
	return strings.Contains(c.Request.Header.Get("Accept"), "text/event-stream")
}

// observe tells the values of a property (observeproperty).
func (s server) observe(ctx context.Context, c *adapter.Call) (any, error) {
	address, err := addressOf(subjectOf(c.Request), c.Request.PathValue("name"))
	if err != nil {
		return nil, err
	}
	if wantsEvents(c) {
		return s.Stream(ctx, c, func(ctx context.Context, send func(string, any) error) error {
			return s.changes(ctx, c.Who, address, func(r agents.Reading) error {
				if isKnown(r) {
					return send("", r.Value)
				}
				return send(notGood, quality{r.Quality, r.Why})
			})
		})
	}
	return s.poll(ctx, c, func(ctx context.Context, answer func(any) error) error {
		first := true
		return s.changes(ctx, c.Who, address, func(r agents.Reading) error {
			if first || !isKnown(r) {
				first = false
				return nil
			}
			return answer(r.Value)
		})
	})
}

// begun is the first event of a subscription.
const begun = "subscribed"

// subscribe tells the events of a point (subscribeevent).
func (s server) subscribe(ctx context.Context, c *adapter.Call) (any, error) {
	address, err := addressOf(subjectOf(c.Request), c.Request.PathValue("name"))
	if err != nil {
		return nil, err
	}
	if wantsEvents(c) {
		return s.Stream(ctx, c, func(ctx context.Context, send func(string, any) error) error {
			return s.happenings(ctx, c.Who, address, func(first bool, r agents.Reading) error {
				if first {
					return send(begun, struct{}{})
				}
				return send("", r.Value)
			})
		})
	}
	return s.poll(ctx, c, func(ctx context.Context, answer func(any) error) error {
		return s.happenings(ctx, c.Who, address, func(first bool, r agents.Reading) error {
			if first {
				return nil
			}
			return answer(r.Value)
		})
	})
}

// poll answers a request of long polling with the first value of run. After maxPoll without a
// value, and at the site's end, it answers with nothing. A HEAD request is answered at once.
func (s server) poll(ctx context.Context, c *adapter.Call, run func(ctx context.Context, answer func(any) error) error) (any, error) {
	if c.Request.Method == "HEAD" {
		return noContent, nil
	}
	polling, cancel := context.WithTimeout(ctx, maxPoll)
	defer cancel()
	defer context.AfterFunc(s.Ending, cancel)()
	var value any
	errEnough := errors.New("the poll has its value")
	err := run(polling, func(v any) error { value = v; return errEnough })
	switch {
	case err == errEnough:
		return value, nil
	case polling.Err() != nil && ctx.Err() == nil:
		return noContent, nil
	}
	return nil, err
}
