package node

import (
	"sync"

	"agentsite/agents"
	"agentsite/device"
)

// Quota is something of which callers can hold only so much at a time.
type Quota uint8

const (
	Calls         Quota = iota // that run
	Returns                    // calls that run and go to safe, and nowhere else; each principal has its own
	Stops                      // emergency stops that run; each principal has its own
	Waits                      // calls that wait for an answer of their own client
	Subscriptions              // that are open
	Sessions                   // of older revisions that are open
	approvals                  // calls that wait for an owner's word
	wishes                     // for more permission that wait for an owner, or that one refused
	programs                   // calls of other programs' tools that run
	replays                    // reads of the past beside read_history
	quotas
)

// bounds are the limits of each quota. own is reserved for each account. Beyond it, up to most, an
// account takes from the common ones, which all accounts share. Owners and this machine's own
// callers take none of the common ones, and up to reserved. A page has a subscription for each tab,
// and HTTP/2 carries them all.
var bounds = [quotas]struct {
	own, most, common, reserved int
	what                        string
}{
	Calls:         {8, 64, 64, 64, "calls are running"},
	Returns:       {8, 8, 0, 8, "returns to safe are running"},
	Stops:         {8, 8, 0, 8, "emergency stops are running"},
	Waits:         {4, 16, 32, 16, "calls wait for their client's answer"},
	Subscriptions: {4, 16, 16, 128, "subscriptions are open"},
	Sessions:      {4, 16, 16, 16, "sessions are open"},
	approvals:     {4, 8, 32, 8, "calls wait for the owner's approval"},
	wishes:        {4, 8, 32, 8, "calls ask for more permission"},
	programs:      {2, 4, 8, 4, "calls of other programs are running"},
	replays:       {2, 4, 8, 8, "replays of the past are running"},
}

// account is the holder of quotas. All principals whose permission descends from the same grantee
// of an owner share one account, however often it was delegated.
type account struct {
	name     string
	reserved bool // an owner's, or a caller's on this machine
}

// Account returns the name of the account that the quotas of p are counted under.
func (n *Node) Account(p agents.Principal) (string, error) {
	if err := known(p); err != nil {
		return "", err
	}
	return n.account(p).name, nil
}

func (n *Node) account(p agents.Principal) account {
	if n.free(p) {
		return account{p.ID, true}
	}
	return account{n.access.Root(p), false}
}

// quotaOf returns the quota that an operation counts against. Moves cannot use up the quota of
// returns to safe.
func quotaOf(ask agents.Ask) Quota {
	if ask.Op == agents.OpWatch {
		return Subscriptions
	}
	if ask.Op == agents.OpStop { // not behind outputs that do not come back
		return Stops
	}
	if ask.ReturnsToSafe() {
		return Returns
	}
	return Calls
}

// counter counts the slots of one quota by account.
type counter struct {
	mu   sync.Mutex
	held map[account]int
}

// Place is a slot of a quota; Leave releases it.
type Place struct {
	of *counter
	to account
}

// Hold takes a place for p, or is a Busy fault. Leave follows where there was one.
func (n *Node) Hold(p agents.Principal, q Quota) (Place, error) {
	if err := known(p); err != nil {
		return Place{}, err
	}
	to, b, c := n.account(p), bounds[q], &n.held[q]
	most := b.most
	if to.reserved {
		most = b.reserved
	}
	if q == Returns || q == Stops { // no stop is refused because of other calls by the same grant
		to.name = p.ID
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if has := c.held[to]; has >= most || has >= b.own && !to.reserved && c.common(b.own) >= b.common {
		return Place{}, device.Faultf(device.Busy,
			"too many %s for you, or for those who share your permission: wait for one to end", b.what)
	}
	if c.held == nil {
		c.held = make(map[account]int)
	}
	c.held[to]++
	return Place{c, to}, nil
}

// common returns the number of common places that are taken. The caller holds the lock.
func (c *counter) common(own int) (n int) {
	for a, has := range c.held {
		if !a.reserved {
			n += max(0, has-own)
		}
	}
	return n
}

// Leave gives the place back, once. The zero Place is none.
func (p Place) Leave() {
	if p.of == nil {
		return
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.of.held[p.to]--; p.of.held[p.to] == 0 {
		delete(p.of.held, p.to)
	}
}
