package node

import (
	"context"
	"time"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/device"

	"github.com/go-json-experiment/json"
)

// Call calls a hosted agent's own tool. A name that none offers p is tools.ErrNotFound, whether there
// is such a tool or not; an error of a tool is a *device.Fault.
func (n *Node) Call(ctx context.Context, p agents.Principal, c tools.Call) (tools.Result, error) {
	if err := known(p); err != nil {
		return tools.Result{}, err
	}
	if err := n.checkVia(c.Terms.Via); err != nil {
		return tools.Result{}, n.refuse(Asked{Who: p.ID, Tool: c.Tool}, err)
	}
	_, hosted := n.seenBy(p)
	for _, a := range hosted {
		for _, t := range a.Tools() {
			if t.Name == c.Tool {
				return n.call(ctx, p, a, t, c)
			}
		}
	}
	asked := Asked{Who: p.ID, Tool: c.Tool}
	if !tools.IsOperation(c.Tool) {
		n.refuse(asked, device.Faultf(device.Invalid, "there is no such tool"))
	} else if _, err := n.may(p, agents.Ask{Tool: c.Tool}); err != nil {
		return tools.Result{}, n.refuse(asked, err)
	}
	return tools.Result{}, tools.ErrNotFound
}

// call calls a tool of which only the name is known. A call to another program is journalled before
// and after, as a move is.
func (n *Node) call(ctx context.Context, p agents.Principal, a tools.Agent, t tools.Tool, c tools.Call) (res tools.Result, err error) {
	came := time.Now()
	ask, asked := agents.Ask{Tool: c.Tool}, Asked{Who: p.ID, Tool: c.Tool}
	on := call{who: p, ask: ask, terms: c.Terms}
	quota, account := quotaOf(ask), p
	if t.From != "" {
		quota = programs
		if asker := c.Terms.Behalf.Asker; asker.ID != "" {
			account = asker
		}
		if c.Account, err = n.Account(account); err != nil {
			return res, n.refuse(asked, err)
		}
	}
	place, err := n.Hold(account, quota)
	if err != nil {
		return res, n.refuse(asked, err)
	}
	defer place.Leave()
	var late time.Duration
	if t.From != "" {
		if late, err = n.describe(p, c, &asked); err != nil {
			return res, n.refuse(asked, err)
		}
		if earlier, err := n.journal.Replay(asked); earlier != nil || err != nil {
			return replayed[tools.Result](earlier, err)
		}
	}
	limits, err := n.takeBoth(&on, false)
	if err == nil && (c.Terms.Confirm || limits.Confirm) && !n.owns(p) {
		err = device.Faultf(device.Denied, "an owner would have to approve this call, and a tool of another program has no approvals")
	}
	if err == nil && limits != (agents.Limits{}) {
		err = device.Faultf(device.Denied, "your permission for this has limits that this tool knows nothing of; an owner can grant one without")
	}
	if err != nil {
		return res, n.refuse(asked, err)
	}
	if t.From == "" {
		return a.Call(ctx, p, c)
	}
	return actOnce(ctx, n, asked, came, late, func() (tools.Result, error) {
		calling := ctx
		if asked.Key != "" { // the caller may go: a repeated call is answered with the outcome
			calling = context.WithoutCancel(ctx)
		}
		res, err := a.Call(calling, p, c)
		if err != nil && calling.Err() != nil {
			err = device.Faultf(device.UnknownOutcome, "the caller went before %s had answered; whether it did what was asked is not known", t.From)
		}
		return res, err
	})
}

// describe writes a call of another program's tool into asked, and returns how late it may begin. Its
// arguments stand under a name of their own: none of them is that of an output.
func (n *Node) describe(p agents.Principal, c tools.Call, asked *Asked) (late time.Duration, err error) {
	args := make(map[string]any)
	if c.Args != nil {
		if err := c.Args.Decode(&args); err != nil {
			return 0, device.Faultf(device.Invalid, "the arguments are not an object: %w", err)
		}
	}
	asked.Via = n.via(p, c.Terms)
	if asked.Args, err = json.Marshal(map[string]any{"arguments": args}, json.Deterministic(true)); err != nil {
		return 0, device.Faultf(device.Invalid, "the arguments cannot be written as JSON: %w", err)
	}
	return checkTerms(c.Terms, asked)
}
