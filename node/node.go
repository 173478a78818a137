package node

import (
	"context"
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/agents/tools"
	"agentsite/device"
)

// Node is the single entry point to a site: it has a method for each operation, and calls
// the tools of hosted agents. All methods are safe for concurrent use, and each takes the
// principal that asks.
type Node struct {
	site      atomic.Pointer[site]
	hosted    atomic.Pointer[[]tools.Agent]
	hub       *Hub
	token     [sha256.Size]byte
	journal   Journal
	access    Access // nil for none
	views     views
	followers followers
	requests  requests
	held      [quotas]counter
	self      func(name string) bool // whether a name is this site's; nil where nobody knows
	past      chan struct{}          // places of those who read it
	agents    atomic.Pointer[map[string]Hosted]
	released  sync.Map // by output, the releaser that was last
	behalves  sync.Map // by output, behalf
	counts    counts
}

var _ agents.Site = (*Node)(nil)

// Parts are what a node is made of.
type Parts struct {
	Hub     *Hub
	Token   string                 // of the site, which a carrier's bearer is compared with
	Journal Journal                // nil if no call can move an output away from safe
	Access  Access                 // nil if every known principal may do everything
	Self    func(name string) bool // whether a name in the chain of a call is this site's; nil if nobody knows
	Tools   []tools.Agent          // the hosted agents; the first one that offers a name has it
	// ApprovalWait is the time that a call waits for an owner; less than two minutes counts as two.
	ApprovalWait time.Duration
}

// New makes a node without devices.
func New(p Parts) *Node {
	if p.Journal == nil {
		p.Journal = noJournal{}
	}
	n := &Node{
		hub: p.Hub, token: sha256.Sum256([]byte(p.Token)), journal: p.Journal, access: p.Access, self: p.Self,
		past: make(chan struct{}, 2), requests: requests{wait: max(p.ApprovalWait, approveWithin)},
	}
	n.site.Store(noSite())
	n.hosted.Store(&p.Tools)
	return n
}

// ReplaceTools replaces the hosted agents that offer tools, and tells the watchers. Calls that are under
// way end with those that they began with. It is for the wiring: no caller comes here.
func (n *Node) ReplaceTools(hosted ...tools.Agent) {
	n.hosted.Store(&hosted)
	n.views.forget()
	n.hub.Announce(agents.Change{Tools: true, Prompts: true, Resources: true})
}

// known refuses the zero principal.
func known(p agents.Principal) error {
	if p.ID == "" {
		return principal.ErrNobody
	}
	return nil
}

// Offer returns the operations and points of the site that p may use. The same pointer is the same
// offer.
func (n *Node) Offer(_ context.Context, p agents.Principal) (*agents.Offer, error) {
	if err := known(p); err != nil {
		return nil, err
	}
	v, _ := n.seenBy(p)
	return v.offer(), nil
}

// Tools lists the hosted agents' own tools that p may call.
func (n *Node) Tools(p agents.Principal) (all []tools.Tool, err error) {
	if err := known(p); err != nil {
		return nil, err
	}
	_, hosted := n.seenBy(p)
	for _, a := range hosted {
		all = append(all, a.Tools()...)
	}
	return all, nil
}

// Use charges the permission "use NAME" of p for a call that is no operation, and refuses it
// without that permission.
func (n *Node) Use(p agents.Principal, name string) error {
	if err := known(p); err != nil {
		return err
	}
	limits, err := n.take(p, agents.Ask{Tool: name}, false)
	if err == nil && limits != (agents.Limits{}) {
		err = device.Faultf(device.Denied,
			"your permission for this has limits that mean nothing here; an owner can grant one with a rate alone")
	}
	if err != nil {
		return n.refuse(Asked{Who: p.ID, Tool: name}, err)
	}
	return nil
}

// Refuse counts a call that was refused before it reached an operation, as one with
// arguments that cannot be decoded; tool names the operation.
func (n *Node) Refuse(p agents.Principal, tool string, err error) error {
	if err := known(p); err != nil {
		return err
	}
	return n.refuse(Asked{Who: p.ID, Tool: tool}, err)
}

// Notify reports changes of the offers in which, and of the resources in uris, until ctx ends. It
// calls emit from one goroutine, first with the zero Change once no change can be missed. Changes
// are coalesced for a slow watcher. It is refused, or ends, if p may not see one of the resources,
// or not any more.
func (n *Node) Notify(
	ctx context.Context, p agents.Principal, which agents.Change, uris []string, emit func(agents.Change) error,
) error {
	if err := known(p); err != nil {
		return err
	}
	var asks []agents.Ask
	for _, uri := range uris {
		address, _ := agents.Change{URI: uri}.Point()
		asks = append(asks, agents.Ask{Op: agents.OpRead, Points: []string{address}, Effect: agents.Reads})
	}
	offer, version := which, n.accessVersion(p)
	which.Permissions = offer != agents.Change{}
	return n.whileSeen(ctx, p, asks, func(ctx context.Context, seen func() error) error {
		return n.hub.watchers.Notify(ctx, which, uris, func(c agents.Change) error {
			if err := seen(); err != nil {
				return err
			}
			if c.Permissions {
				c.Permissions = false
				if now := n.accessVersion(p); now != version {
					c, version = offer, now
				} else if c == (agents.Change{}) {
					return nil
				}
			}
			return emit(c)
		})
	})
}
