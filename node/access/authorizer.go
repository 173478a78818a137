package access

import (
	"errors"
	"log/slog"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node/identity"
)

// Authorizer authenticates and authorises callers for the node by a Book. Its refusals are
// device faults: Busy for one that ends by itself, Unavailable where the disk does not take
// what the call counts, and otherwise Denied.
type Authorizer struct {
	*Store
	URL string // the site's, for which its tokens count
}

// Bearer returns the principal of a token.
func (a Authorizer) Bearer(token string) (agents.Principal, error) {
	p, err := a.Store.Bearer(token, a.URL)
	return p, denial(err)
}

// Peer returns the principal of a proven key, a peer ID or did:key, that is an owner's or has
// a permission.
func (a Authorizer) Peer(text string) (agents.Principal, error) {
	id, err := identity.Parse(text)
	if err != nil {
		return agents.Principal{}, device.Faultf(device.Denied, "%v", err)
	}
	if a.Account(id) == "" {
		return agents.Principal{}, device.Faultf(device.Denied, "your key, %v, has no permission here: an owner can grant one", id)
	}
	return agents.Principal{ID: id.String(), Owner: a.Owns(id.String())}, nil
}

// May is Book.May.
func (a Authorizer) May(p agents.Principal, ask agents.Ask) (agents.Limits, error) {
	l, err := a.Store.May(p, ask)
	return l, denial(err)
}

// Take is Book.Take.
func (a Authorizer) Take(p agents.Principal, ask agents.Ask, confirmed bool) (agents.Limits, error) {
	l, err := a.Store.Take(p, ask, confirmed)
	return l, denial(err)
}

// Sees is Book.Sees.
func (a Authorizer) Sees(p agents.Principal, ask agents.Ask) bool { return a.Store.Sees(p, ask) }

func denial(err error) error {
	var d *Denied
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &d):
		slog.Error("a call could not be counted", "err", err)
		return device.Faultf(device.Unavailable, "this call counts against a rate, and its site's disk does not take that down; have the owner see to it. A return to safe and the emergency stop work")
	case d.Retry > 0:
		return device.Faultf(device.Busy, "%s", d.Msg)
	}
	return device.Faultf(device.Denied, "%s", d.Msg)
}
