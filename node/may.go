package node

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"agentsite/agents"
	"agentsite/device"
)

// Access knows who may do what. Its errors are faults, and only Take blocks.
type Access interface {
	// Bearer makes a principal of a token, Peer of a peer ID that a handshake proved.
	Bearer(token string) (agents.Principal, error)
	Peer(id string) (agents.Principal, error)
	// May decides and charges nothing. Take decides just before the call is made, and
	// charges the permission that decided, unless that has an owner confirm the call and
	// nobody did: then the limits say so, and nothing is charged.
	May(agents.Principal, agents.Ask) (agents.Limits, error)
	Take(p agents.Principal, ask agents.Ask, confirmed bool) (agents.Limits, error)
	// Owns reports whether a principal's ID is that of a key which owns the site now.
	Owns(who string) bool
	// Sees reports whether a principal has a permission, whatever limits leave of it.
	Sees(agents.Principal, agents.Ask) bool
	// Holds reports whether a principal may go on holding an output that it moved: whether
	// the permission that decided about that still counts.
	Holds(who, output string) bool
	// Standing is another when what Sees reports may have changed, and 0 for who has no
	// permission.
	Standing(agents.Principal) uint64
	// Root is the ID of the one from whose grant of an owner's a principal has its
	// permission: its own, or that of who passed it on.
	Root(agents.Principal) string
}

// Obey has a decide who may do what, but for the principals that need no grant. It comes
// before anybody is heard; without it everybody who is known may everything.
func (n *Node) Obey(a Access) { n.access = a }

// free reports whether p needs no grant.
func (n *Node) free(p agents.Principal) bool {
	return n.access == nil || p == localAgent || p == tokenHeld || n.owns(p)
}

// owns reports whether p is an owner still: p may be of when a session began.
func (n *Node) owns(p agents.Principal) bool {
	return p.Owner && (n.access == nil || p == localOwner || n.access.Owns(p.ID))
}

// May reports why p may not do what it asks, or not without an owner's confirmation, and
// counts nothing.
func (n *Node) May(p agents.Principal, ask agents.Ask) error {
	if err := known(p); err != nil {
		return err
	}
	limits, err := n.may(p, ask)
	if err == nil && limits.Confirm && !n.owns(p) {
		err = errConfirm
	}
	return err
}

func (n *Node) may(p agents.Principal, ask agents.Ask) (agents.Limits, error) {
	if n.free(p) {
		return agents.Limits{}, nil
	}
	return n.access.May(p, ask)
}

func (n *Node) take(p agents.Principal, ask agents.Ask, confirmed bool) (agents.Limits, error) {
	if n.free(p) {
		return agents.Limits{}, nil
	}
	return n.access.Take(p, ask, confirmed)
}

// mayHold reports whether p may go on holding what it moved.
func (n *Node) mayHold(p agents.Principal, outputs []string) bool {
	return n.free(p) || !slices.ContainsFunc(outputs, func(output string) bool { return !n.access.Holds(p.ID, output) })
}

var errConfirm = device.Faultf(device.Denied, "an owner has to confirm this reading: call a tool for it, which asks the owner")

var errRevoked = device.Faultf(device.Denied, "your permission ended, or was revoked")

// maxParts bounds how many parts are kept: more than there are who have a permission at a
// time.
const maxParts = 256

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
	if n.parts.of == nil || len(n.parts.of) >= maxParts { // of those that have gone nobody says so
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

// watchWhile is hub.watch for as long as p may see all of it.
func (n *Node) watchWhile(ctx context.Context, p agents.Principal, which agents.Change, uris []string, emit func(agents.Change) error) error {
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
	if n.free(w.who) {
		return true
	}
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
