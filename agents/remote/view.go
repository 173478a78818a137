package remote

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/group"
)

const (
	// settleTimeout is how long a list of points waits for sites that were not tried yet, and
	// listTimeout for the answers.
	settleTimeout = 2 * time.Second
	listTimeout   = 5 * time.Second
)

// View is other sites as one agent has them, as one Site. A call to a site that is away fails at
// once, and its points stay known. The agent's own principal stands for the key that the sites know
// it by.
type View struct {
	group     *group.Group
	principal string

	mu      sync.Mutex
	members []*member
	points  map[*member][]agents.Point // as a site told them last
}

func newView(principal string) *View {
	v := &View{principal: principal, points: make(map[*member][]agents.Point)}
	v.group = newGroup(func() []group.Member {
		var all []group.Member
		for _, m := range v.all() {
			all = append(all, group.Member{Name: m.link.Site, Site: m})
		}
		return all
	})
	return v
}

func (v *View) all() []*member {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.members
}

// replace replaces the sites.
func (v *View) replace(members []*member) {
	v.mu.Lock()
	v.members = members
	for m := range v.points {
		if !slices.Contains(members, m) {
			delete(v.points, m)
		}
	}
	v.mu.Unlock()
	v.group.Update()
}

// Points lists the points of all sites. A site that cannot be reached keeps its last list.
func (v *View) Points(ctx context.Context, p agents.Principal, r agents.SiteRequest) (out agents.PointList, err error) {
	settling, settled := context.WithTimeout(ctx, settleTimeout)
	v.group.Settle(settling)
	settled()
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	members := v.all()
	lists, faults := make([]agents.PointList, len(members)), make([]error, len(members))
	var asked sync.WaitGroup
	for i, m := range members {
		if faults[i] = v.Away(m.link.Site); faults[i] == nil {
			asked.Go(func() {
				q := r
				q.Site = m.link.Site
				lists[i], faults[i] = v.group.Points(ctx, p, q)
			})
		}
	}
	asked.Wait()
	out.Points = []agents.Point{}
	v.mu.Lock()
	defer v.mu.Unlock()
	for i, m := range members {
		if faults[i] == nil && slices.Contains(v.members, m) {
			v.points[m] = lists[i].Points
		}
		if faults[i] != nil {
			lists[i].Points = v.points[m]
			out.Missed = append(out.Missed, agents.Missed{Site: m.link.Site, Why: faults[i].Error()})
		}
		out.Points = append(out.Points, lists[i].Points...)
	}
	return out, nil
}

// Read reads the points of the sites that are there.
func (v *View) Read(ctx context.Context, p agents.Principal, r agents.ReadRequest) (out agents.Readings, err error) {
	q := r
	q.Points = nil
	out.Readings = []agents.Reading{}
	var missed []agents.Missed
	for _, m := range v.all() {
		if err := v.Away(m.link.Site); err != nil {
			missed = append(missed, agents.Missed{Site: m.link.Site, Why: err.Error()})
		}
	}
	away := func(address string) bool {
		return slices.ContainsFunc(missed, func(m agents.Missed) bool { return m.Site == siteOf(address) })
	}
	for _, address := range r.Points {
		if !away(address) {
			q.Points = append(q.Points, address)
		}
	}
	if len(r.Points) == 0 || len(q.Points) > 0 {
		out, err = v.group.Read(ctx, p, q)
	}
	for _, m := range missed {
		if !slices.ContainsFunc(out.Missed, func(have agents.Missed) bool { return have.Site == m.Site }) {
			out.Missed = append(out.Missed, m)
		}
	}
	return out, err
}

func siteOf(address string) string {
	site, _, _ := strings.Cut(address, "/")
	return site
}

// Watch is the group's, with the agent's own principal for its key.
func (v *View) Watch(
	ctx context.Context, p agents.Principal, r agents.WatchRequest, emit func(agents.Update) error,
) error {
	return v.group.Watch(ctx, p, r, func(u agents.Update) error {
		for i := range u.Readings {
			if d := u.Readings[i].Detail; d != nil {
				its := *d
				its.Holder = v.named(u.Readings[i].Point, its.Holder)
				u.Readings[i].Detail = &its
			}
		}
		return emit(u)
	})
}

// named returns a principal of a point's site as it is called here.
func (v *View) named(address, who string) string {
	for _, m := range v.all() {
		if m.link.Site == siteOf(address) && m.self == who {
			return v.principal
		}
	}
	return who
}

func (v *View) Why(ctx context.Context, p agents.Principal, r agents.WhyRequest) (agents.Why, error) {
	if err := v.Away(siteOf(r.Point)); err != nil {
		return agents.Why{}, err
	}
	w, err := v.group.Why(ctx, p, r)
	if w.Output != nil {
		w.Output.Holder = v.named(r.Point, w.Output.Holder)
	}
	for i := range w.Changes {
		w.Changes[i].Holder, w.Changes[i].By = v.named(r.Point, w.Changes[i].Holder), v.named(r.Point, w.Changes[i].By)
	}
	return w, err
}

func (v *View) History(ctx context.Context, p agents.Principal, r agents.HistoryRequest) (agents.History, error) {
	if err := v.Away(siteOf(r.Point)); err != nil {
		return agents.History{}, err
	}
	h, err := v.group.History(ctx, p, r)
	for i := range h.Changes {
		h.Changes[i].Holder = v.named(r.Point, h.Changes[i].Holder)
	}
	return h, err
}

func (v *View) Move(ctx context.Context, p agents.Principal, r agents.MoveRequest) (agents.Output, error) {
	if err := v.Away(siteOf(r.Output)); err != nil {
		return agents.Output{}, err
	}
	return v.group.Move(ctx, p, r)
}

func (v *View) Show(ctx context.Context, p agents.Principal, r agents.ShowRequest) error {
	if err := v.Away(siteOf(r.Display)); err != nil {
		return err
	}
	return v.group.Show(ctx, p, r)
}

func (v *View) Capture(ctx context.Context, p agents.Principal, r agents.CaptureRequest) (agents.Picture, error) {
	if err := v.Away(siteOf(r.Camera)); err != nil {
		return agents.Picture{}, err
	}
	return v.group.Capture(ctx, p, r)
}

// Stop implements agents.Site.
func (v *View) Stop(
	ctx context.Context, p agents.Principal, r agents.SiteRequest,
) (agents.Answers[agents.Stopped], error) {
	return v.group.Stop(ctx, p, r)
}

// Status implements agents.Site.
func (v *View) Status(
	ctx context.Context, p agents.Principal, r agents.SiteRequest,
) (agents.Answers[agents.Status], error) {
	return v.group.Status(ctx, p, r)
}

// Offer implements agents.Site. It does not block.
func (v *View) Offer(ctx context.Context, p agents.Principal) (*agents.Offer, error) {
	return v.group.Offer(ctx, p)
}

// Away returns why a site does not answer now, and nil where it may.
func (v *View) Away(site string) error { return v.group.Away(site) }
