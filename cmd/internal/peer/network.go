package peer

import (
	"net"
	"slices"
	"sync"

	"agentsite/cmd/internal/internet"
	"agentsite/discovery"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/p2p"
)

// lazyNetwork joins the global network when it is first needed.
type lazyNetwork struct {
	key     identity.Key
	realms  []Realm
	version string

	mu     sync.Mutex
	in     *internet.Network
	closed bool
}

// open joins the network, or returns the one joined before.
func (o *lazyNetwork) open() (*internet.Network, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return nil, net.ErrClosed
	case o.in != nil:
		return o.in, nil
	}
	var relays []string
	for _, j := range o.realms {
		relays = append(relays, j.Relays...)
	}
	peers, err := p2p.ParsePeers(slices.Compact(slices.Sorted(slices.Values(relays))))
	if err != nil {
		return nil, state.Mistake{Err: err}
	}
	all := internet.Options{P2P: p2p.Options{Key: o.key, Listen: p2p.ListenAll(0), Agent: "agentsite/" + o.version}, Relays: peers}
	for _, j := range o.realms {
		r, err := discovery.ParseRealm(j.Realm)
		if err != nil {
			return nil, state.Mistake{Err: err}
		}
		all.Realms = append(all.Realms, internet.Realm{Realm: r, IPFS: j.IPFS})
	}
	o.in, err = internet.Join(all)
	return o.in, err
}

// Close leaves the network, if it was joined.
func (o *lazyNetwork) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed = true; o.in == nil {
		return nil
	}
	return o.in.Close()
}

// userNetwork returns the network for a caller with key, in the realms of this machine's user.
func userNetwork(key identity.Key, version string) (*lazyNetwork, error) {
	user, err := User()
	if err != nil {
		return nil, err
	}
	realms, err := user.Realms().List()
	return &lazyNetwork{key: key, realms: realms, version: version}, err
}
