package remote

import (
	"context"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/group"
	"agentsite/agents/task"
	"agentsite/device"
)

const (
	// A site that is away is tried each time that it has been away for a tenth longer, within these
	// bounds. No call makes it be tried sooner.
	retryMin = time.Second
	retryMax = 5 * time.Minute
	// startTimeout is how long a connection waits for the site's own agent to run.
	startTimeout = time.Second
	// maxSays is the maximum length of the error of a connection, in bytes.
	maxSays = 200
)

// Open makes the site that a link is to, and returns it with the ID that the site knows the caller
// by. It dials nothing: the site is dialled by its Watch, each time anew.
type Open func(agent.Link) (site Site, self string, err error)

// Sites are the other sites that a site's agents ask. It is safe for concurrent use.
type Sites struct {
	open    Open
	changed chan struct{} // buffered: views came or went

	mu      sync.Mutex
	views   map[string]*View   // by the agent's principal
	running map[string]*Remote // by name
	wake    chan struct{}      // closed when running changes
}

// NewSites makes one without links.
func NewSites(open Open) *Sites {
	return &Sites{
		open: open, changed: make(chan struct{}, 1), wake: make(chan struct{}),
		views: make(map[string]*View), running: make(map[string]*Remote),
	}
}

// Of returns the other sites as an agent has them, by its principal; nil for none.
func (s *Sites) Of(principal string) *View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.views[principal]
}

// Configure replaces the links. One that is as it was stays connected.
func (s *Sites) Configure(all []agent.Link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	by := make(map[string][]*member)
	for _, l := range all {
		by[l.Agent] = append(by[l.Agent], s.member(l))
	}
	for principal := range s.views {
		if by[principal] == nil {
			delete(s.views, principal)
		}
	}
	for principal, members := range by {
		v := s.views[principal]
		if v == nil {
			v = newView(principal)
			s.views[principal] = v
		}
		v.replace(members)
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// member returns the connection of a link, and makes it where there is none. The lock is held.
func (s *Sites) member(l agent.Link) *member {
	if v := s.views[l.Agent]; v != nil {
		for _, m := range v.all() {
			if reflect.DeepEqual(m.link, l) {
				return m
			}
		}
	}
	site, self, err := s.open(l)
	if err != nil {
		slog.Error("another site cannot be asked", "site", l.Site, "agent", l.Agent, "err", err)
		site = WithoutPoints(unopened{err: err})
	}
	m := &member{site: site, sites: s, link: l, self: self}
	if err == nil {
		m.tasks = site.Tasks()
	}
	return m
}

// Run stays connected to the sites until ctx ends.
func (s *Sites) Run(ctx context.Context) {
	group.RunEach(ctx, func() []*View {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.Collect(maps.Values(s.views))
	}, s.changed, func(ctx context.Context, v *View) { v.group.Run(ctx) })
}

// start lets a site be asked until the function that it returns is called.
func (s *Sites) start(name string, r *Remote) (stop func()) {
	s.set(name, r)
	return func() { s.set(name, nil) }
}

func (s *Sites) set(name string, r *Remote) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[name] = r; r == nil {
		delete(s.running, name)
	}
	close(s.wake)
	s.wake = make(chan struct{})
	for _, v := range s.views {
		v.group.Retry(name)
	}
}

// Renew retries the connections to the sites with these keys now, or asks again with the current
// grants.
func (s *Sites) Renew(is func(peer string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.views {
		for _, m := range v.all() {
			if is(m.link.Peer) {
				v.group.Renew(m.link.Site)
			}
		}
	}
}

// runs reports whether a site may be asked, and returns a channel that closes when that may change.
func (s *Sites) runs(name string) (bool, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[name] != nil, s.wake
}

// report returns the agents that ask a site, and why some of them do not reach it.
func (s *Sites) report(r *Remote) (users, faults []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.views {
		for _, m := range v.all() {
			if s.running[m.link.Site] != r {
				continue
			}
			users = append(users, m.link.Agent)
			if err := v.Away(m.link.Site); err != nil {
				says := device.AsFault(err).Msg
				if why := m.lastError(); why != "" {
					says = m.link.Site + " is not reached: " + why
				}
				faults = append(faults, m.link.Agent+": "+says)
			}
		}
	}
	return users, faults
}

// member is one site as one agent has it. Its Watch is the connection; other calls are the site's.
type member struct {
	site  Site
	tasks task.Host // nil where the site could not be opened
	sites *Sites
	link  agent.Link
	self  string

	mu   sync.Mutex
	last error // of the connection; nil while it stands
}

var errPaused = device.Faultf(device.Offline, "it is paused here")

// Watch is the connection to the site, while that may be asked.
func (m *member) Watch(
	ctx context.Context, p agents.Principal, r agents.WatchRequest, emit func(agents.Update) error,
) (err error) {
	defer func() {
		if ctx.Err() == nil {
			m.note(err)
		}
	}()
	watching, end := context.WithCancelCause(ctx)
	defer end(nil)
	runs, changed := m.sites.runs(m.link.Site)
	if !runs { // all agents begin at once
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(startTimeout):
		case <-changed:
		}
		if runs, changed = m.sites.runs(m.link.Site); !runs {
			return errPaused
		}
	}
	ended := make(chan struct{})
	defer func() { end(nil); <-ended }()
	go func() {
		defer close(ended)
		for runs {
			select {
			case <-watching.Done():
				return
			case <-changed:
				runs, changed = m.sites.runs(m.link.Site)
			}
		}
		end(errPaused)
	}()
	err = m.site.Watch(watching, p, r, func(u agents.Update) error {
		m.note(nil)
		return emit(u)
	})
	if ctx.Err() == nil && watching.Err() != nil {
		return context.Cause(watching)
	}
	return err
}

func (m *member) note(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = err
}

// lastError returns why the connection failed, in characters that people read: it may hold text
// of the other site.
func (m *member) lastError() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil {
		return ""
	}
	text := m.last.Error()
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text[:min(len(text), maxSays)], "?"))
}

// newGroup makes the group of a view, whose sites are tried as seldom as this package says.
func newGroup(members func() []group.Member) *group.Group {
	g := group.New(members)
	g.RetryMin, g.RetryMax = retryMin, retryMax
	return g
}
