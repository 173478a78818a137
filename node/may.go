package node

import (
	"context"
	"slices"
	"sync"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/device/guard"
)

// Access decides about permissions. Its errors are faults, and only Take blocks.
type Access interface {
	// Bearer returns the principal of a token, Peer that of a peer ID that a carrier proved, with its
	// account.
	Bearer(token string) (agents.Principal, error)
	Peer(id string) (agents.Principal, error)
	// May decides and charges nothing. Take decides just before the call is made, and charges
	// the permission that decided. If that requires an owner's confirmation, and confirmed is
	// false, Take charges nothing, and the limits say so.
	May(agents.Principal, agents.Ask) (agents.Limits, error)
	Take(p agents.Principal, ask agents.Ask, confirmed bool) (agents.Limits, error)
	// Owns reports whether a principal's ID is that of a current owner's key.
	Owns(who string) bool
	// NameOf returns the name that the owner of a principal's key goes by; "" for none.
	NameOf(who string) string
	// AgentName returns the name that another site gave its agent with a principal's key; "" for none.
	AgentName(who string) string
	// MayRenew decides about holding an output longer, by the permissions that it was moved by. It
	// charges nothing, and rates do not count.
	MayRenew(agents.Principal, agents.Ask) (agents.Limits, error)
	// CanSee reports whether a principal has a permission, regardless of limits and rates.
	CanSee(agents.Principal, agents.Ask) bool
	// MayHold reports whether a principal may keep an output that it moved away from safe: the
	// permission that decided about the move is still valid.
	MayHold(who, output string) bool
	// Widened returns the name of the token of a program that signed in, and the permission of that token
	// with what an ask needs added. It is not ok where there is nothing to add, or no such program.
	Widened(p agents.Principal, ask agents.Ask) (token, may string, ok bool)
	// Version returns a number that changes when the result of CanSee may have changed, and is
	// 0 for a principal without a permission.
	Version(agents.Principal) uint64
	// Root returns the ID of the owner's grantee from which the permission of p descends: p itself,
	// or the principal that delegated it.
	Root(agents.Principal) string
	// PassedOn reports whether a principal has a permission that another one passed on to it, also by others.
	PassedOn(from, to string) bool
}

// free reports whether p needs no permission.
func (n *Node) free(p agents.Principal) bool {
	return n.access == nil || p.Kind == principal.LocalAgent || p.Kind == principal.SiteToken || n.owns(p)
}

// owns reports whether p is an owner now: p may be from an earlier time, such as a session's
// start.
func (n *Node) owns(p agents.Principal) bool {
	return p.Owner && (n.access == nil || p.Kind == principal.Local || n.access.Owns(p.ID))
}

// May returns why p may not make a call, or not without an owner's confirmation. It charges
// nothing.
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

// mayRenew decides about holding an output longer.
func (n *Node) mayRenew(p agents.Principal, ask agents.Ask) (agents.Limits, error) {
	if n.free(p) {
		return agents.Limits{}, nil
	}
	return n.access.MayRenew(p, ask)
}

// mayHold reports whether p may keep the outputs that it moved away from safe.
func (n *Node) mayHold(p agents.Principal, outputs []string) bool {
	return n.free(p) || !slices.ContainsFunc(outputs, func(output string) bool { return !n.mayKeep(p.ID, output) })
}

var errConfirm = device.Faultf(device.Denied,
	"an owner has to confirm this: call a tool for it, which asks the owner")

var errRevoked = device.Faultf(device.Denied, "your permission ended, or was revoked")

// maxViews bounds how many views are kept: more than there are principals with a
// permission at a time.
const maxViews = 256

// views are the site and the hosted agents as principals have them that see only a part.
type views struct {
	mu      sync.Mutex
	of      map[agents.Principal]partial
	watches map[*seenWatch]struct{}
}

// partial caches the view of one principal for a version of its permissions.
type partial struct {
	version uint64
	view    *view
	hosted  []tools.Agent
}

// forget drops every view.
func (all *views) forget() {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.of = nil
}

// seenBy returns the site and the hosted agents as p has them.
func (n *Node) seenBy(p agents.Principal) (*view, []tools.Agent) {
	if n.free(p) {
		return n.site.Load().whole, *n.hosted.Load()
	}
	version := n.access.Version(p)
	n.views.mu.Lock()
	defer n.views.mu.Unlock()
	if have, ok := n.views.of[p]; ok && have.version == version {
		return have.view, have.hosted
	}
	made := n.partOf(p)
	made.version = version
	if n.views.of == nil || len(n.views.of) >= maxViews { // nobody says which of them have gone
		n.views.of = make(map[agents.Principal]partial)
	}
	n.views.of[p] = made
	return made.view, made.hosted
}

// partOf makes the site and the hosted agents as p has them.
func (n *Node) partOf(p agents.Principal) (made partial) {
	sees := func(ask agents.Ask) bool { return n.access.CanSee(p, ask) }
	made.view = newView(n.site.Load(), sees)
	if n.rank(p.ID) > 0 {
		made.view.peers = func(holder string) bool { return n.rank(holder) > 0 }
		made.view.others = func(s guard.Status) bool { return n.others(p, s) }
	}
	if p.Kind == principal.Token {
		made.view.wish = func(ask agents.Ask) bool { return n.MayWish(p, ask) == nil }
	}
	for _, a := range *n.hosted.Load() {
		made.hosted = append(made.hosted, toolsOf(a, sees))
	}
	return made
}

// bare is an agent of which no more is seen than some of its tools.
type bare struct {
	tools.Agent
	tools []tools.Tool
}

func (b bare) Tools() []tools.Tool { return b.tools }

func toolsOf(a tools.Agent, sees func(agents.Ask) bool) bare {
	b := bare{Agent: a}
	for _, t := range a.Tools() {
		if sees(agents.Ask{Tool: t.Name}) {
			b.tools = append(b.tools, t)
		}
	}
	return b
}

// seenWatch is a watch that ends when its principal may not see all of it any more.
type seenWatch struct {
	who  agents.Principal
	asks []agents.Ask
	end  context.CancelCauseFunc
}

// whileSeen runs do while p has the permission for all asks. do calls seen before each message,
// because a permission can also expire.
func (n *Node) whileSeen(ctx context.Context, p agents.Principal, asks []agents.Ask,
	do func(ctx context.Context, seen func() error) error) error {
	watching, end := context.WithCancelCause(ctx)
	defer end(nil)
	w := &seenWatch{who: p, asks: asks, end: end}
	n.views.mu.Lock()
	if n.views.watches == nil {
		n.views.watches = make(map[*seenWatch]struct{})
	}
	n.views.watches[w] = struct{}{}
	n.views.mu.Unlock()
	defer func() {
		n.views.mu.Lock()
		delete(n.views.watches, w)
		n.views.mu.Unlock()
	}()
	err := do(watching, func() error {
		if !n.holds(w) {
			return errRevoked
		}
		return nil
	})
	if ctx.Err() == nil && watching.Err() != nil {
		return context.Cause(watching)
	}
	return err
}

// holds reports whether all of a watch may go on.
func (n *Node) holds(w *seenWatch) bool {
	if n.free(w.who) {
		return true
	}
	if n.access.Version(w.who) == 0 {
		return false
	}
	for _, ask := range w.asks {
		if !n.access.CanSee(w.who, ask) {
			return false
		}
	}
	return true
}

// Recheck ends the watches of principals that have lost the permission for them. It notifies other
// principals whose permissions have changed that their view may have changed. It is called
// whenever permissions were added or have ended.
func (n *Node) Recheck() {
	n.views.mu.Lock()
	for w := range n.views.watches {
		if !n.holds(w) {
			w.end(errRevoked)
		}
	}
	n.views.mu.Unlock()
	n.views.forget()
	n.requests.recheck()
	n.recall()
	n.hub.Announce(agents.Change{Permissions: true, Approvals: true}) // a wish may be covered now
}

// accessVersion returns a number that changes when the view of p may have changed by its
// permissions.
func (n *Node) accessVersion(p agents.Principal) uint64 {
	if n.free(p) {
		return 0
	}
	return n.access.Version(p)
}
