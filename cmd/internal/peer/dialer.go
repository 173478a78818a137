package peer

import (
	"context"

	"agentsite/node/identity"
	"agentsite/transport/rpc"
)

// Dialer connects to many contacts of a person over one network, which joins the realms and the relays once. It is
// safe for concurrent use. Close it after use, which ends the connections.
type Dialer struct {
	person  Person
	key     identity.Key
	network *lazyNetwork
	version string
}

// NewDialer makes one for the person's key.
func (p Person) NewDialer(version string) (*Dialer, error) {
	key, err := p.Key()
	if err != nil {
		return nil, err
	}
	network, err := userNetwork(key, version)
	if err != nil {
		return nil, err
	}
	return &Dialer{p, key, network, version}, nil
}

// Dial connects to a contact and greets it, as Dial does for one site. It blocks until ctx ends at the latest.
func (d *Dialer) Dial(ctx context.Context, k Contact) (*Connection, error) {
	id, err := identity.Parse(k.DID)
	if err != nil {
		return nil, err
	}
	moved := func(at []string) { d.person.Contacts().updateNear(k.DID, at) }
	where := func() []string { return k.Addresses }
	c, w, err := newSession(d.key, id, where, moved, rpc.JSON, d.network, d.version)
	if err != nil {
		return nil, err
	}
	conn := connected(c, closeRoutes{w}, id, k.Name)
	if err := d.person.greet(ctx, k, c, w.timeout); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// Close leaves the network, if it was joined.
func (d *Dialer) Close() error { return d.network.Close() }

// closeRoutes closes a router's own connections, and leaves the network to others.
type closeRoutes struct{ w *router }

func (c closeRoutes) Close() error {
	c.w.invalidateRoute()
	return nil
}
