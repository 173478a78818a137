package group

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/notify"
	"agentsite/agents/op"
)

// Member is a site by the name that it has in the group.
type Member struct {
	Name string // matches the name pattern, and no other member has it
	Site agents.Site
}

// Group is several sites as one. It is safe for concurrent use. The principals that ask it
// are not passed on: each member makes its own principal of the key that it is called with.
type Group struct {
	// RetryMin and RetryMax bound the pauses between two tries of a site that is away; 250 ms and
	// a minute when 0. They are set before Run.
	RetryMin, RetryMax time.Duration

	members  func() []Member
	watchers notify.Watchers
	changed  chan struct{} // buffered: members came or went

	listing sync.Mutex // held while members is called

	mu       sync.Mutex
	sites    map[string]*member
	offer    *agents.Offer
	watching int // how many watch values
}

var _ agents.Site = (*Group)(nil)

// New makes a group of the sites that members returns. It is called at each request and
// must be quick.
func New(members func() []Member) *Group {
	return &Group{members: members, changed: make(chan struct{}, 1), sites: make(map[string]*member), offer: new(agents.Offer)}
}

// Run stays connected to the sites until ctx ends.
func (g *Group) Run(ctx context.Context) {
	g.list()
	RunEach(ctx, g.all, g.changed, func(ctx context.Context, m *member) { m.run(ctx) })
}

// RunEach calls run for each of all at a time, until it is not among them any more or ctx ends. It
// asks all again after each changed, and returns when every run has.
func RunEach[T comparable](ctx context.Context, all func() []T, changed <-chan struct{}, run func(context.Context, T)) {
	var ending sync.WaitGroup
	defer ending.Wait()
	running := make(map[T]context.CancelFunc)
	for {
		now := all()
		for one, stop := range running {
			if !slices.Contains(now, one) {
				stop()
				delete(running, one)
			}
		}
		for _, one := range now {
			if running[one] == nil {
				its, stop := context.WithCancel(ctx)
				running[one] = stop
				ending.Go(func() { run(its, one) })
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// Settle waits until each site has been tried once, or ctx ends. Run has to run.
func (g *Group) Settle(ctx context.Context) {
	g.list()
	for _, m := range g.all() {
		g.mu.Lock()
		known, tried := m.offer != nil || m.why != nil, m.tried
		g.mu.Unlock()
		if known {
			continue
		}
		select {
		case <-tried:
		case <-ctx.Done():
		}
	}
}

// Update takes over which sites there are now, as each request does.
func (g *Group) Update() { g.list() }

// Away returns why a site does not answer now, and nil where it may.
func (g *Group) Away(site string) error {
	m, err := g.named(site)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.offer != nil {
		return nil
	}
	return m.awayLocked(nil)
}

// Retry has a site that is away be tried now. An unknown site is none.
func (g *Group) Retry(site string) {
	if m, err := g.named(site); err == nil {
		m.tryNow()
	}
}

// Renew watches a site anew, or tries it now if it is away: the permissions there have
// changed. An unknown site is none.
func (g *Group) Renew(site string) {
	g.Retry(site)
	if m, err := g.named(site); err == nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		m.renew(errRenewed)
	}
}

// list takes over which sites there are.
func (g *Group) list() {
	g.listing.Lock()
	defer g.listing.Unlock()
	now := g.members()
	g.mu.Lock()
	defer g.mu.Unlock()
	sites := make(map[string]*member, len(now))
	for _, of := range now {
		m := g.sites[of.Name]
		if m == nil || m.site != of.Site {
			before := m
			if m = newMember(g, of); before != nil {
				m.had, m.agents = before.had, before.agents
			}
		}
		sites[of.Name] = m
	}
	if maps.Equal(sites, g.sites) {
		return
	}
	g.sites = sites
	g.offerChanged()
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

// all returns the sites in the order of their names.
func (g *Group) all() []*member {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ordered()
}

// ordered is all with the lock held.
func (g *Group) ordered() []*member {
	var all []*member
	for _, name := range slices.Sorted(maps.Keys(g.sites)) {
		all = append(all, g.sites[name])
	}
	return all
}

// named returns a site.
func (g *Group) named(name string) (*member, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m := g.sites[name]; m != nil {
		return m, nil
	}
	return nil, agents.CheckName("site", name, slices.Sorted(maps.Keys(g.sites)))
}

// Offer returns what some site offers. Where all sites that offered an operation are away,
// it has the points that they had: the callers are told that these are away.
func (g *Group) Offer(context.Context, agents.Principal) (*agents.Offer, error) {
	g.list()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.offer, nil
}

// offerChanged makes the offer anew, and tells the watchers. The lock is held: whoever sees what a
// site offers sees it in the group's offer, too.
func (g *Group) offerChanged() {
	g.offer = joined(g.ordered())
	g.watchers.Announce(agents.Change{Tools: true, Resources: true})
}

// joined returns the offer of sites together. The lock is held.
func joined(all []*member) *agents.Offer {
	o := &agents.Offer{Sites: make(map[agents.Operation][]string)}
	for _, t := range op.Tools {
		switch {
		case t.Points != nil:
			*t.Points(o) = joinedPoints(all, t.Points)
		case t.Whole != nil:
			for _, m := range all {
				if m.had == nil || *t.Whole(m.had) { // nobody knows what a site offers that was never reached
					o.Sites[t.Of.Operation] = append(o.Sites[t.Of.Operation], m.name)
					*t.Whole(o) = true
				}
			}
		}
	}
	return o
}

// joinedPoints returns one list of the offers of sites together, or of those that they had, where
// there are none.
func joinedPoints(all []*member, list func(*agents.Offer) *[]string) (now []string) {
	var had []string
	for _, m := range all {
		if m.offer != nil {
			now = append(now, m.prefixed(*list(m.offer))...)
		}
		if m.had != nil {
			had = append(had, m.prefixed(*list(m.had))...)
		}
	}
	if len(now) == 0 {
		return had
	}
	return now
}

// wholes are the operations on a whole site.
var wholes = func() map[agents.Operation]func(*agents.Offer) *bool {
	all := make(map[agents.Operation]func(*agents.Offer) *bool)
	for _, t := range op.Tools {
		if t.Whole != nil {
			all[t.Of.Operation] = t.Whole
		}
	}
	return all
}()

// offered returns the points that an offer has for a call.
func offered(o *agents.Offer, c call) []string {
	if c.op == agents.OpWhy {
		return o.Read
	}
	for _, t := range op.Tools {
		if t.Of.Operation == c.op && t.Points != nil && t.Value.Type() == c.value.Type() {
			return *t.Points(o)
		}
	}
	return nil
}
