package group

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"
)

const (
	// A site that is away is tried each time that it has been away for a tenth longer,
	// within these bounds, and whenever somebody calls it.
	shortestPause = 250 * time.Millisecond
	longestPause  = time.Minute
	// maxRunning bounds the calls to one site that run at a time; an answer may take 4 MiB.
	maxRunning = 8
	// offerPatience is how long a site may take to say what it offers.
	offerPatience = 10 * time.Second
	// pollEvery is how often a site is asked that has no subscription left for us.
	pollEvery = 10 * time.Second
	// How much a site may tell at once, and each second. An offer counts as offerCost.
	toldAtOnce, toldPerSecond, offerCost = 2000, 500, 100
)

var (
	errRenewed      = errors.New("more or less is watched now")
	errEnded        = errors.New("it has ended")
	errSilent       = errors.New("it does not say what it offers")
	errTellsTooMuch = errors.New("it tells more than a site has to tell")
)

// member is a site with what is known of it.
type member struct {
	group   *Group
	name    string
	site    agents.Site
	retry   chan struct{} // buffered: try it now
	running chan struct{} // a place for each call

	// With group.mu.
	offer  *agents.Offer           // nil while it is away
	had    *agents.Offer           // the last
	agents []task.Agent            // which take tasks, as it named them last
	lost   time.Time               // since when it is away; zero before it was reached
	why    error                   // why it is away; nil before it was tried
	tried  chan struct{}           // closed when it was tried once more
	renew  context.CancelCauseFunc // ends the watch that is under way; another one follows
	values *values                 // nil while no values are watched, and before they are known
}

func newMember(g *Group, of Member) *member {
	return &member{
		group: g, name: of.Name, site: of.Site, retry: make(chan struct{}, 1), running: make(chan struct{}, maxRunning),
		tried: make(chan struct{}), renew: func(error) {},
	}
}

// prefixed returns addresses of the site as they are in the group.
func (m *member) prefixed(all []string) []string {
	out := make([]string, len(all))
	for i, a := range all {
		out[i] = m.name + "/" + a
	}
	return out
}

// run stays connected to the site until ctx ends.
func (m *member) run(ctx context.Context) {
	away := time.Now() // since when, as far as pauses go
	for ctx.Err() == nil {
		stayed, err := m.connect(ctx)
		// A site that stays for long is tried again soon, and one that goes as soon as it
		// has come less and less often.
		now := time.Now()
		if away = away.Add(20 * stayed); away.After(now) {
			away = now
		}
		m.leave(err)
		pause := min(max(now.Sub(away)/10, cmp.Or(m.group.RetryMin, shortestPause)), cmp.Or(m.group.RetryMax, longestPause))
		select {
		case <-ctx.Done():
		case <-m.retry:
		case <-time.After(pause):
		}
	}
}

// connect watches the site until it is gone, again each time that values begin or cease to
// be wanted. stayed is how long it was there.
func (m *member) connect(ctx context.Context) (stayed time.Duration, err error) {
	var came time.Time
	for {
		watching, end := context.WithCancelCause(ctx)
		wanted := m.begin(end)
		err = m.watch(watching, wanted, func() {
			if came.IsZero() {
				came = time.Now()
			}
		})
		cause := context.Cause(watching)
		end(nil)
		if cause == errRenewed {
			continue
		}
		if !came.IsZero() {
			stayed = time.Since(came)
		}
		return stayed, err
	}
}

// begin reports whether values are wanted, and has renew end the watch when that changes.
func (m *member) begin(renew context.CancelCauseFunc) (wanted bool) {
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	m.renew = renew
	if wanted = m.group.watching > 0; !wanted {
		m.values = nil
	}
	return wanted
}

// watch takes what the site tells until it is gone, and calls came when it has said what it
// offers.
func (m *member) watch(ctx context.Context, wanted bool, came func()) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	late := time.AfterFunc(offerPatience, func() { end(errSilent) })
	defer late.Stop()
	begun, told := time.Now(), 0
	err := m.listen(ctx, wanted, func(u agents.Update) error {
		if told += 1 + len(u.Readings) + len(u.Approvals) + len(u.Stops) + len(u.Missed); u.Offer {
			told += offerCost
		}
		if told > toldAtOnce+toldPerSecond*int(time.Since(begun)/time.Second) {
			return errTellsTooMuch
		}
		var offered *agents.Offer
		var taking []task.Agent
		if u.Offer {
			asking, cancel := context.WithTimeout(ctx, offerPatience)
			defer cancel()
			o, err := m.site.Offer(asking, agents.Principal{})
			if err != nil {
				return err
			}
			late.Stop()
			came()
			offered, taking = cleanOffer(o), m.askAgents(asking)
		}
		if wanted { // after the offer: leave takes back only what a site told that was there
			m.take(u)
		}
		if offered != nil {
			m.come(offered, taking)
		}
		return nil
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// listen passes on what the site tells. One that refuses its values is watched without them
// until it offers something else, and one that has no subscription left for us is asked now
// and then instead.
func (m *member) listen(ctx context.Context, wanted bool, emit func(agents.Update) error) error {
	for refused := false; ; {
		first := true
		err := m.site.Watch(ctx, agents.Principal{}, agents.WatchRequest{OfferOnly: !wanted || refused}, func(u agents.Update) error {
			if refused && u.Offer {
				return errRenewed
			}
			u.Offer, first = u.Offer || first, false // the first is a snapshot, too
			return emit(u)
		})
		kind, answered := kindOf(err)
		switch {
		case err == nil:
			return errEnded
		case err == errRenewed:
			refused = false
			continue
		case answered && kind != device.Busy && wanted && !refused:
			refused = true
			continue
		case kind != device.Busy:
			return err
		}
		u := agents.Update{Offer: true}
		if wanted && !refused {
			now, err := m.site.Read(ctx, agents.Principal{}, agents.ReadRequest{})
			if err != nil {
				return err
			}
			u.Readings = now.Readings
		}
		if err := emit(u); err != nil {
			return err
		}
		if err := device.Sleep(ctx, pollEvery); err != nil {
			return err
		}
	}
}

// come records what the site offers now, and which of its agents take tasks.
func (m *member) come(o *agents.Offer, taking []task.Agent) {
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	same := m.offer != nil && reflect.DeepEqual(m.offer, o) && reflect.DeepEqual(m.agents, taking)
	m.offer, m.had, m.agents, m.why = o, o, taking, nil
	if !same {
		m.group.offerChanged()
	}
	m.noteTry()
}

// leave records that the site is away.
func (m *member) leave(err error) {
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	was := m.offer != nil
	m.offer, m.why, m.values = nil, err, nil
	if was {
		m.lost = time.Now()
		m.group.offerChanged()
	}
	m.noteTry()
}

// noteTry wakes those who wait for the site to be tried. The lock is held.
func (m *member) noteTry() {
	close(m.tried)
	m.tried = make(chan struct{})
}

// doubt has the site be watched anew after a call that it has not answered: it may be gone
// without anything having said so.
func (m *member) doubt(err error) {
	if _, answered := kindOf(err); answered || errors.Is(err, context.Canceled) {
		return
	}
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	m.renew(errRenewed)
}

// reached returns what the site offers. One that is away is tried at once, and waited for
// until ctx ends; then the error says that it is away.
func (m *member) reached(ctx context.Context) (*agents.Offer, error) {
	m.group.mu.Lock()
	o, tried := m.offer, m.tried
	m.group.mu.Unlock()
	if o != nil {
		return o, nil
	}
	m.tryNow()
	select {
	case <-tried:
	case <-ctx.Done():
	}
	m.group.mu.Lock()
	o = m.offer
	m.group.mu.Unlock()
	if o == nil {
		return nil, m.away(nil)
	}
	return o, nil
}

// tryNow ends the pause before the next try.
func (m *member) tryNow() {
	select {
	case m.retry <- struct{}{}:
	default: // it is about to be tried
	}
}

// last returns what the site offered last, nil where it was never reached.
func (m *member) last() *agents.Offer {
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	return m.had
}
