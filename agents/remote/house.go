package remote

import (
	"context"
	"maps"
	"slices"
	"sync"

	"agentsite/agents"
)

// House is other sites as one agent. It is safe for concurrent use.
type House struct {
	texts    map[string]agents.Tool
	members  func() []Member
	announce func(agents.Change)
	changed  chan struct{} // buffered: sites came or went

	looking sync.Mutex // held while members are asked

	mu      sync.Mutex
	peers   map[string]*peer
	tools   []agents.Tool
	watched map[string]int // by how many, each point here
}

var (
	_ agents.Agent    = (*House)(nil)
	_ agents.Library  = (*House)(nil)
	_ agents.Follower = (*House)(nil)
)

// New makes a house. Verbs are the tools that a site can offer, with the texts and the
// schemas that callers here are to see. Members says which sites there are, and is asked
// whenever somebody asks something, so it must be quick; announce is told of changes.
func New(verbs []agents.Tool, members func() []Member, announce func(agents.Change)) *House {
	h := &House{
		texts: make(map[string]agents.Tool), members: members, announce: announce,
		changed: make(chan struct{}, 1), peers: make(map[string]*peer), watched: make(map[string]int),
	}
	for _, t := range verbs {
		h.texts[t.Name] = t
	}
	return h
}

// Run keeps in touch with the sites until ctx ends.
func (h *House) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	running := make(map[*peer]context.CancelFunc)
	for h.look(); ; {
		now := h.all()
		for p, stop := range running {
			if !slices.Contains(now, p) {
				stop()
				delete(running, p)
			}
		}
		for _, p := range now {
			if running[p] == nil {
				its, stop := context.WithCancel(ctx)
				running[p] = stop
				all.Go(func() { p.run(its) })
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-h.changed:
		}
	}
}

// Settle waits until every site was looked for once, or ctx ends. Run has to run.
func (h *House) Settle(ctx context.Context) {
	h.look()
	for _, p := range h.all() {
		h.mu.Lock()
		known, tried := p.offer != nil || p.why != nil, p.tried
		h.mu.Unlock()
		if known {
			continue
		}
		select {
		case <-tried:
		case <-ctx.Done():
		}
	}
}

// look asks which sites there are.
func (h *House) look() {
	h.looking.Lock()
	defer h.looking.Unlock()
	now := h.members()
	h.mu.Lock()
	peers := make(map[string]*peer, len(now))
	for _, m := range now {
		p := h.peers[m.Name]
		if p == nil || p.site != m.Site {
			before := p
			if p = newPeer(h, m); before != nil {
				p.had = before.had
			}
		}
		peers[m.Name] = p
	}
	same := maps.Equal(peers, h.peers)
	h.peers = peers
	h.mu.Unlock()
	if same {
		return
	}
	select {
	case h.changed <- struct{}{}:
	default:
	}
	h.offerChanged()
}

// all are the sites in the order of their names.
func (h *House) all() []*peer {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ordered()
}

// ordered is all with the lock held.
func (h *House) ordered() []*peer {
	var all []*peer
	for _, name := range slices.Sorted(maps.Keys(h.peers)) {
		all = append(all, h.peers[name])
	}
	return all
}

// named finds a site.
func (h *House) named(name string) (*peer, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.peers[name]; p != nil {
		return p, nil
	}
	return nil, faultf("invalid", "there is no site %.60q here%s", name, choice(slices.Sorted(maps.Keys(h.peers))))
}

// offerChanged makes the tools anew.
func (h *House) offerChanged() {
	h.mu.Lock()
	h.tools = h.offered()
	h.mu.Unlock()
	h.announce(agents.Change{Tools: true, Resources: true})
}

// Tools are those that some site offers. Where all that offered one are away, it has the
// points that they had: who calls it is told that they are away.
func (h *House) Tools() []agents.Tool {
	h.look()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tools
}

// offered makes the tools of what is there. The lock is held.
func (h *House) offered() []agents.Tool {
	var all []agents.Tool
	for _, v := range verbs {
		text, known := h.texts[v.name]
		if !known {
			continue
		}
		var names, had []string
		for _, p := range h.ordered() {
			if v.arg == "" { // of a site that never was there nobody knows what it offers
				if _, ok := p.had[v.name]; ok || p.had == nil {
					names = append(names, p.name)
				}
				continue
			}
			for _, address := range p.offer[v.name] {
				names = append(names, p.name+"/"+address)
			}
			for _, address := range p.had[v.name] {
				had = append(had, p.name+"/"+address)
			}
		}
		if len(names) == 0 {
			names = had
		}
		if len(names) > 0 {
			all = append(all, v.tool(text, names))
		}
	}
	return all
}
