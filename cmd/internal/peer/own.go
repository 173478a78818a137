package peer

import (
	"context"
	"sync"

	"agentsite/agents/principal"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/rpc"
)

// OwnSites are the sites that this machine's user knows, and the one that runs from a folder, each by itself
// and as the user may use it. The methods are safe for concurrent use.
type OwnSites struct {
	mu      sync.Mutex
	members *members
}

// OwnSite is one of them.
type OwnSite struct {
	Name   string // that the others do not have
	Key    string // its did:key; "" for another user's on this machine
	Owner  bool   // the user owns it
	You    string // the principal that the user is there
	Caller rpc.Caller
	// Renew is called before a subscription to a site that was silent: it may be elsewhere now.
	Renew func(context.Context) error
}

// NewOwnSites reads the user's key. The caller closes the sites.
func NewOwnSites(f state.Folder, version string) (*OwnSites, identity.ID, error) {
	p, err := User()
	if err != nil {
		return nil, identity.ID{}, err
	}
	key, err := p.Key()
	if err != nil {
		return nil, identity.ID{}, err
	}
	far, err := userNetwork(key, version)
	if err != nil {
		return nil, identity.ID{}, err
	}
	all := &members{person: p, key: key, folder: f, socket: state.OwnerSocket, network: far, version: version}
	return &OwnSites{members: all}, key.ID(), nil
}

// Close leaves the network.
func (o *OwnSites) Close() error { return o.members.network.Close() }

// List returns the sites that there are now. It may ask the one on this machine for its name, for a second.
func (o *OwnSites) List() (all []OwnSite) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.members.list() {
		switch s := m.Site.(type) {
		case *localSite:
			all = append(all, OwnSite{m.Name, s.did, true, principal.LocalID, s.caller, func(context.Context) error { return nil }})
		case *remoteSite:
			k := s.contact()
			all = append(all, OwnSite{m.Name, k.DID, k.Owner, o.members.key.ID().String(), s.router, s.renew})
		}
	}
	return all
}
