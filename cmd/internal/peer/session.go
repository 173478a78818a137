package peer

import (
	"context"
	"errors"
	"net"
	"time"

	"agentsite/node/acts"
	"agentsite/node/identity"
	"agentsite/transport/mcp/client"
	ownerclient "agentsite/transport/owner/client"
	"agentsite/transport/rpc"
	"agentsite/transport/web"
)

// newSession makes a client of the site with the key site, for the caller with key. where returns
// the known addresses. It is called for each search for a route, on the same network and, if out is
// not nil, beyond it. moved gets a new address on the network; it may be nil.
func newSession(key identity.Key, site identity.ID, where func() []string, moved func(at []string), codec rpc.Codec, out *lazyNetwork, version string) (*client.Client, *router, error) {
	secured, err := web.ClientTLS(key, site)
	if err != nil {
		return nil, nil, err
	}
	w := newRouter(site, where, codec, func(ctx context.Context) (net.Conn, error) {
		near, _ := splitAddresses(where())
		return lanDialer{site: site, addresses: near, secured: secured, moved: moved}.dial(ctx, "tcp", "")
	}, out)
	return client.New(w, "agentsite", version), w, nil
}

// dialSite connects to a contact, or to a site by its key. An owner sets the site's time, which
// a board without a clock needs; others present their grant, which the site may not have. The
// caller closes the connection.
func dialSite(t Target) (*Connection, *router, error) {
	p, err := PersonNamed(t.As)
	if err != nil {
		return nil, nil, err
	}
	k, err := p.Contacts().lookup(t.Site, t.Peer)
	if t.Peer == "" {
		k, err = p.find(context.Background(), t.Site, t.Version, t.Progress)
	}
	if err != nil {
		return nil, nil, err
	}
	key, err := p.Key()
	if err != nil {
		return nil, nil, err
	}
	id, err := identity.Parse(k.DID)
	if err != nil {
		return nil, nil, err
	}
	out, err := userNetwork(key, t.Version)
	if err != nil {
		return nil, nil, err
	}
	codec := rpc.JSON
	if t.CBOR {
		codec = rpc.CBOR
	}
	moved := func(at []string) { p.Contacts().updateNear(k.DID, at) }
	if k.Name == "" { // not a contact
		moved = nil
	}
	c, w, err := newSession(key, id, func() []string { return k.Addresses }, moved, codec, out, t.Version)
	if err != nil {
		return nil, nil, err
	}
	w.timeout, w.retry, w.progress = t.timeout(), t.Wait > 0, t.Progress
	if err := p.greet(context.Background(), k, c, w.timeout); err != nil {
		out.Close()
		return nil, nil, err
	}
	return connected(c, out, id, k.Name), w, nil
}

// greet offers a site this machine's time, or presents the person's grant, and remembers the addresses that
// the site answers with.
func (p Person) greet(ctx context.Context, k Contact, c ownerclient.Caller, timeout time.Duration) error {
	if !k.Owner && k.Grant == nil { // nothing to present
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout+firstAnswerTimeout)
	defer cancel()
	site := ownerclient.New(c, identity.ID{}, "")
	var reached acts.Reached
	var err error
	if k.Owner {
		reached, err = site.OfferTime(ctx, time.Now())
	} else {
		reached, err = site.Present(ctx, k.Grant)
	}
	var refused *client.RequestError
	switch {
	case errors.As(err, &refused): // the next call returns the reason
		return nil
	case err == nil && k.Name != "":
		p.Contacts().updateFar(k.DID, reached.At)
	}
	return err
}
