package node

import (
	"slices"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/device"
)

// MayAnswer returns why p may not answer calls that wait for an owner. Only a key may to which the permission was
// given, and none that it was passed on to, and no token: the carrier has the key sign each answer.
func (n *Node) MayAnswer(p agents.Principal) error {
	if err := known(p); err != nil {
		return err
	}
	if n.access != nil && p.Kind == principal.Key && p.ID == p.Account && !p.Owner &&
		n.access.CanSee(p, agents.Ask{Op: agents.OpOwn, Tool: agents.AnswerTool, Effect: agents.Returns}) {
		return nil
	}
	return errNoAnswer
}

// Answerable are the requests that p may answer, the oldest first: none that p asked for itself, or that a key asks for
// to which p passed a permission on.
func (n *Node) Answerable(p agents.Principal) ([]Request, error) {
	if err := n.MayAnswer(p); err != nil {
		return nil, err
	}
	all := n.requests.waiting("")
	return slices.DeleteFunc(all, func(r Request) bool { return n.asks(p, r.Who, r.Via) }), nil
}

// Answer is Approve by a key that may answer, whose carrier had it sign exactly this.
func (n *Node) Answer(p agents.Principal, handle string, ok bool) error {
	if err := n.MayAnswer(p); err != nil {
		return err
	}
	ask := agents.Ask{Op: agents.OpOwn, Tool: agents.AnswerTool, Effect: agents.Returns}
	if ok {
		ask.Effect = agents.Acts
	}
	switch limits, err := n.take(p, ask, false); {
	case err != nil:
		return err
	case limits.Confirm:
		return errNoAnswer
	}
	return n.decide(p, handle, ok, func() error { return n.MayAnswer(p) }, func(r *request) error {
		switch {
		case r.wish != nil:
			return device.Faultf(device.Denied, "only an owner answers what a program asks to be allowed")
		case n.asks(p, r.asked.Who, r.asked.Via):
			return device.Faultf(device.Denied, "you asked for this call yourself: an owner, or another key, answers it")
		}
		return nil
	})
}

var errNoAnswer = device.Faultf(device.Denied,
	"your permission does not have “use approve”, by which a key answers calls that wait")

// asks reports whether a call is p's, or made for p, or for a key to which p passed a permission on.
func (n *Node) asks(p agents.Principal, who string, via []string) bool {
	return slices.ContainsFunc(append(via[:len(via):len(via)], who), func(id string) bool {
		return id == p.ID || n.access.PassedOn(p.ID, id)
	})
}
