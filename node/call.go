package node

import (
	"context"
	"time"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/device"
)

// Call calls a hosted agent's own tool. A name that none offers p is tools.ErrNotFound, whether there
// is such a tool or not; an error of a tool is a *device.Fault.
func (n *Node) Call(ctx context.Context, p agents.Principal, c tools.Call) (tools.Result, error) {
	if err := known(p); err != nil {
		return tools.Result{}, err
	}
	if err := n.checkVia(c.Terms.Via, false); err != nil {
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
	if !tools.IsOperation(c.Tool) {
		n.refuse(Asked{Who: p.ID, Tool: c.Tool}, device.Faultf(device.Invalid, "there is no such tool"))
	} else if err := n.Lacks(p, c.Tool, c.Args); err != nil {
		return tools.Result{}, err
	}
	return tools.Result{}, tools.ErrNotFound
}

// call calls a tool of which only the name is known.
func (n *Node) call(
	ctx context.Context, p agents.Principal, a tools.Agent, t tools.Tool, r tools.Call,
) (res tools.Result, err error) {
	c := Call{who: p, Ask: agents.Ask{Tool: r.Tool}, Terms: r.Terms, came: time.Now()}
	c.asked = Asked{Who: p.ID, Tool: r.Tool}
	if t.From != "" {
		return n.callProgram(ctx, &c, a, t.From, r)
	}
	if c.place, err = n.Hold(p, quotaOf(c.Ask)); err != nil {
		return res, n.refuse(c.asked, err)
	}
	defer c.End()
	if err := n.permitTool(&c); err != nil {
		return res, err
	}
	return a.Call(ctx, p, r)
}

// callProgram calls a tool of another program, which is journalled before and after, as a move is. The
// account of its asker is charged.
func (n *Node) callProgram(
	ctx context.Context, c *Call, a tools.Agent, program string, r tools.Call,
) (res tools.Result, err error) {
	payer := c.who
	if asker := c.Terms.Behalf.Asker; asker.ID != "" {
		payer = asker
	}
	if r.Account, err = n.Account(payer); err == nil {
		c.place, err = n.Hold(payer, programs)
	}
	if err != nil {
		return res, n.refuse(c.asked, err)
	}
	defer c.End()
	if c.Args, err = argumentsOf(r); err == nil {
		err = n.describe(c)
	}
	if err != nil {
		return res, n.refuse(c.asked, err)
	}
	if earlier, err := n.earlier(c); earlier != nil || err != nil {
		return Replayed[tools.Result](earlier, err)
	}
	if err := n.permitTool(c); err != nil {
		return res, err
	}
	if earlier, err := n.intend(ctx, c); earlier != nil || err != nil {
		return Replayed[tools.Result](earlier, err)
	}
	if c.asked.Key != "" { // the caller may go: a repeated call is answered with the outcome
		ctx = context.WithoutCancel(ctx)
	}
	res, err = a.Call(ctx, c.who, r)
	if err != nil && ctx.Err() != nil {
		err = device.Faultf(device.UnknownOutcome,
			"the caller went before %s had answered; whether it did what was asked is not known", program)
	}
	return res, c.Done(res, err)
}

// permitTool charges the permissions for a call of a tool. It is refused under limits: nobody knows
// what they mean for it.
func (n *Node) permitTool(c *Call) error {
	limits, err := n.takeBoth(c, false)
	switch {
	case err != nil:
	case (c.Terms.Confirm || limits.Confirm) && !n.confirmed(c):
		err = device.Faultf(device.Denied,
			"an owner would have to approve this call, and a tool of another program has no approvals")
	case limits != (agents.Limits{}):
		err = device.Faultf(device.Denied,
			"your permission for this has limits that this tool knows nothing of; an owner can grant one without")
	}
	if err != nil {
		return n.refuse(c.asked, err)
	}
	return nil
}

// argumentsOf returns the arguments of a tool for the journal. They stand under a name of their own: none
// of them is that of an output.
func argumentsOf(r tools.Call) (any, error) {
	args := make(map[string]any)
	if r.Args != nil {
		if err := r.Args.Decode(&args); err != nil {
			return nil, device.Faultf(device.Invalid, "the arguments are not an object: %w", err)
		}
	}
	return map[string]any{"arguments": args}, nil
}
