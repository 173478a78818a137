package node

import (
	"context"
	"log/slog"
	"sync"

	"agentsite/agents"
	"agentsite/device"
)

// Access knows who may do what. Its errors are faults, and only Take blocks.
type Access interface {
	// Bearer makes a principal of a token, Peer of a peer ID that a handshake proved.
	Bearer(token string) (agents.Principal, error)
	Peer(id string) (agents.Principal, error)
	// May decides and counts nothing; Take decides just before the call is made, and
	// counts it.
	May(agents.Principal, agents.Ask) (agents.Limits, error)
	Take(agents.Principal, agents.Ask) (agents.Limits, error)
	// Sees reports whether a principal has a permission, whatever limits leave of it.
	Sees(agents.Principal, agents.Ask) bool
	// Standing is another when what Sees reports may have changed, and 0 for who has no
	// permission.
	Standing(agents.Principal) uint64
}

// Obey has a decide who may do what, but for the principals that need no grant. It comes
// before anybody is heard; without it everybody who is known may everything.
func (n *Node) Obey(a Access) { n.access = a }

// free reports whether p needs no grant.
func (n *Node) free(p agents.Principal) bool {
	return n.access == nil || p.Owner || p == localAgent || p == tokenHeld
}

// May reports why p may not do what it asks, and counts nothing.
func (n *Node) May(p agents.Principal, ask agents.Ask) error {
	if err := known(p); err != nil {
		return err
	}
	_, err := n.may(p, ask)
	return err
}

func (n *Node) may(p agents.Principal, ask agents.Ask) (agents.Limits, error) {
	if n.free(p) {
		return agents.Limits{}, nil
	}
	return n.access.May(p, ask)
}

func (n *Node) take(p agents.Principal, ask agents.Ask) (agents.Limits, error) {
	if n.free(p) {
		return agents.Limits{}, nil
	}
	return n.access.Take(p, ask)
}

func (n *Node) sees(p agents.Principal, ask agents.Ask) bool {
	return n.free(p) || n.access.Sees(p, ask)
}

var errRevoked = device.Faultf(device.Denied, "your permission was revoked")

// parts are the agents as those have them who see only a part.
type parts struct {
	mu      sync.Mutex
	of      map[agents.Principal]part
	watches map[*partWatch]struct{}
}

type part struct {
	standing uint64
	agents   []agents.Agent
}

// forget has every part made anew.
func (all *parts) forget() {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.of = nil
}

// seen are the agents as p has them.
func (n *Node) seen(p agents.Principal) []agents.Agent {
	if n.free(p) {
		return *n.agents.Load()
	}
	standing := n.access.Standing(p)
	n.parts.mu.Lock()
	defer n.parts.mu.Unlock()
	if have, ok := n.parts.of[p]; ok && have.standing == standing {
		return have.agents
	}
	made := part{standing, n.partOf(p)}
	if n.parts.of == nil {
		n.parts.of = make(map[agents.Principal]part)
	}
	n.parts.of[p] = made
	return made.agents
}

// partOf makes the agents as p has them.
func (n *Node) partOf(p agents.Principal) []agents.Agent {
	sees := func(ask agents.Ask) bool { return n.access.Sees(p, ask) }
	var part []agents.Agent
	for _, a := range *n.agents.Load() {
		if v, ok := a.(agents.Viewer); ok {
			a, err := v.View(sees)
			if err != nil {
				slog.Error("an agent cannot be shown in part, and so is not shown", "to", p.ID, "err", err)
				continue
			}
			part = append(part, a)
			continue
		}
		part = append(part, toolsOf(a, sees))
	}
	return part
}

// bare is an agent of which no more is seen than some of its tools.
type bare struct {
	agents.Door
	tools []agents.Tool
}

func (b bare) Tools() []agents.Tool { return b.tools }

// Plan is the agent's own.
func (b bare) Plan(p agents.Principal, c agents.Call) (*agents.Plan, error) {
	if planner, ok := b.Door.(agents.Planner); ok {
		return planner.Plan(p, c)
	}
	return nil, nil
}

func toolsOf(a agents.Agent, sees func(agents.Ask) bool) bare {
	b := bare{Door: a}
	for _, t := range a.Tools() {
		if sees(agents.Ask{Tool: t.Name}) {
			b.tools = append(b.tools, t)
		}
	}
	return b
}

// partWatch is a watch that ends when its principal may not see all of it any more.
type partWatch struct {
	who  agents.Principal
	asks []agents.Ask // of its resources
	end  context.CancelCauseFunc
}

// watchPart is hub.watch for who sees only a part.
func (n *Node) watchPart(ctx context.Context, p agents.Principal, which agents.Change, uris []string, emit func(agents.Change) error) error {
	watching, end := context.WithCancelCause(ctx)
	defer end(nil)
	w := &partWatch{who: p, end: end}
	for _, uri := range uris {
		for _, a := range *n.agents.Load() {
			if v, ok := a.(agents.Viewer); ok {
				w.asks = append(w.asks, v.Reads(uri))
			}
		}
	}
	n.parts.mu.Lock()
	if n.parts.watches == nil {
		n.parts.watches = make(map[*partWatch]struct{})
	}
	n.parts.watches[w] = struct{}{}
	n.parts.mu.Unlock()
	defer func() {
		n.parts.mu.Lock()
		delete(n.parts.watches, w)
		n.parts.mu.Unlock()
	}()
	err := n.hub.watch(watching, which, uris, func(c agents.Change) error {
		if !n.holds(w) { // it ends with time, too
			return errRevoked
		}
		return emit(c)
	})
	if ctx.Err() == nil && watching.Err() != nil {
		return context.Cause(watching)
	}
	return err
}

// holds reports whether all of a watch may go on.
func (n *Node) holds(w *partWatch) bool {
	if n.access.Standing(w.who) == 0 {
		return false
	}
	for _, ask := range w.asks {
		if !n.access.Sees(w.who, ask) {
			return false
		}
	}
	return true
}

// Recheck ends what principals hold here that they may not have any more, and tells
// the others that what they see may have changed. It is for the wiring, whenever
// permissions came or went.
func (n *Node) Recheck() {
	n.parts.mu.Lock()
	for w := range n.parts.watches {
		if !n.holds(w) {
			w.end(errRevoked)
		}
	}
	n.parts.mu.Unlock()
	n.parts.forget()
	n.hub.Announce(agents.Change{Tools: true, Prompts: true, Resources: true})
}
