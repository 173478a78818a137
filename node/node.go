package node

import (
	"context"
	"crypto/sha256"
	"sync/atomic"

	"agentsite/agents"
	"agentsite/device"
)

// Node is the door to everything that its agents offer. All methods are safe for
// concurrent use, and each takes the principal that asks.
type Node struct {
	agents   atomic.Pointer[[]agents.Agent]
	hub      *Hub
	token    [sha256.Size]byte
	journal  Journal
	access   Access // nil for none
	parts    parts
	requests requests
	held     [quotas]counter
}

var _ agents.Door = (*Node)(nil)

// New makes a node over the agents; the first that offers a name has it. The
// token is what a carrier's bearer is compared with. Without a journal, nil, nothing
// that is asked for moves away from safe.
func New(hub *Hub, token string, journal Journal, hosted ...agents.Agent) *Node {
	if journal == nil {
		journal = noJournal{}
	}
	n := &Node{hub: hub, token: sha256.Sum256([]byte(token)), journal: journal}
	n.agents.Store(&hosted)
	return n
}

// Host puts other agents in the place of all that are there, and tells the watchers.
// Calls that are under way end with those that they began with. It is for the wiring:
// nobody who asks comes here.
func (n *Node) Host(hosted ...agents.Agent) {
	n.agents.Store(&hosted)
	n.parts.forget()
	n.hub.Announce(agents.Change{Tools: true, Prompts: true, Resources: true})
}

// known refuses the zero principal: whoever asks is somebody.
func known(p agents.Principal) error {
	if p.ID == "" {
		return device.Faultf(device.Denied, "nobody in particular may not do this: say who you are")
	}
	return nil
}

// Tools lists what p may call.
func (n *Node) Tools(p agents.Principal) ([]agents.Tool, error) {
	if err := known(p); err != nil {
		return nil, err
	}
	hosted := n.seen(p)
	if len(hosted) == 1 {
		return hosted[0].Tools(), nil
	}
	var all []agents.Tool
	for _, a := range hosted {
		all = append(all, a.Tools()...)
	}
	return all, nil
}

// Call calls a tool. A name that no agent offers is agents.ErrNotFound; what goes
// wrong inside a tool is a *device.Fault.
func (n *Node) Call(ctx context.Context, p agents.Principal, c agents.Call) (agents.Result, error) {
	if err := known(p); err != nil {
		return agents.Result{}, err
	}
	for _, a := range n.seen(p) {
		for _, t := range a.Tools() {
			if t.Name == c.Tool {
				return n.call(ctx, p, a, c)
			}
		}
	}
	ask := agents.Ask{Tool: c.Tool}
	if _, err := n.may(p, ask); err != nil { // whether there is such a tool or not
		return n.refuse(Asked{Who: p.ID, Tool: c.Tool}, err)
	}
	return agents.Result{}, agents.ErrNotFound
}

func (n *Node) call(ctx context.Context, p agents.Principal, a agents.Agent, c agents.Call) (agents.Result, error) {
	var plan *agents.Plan
	var wrong error
	if planner, ok := a.(agents.Planner); ok {
		plan, wrong = planner.Plan(p, c)
	}
	switch {
	case plan == nil && wrong == nil:
		return n.callUnplanned(ctx, p, a, c)
	case plan == nil:
		return n.refuse(Asked{Who: p.ID, Tool: c.Tool}, wrong)
	}
	asked := Asked{Who: p.ID, Tool: c.Tool}
	limits, err := n.may(p, plan.Ask)
	switch {
	case wrong != nil && (err == nil || len(plan.Ask.Points) == 0): // p sees the tool, and is told only of what it sees
		if plan.Ask.Effect == agents.Reads {
			return agents.Result{}, wrong
		}
		return n.refuse(asked, wrong)
	case err != nil:
		return n.refuse(asked, err)
	}
	place, err := n.Hold(p, quotaOf(plan.Ask))
	if err != nil {
		return n.refuse(asked, err)
	}
	defer place.Leave()
	if plan.Ask.Effect != agents.Reads { // of those nobody is told
		if asked.Args, err = plan.Args(); err != nil {
			return n.refuse(asked, err)
		}
	}
	if plan.Ask.Effect == agents.Returns || plan.Try != nil {
		return n.move(ctx, p, c, asked, plan, limits)
	}
	limits, need, err := n.permit(p, c, asked, plan)
	if need != nil || err != nil {
		return agents.Result{NeedInput: need}, err
	}
	return plan.Make(ctx, limits)
}

// callUnplanned makes a call of which nobody knows what it is about.
func (n *Node) callUnplanned(ctx context.Context, p agents.Principal, a agents.Agent, c agents.Call) (agents.Result, error) {
	place, err := n.Hold(p, quotaOf(agents.Ask{Tool: c.Tool}))
	if err != nil {
		return n.refuse(Asked{Who: p.ID, Tool: c.Tool}, err)
	}
	defer place.Leave()
	limits, err := n.take(p, agents.Ask{Tool: c.Tool}, false)
	if err == nil && limits != (agents.Limits{}) {
		err = device.Faultf(device.Denied, "your permission for this has limits that this tool knows nothing of; an owner can grant one without")
	}
	if err != nil {
		return n.refuse(Asked{Who: p.ID, Tool: c.Tool}, err)
	}
	return a.Call(ctx, p, c)
}

// Resources and Templates list what p may read.
func (n *Node) Resources(p agents.Principal) ([]agents.Resource, error) {
	return gather(n, p, agents.Library.Resources)
}

func (n *Node) Templates(p agents.Principal) ([]agents.Template, error) {
	return gather(n, p, agents.Library.Templates)
}

// Prompts lists what p may ask for.
func (n *Node) Prompts(p agents.Principal) ([]agents.Prompt, error) {
	return gather(n, p, agents.Coach.Prompts)
}

// gather joins what the agents that are an O have.
func gather[O, T any](n *Node, p agents.Principal, list func(O) []T) ([]T, error) {
	if err := known(p); err != nil {
		return nil, err
	}
	var all []T
	for _, a := range n.seen(p) {
		if o, ok := a.(O); ok {
			all = append(all, list(o)...)
		}
	}
	return all, nil
}

// Read returns the contents of a resource, or agents.ErrNotFound.
func (n *Node) Read(ctx context.Context, p agents.Principal, uri string) ([]agents.ResourceContent, error) {
	return ask(n, p, func(l agents.Library) ([]agents.ResourceContent, error) {
		if v, ok := l.(agents.Viewer); ok {
			limits, err := n.take(p, v.Reads(uri), n.owns(p))
			if err == nil && limits.Confirm {
				err = errConfirm
			}
			if err != nil {
				return nil, err
			}
		}
		return l.ReadResource(ctx, p, uri)
	})
}

// Prompt writes a prompt out, or returns agents.ErrNotFound.
func (n *Node) Prompt(ctx context.Context, p agents.Principal, name string, args map[string]string, ex agents.Exchange) (agents.PromptResult, error) {
	return ask(n, p, func(c agents.Coach) (agents.PromptResult, error) { return c.Prompt(ctx, p, name, args, ex) })
}

// ask returns the first answer of the agents that are an O which is not
// ErrNotFound.
func ask[O, T any](n *Node, p agents.Principal, question func(O) (T, error)) (answer T, err error) {
	if err := known(p); err != nil {
		return answer, err
	}
	for _, a := range n.seen(p) {
		if o, ok := a.(O); ok {
			if answer, err = question(o); err != agents.ErrNotFound {
				return answer, err
			}
		}
	}
	return answer, agents.ErrNotFound
}

// Complete completes an argument of a prompt or a template.
func (n *Node) Complete(p agents.Principal, ref agents.Reference, argument, prefix string) ([]string, error) {
	return gather(n, p, func(c agents.Completer) []string { return c.Complete(p, ref, argument, prefix) })
}

// Watch tells about changes until ctx ends: of the offers that which names, and
// of the resources among uris. It calls emit from one goroutine, first with the
// zero Change once nothing can be missed any more, and coalesces: a watcher that
// is slow is told once of what happened meanwhile. It is refused, and ends, where p
// may not see one of the resources, or may not any more.
func (n *Node) Watch(ctx context.Context, p agents.Principal, which agents.Change, uris []string, emit func(agents.Change) error) error {
	if err := known(p); err != nil {
		return err
	}
	for _, a := range n.seen(p) {
		if f, ok := a.(agents.Follower); ok {
			defer f.Follow(uris)()
		}
	}
	return n.watchWhile(ctx, p, which, uris, emit)
}
