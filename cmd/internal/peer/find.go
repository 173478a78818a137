package peer

import (
	"context"
	"time"

	"agentsite/discovery"
	"agentsite/discovery/card"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/p2p"
	"agentsite/transport/rpc"
)

// Find emits the sites of a realm that have a capability, such as measurement/temperature,
// "" for any, by their own word. emit gets each as soon as it answers, one at a time. Find
// blocks until all were asked or ctx ends. It fails only where no site was found.
func Find(ctx context.Context, j Realm, capability, version string, emit func(Found)) error {
	if capability != "" {
		if err := card.CheckCapability(capability); err != nil {
			return state.Mistake{Err: err}
		}
	}
	user, err := User()
	if err != nil {
		return err
	}
	called, _, err := user.names()
	if err != nil {
		return err
	}
	out := &lazyNetwork{key: identity.New(), realms: []Realm{j}, version: version} // with a new key, so that the lookup does not reveal the user's
	in, err := out.open()
	if err != nil {
		return err
	}
	defer out.Close()
	return in.Find(ctx, capability, func(r *discovery.Signed) {
		f := foundAt(r)
		f.Known = called[f.DID]
		emit(f)
	})
}

func foundAt(r *discovery.Signed) Found {
	return Found{Name: r.Name, DID: r.Site.String(), URLs: r.Addresses, Public: r.Offer}
}

// Find has the site that was dialled find the others of its realm, as its owner.
func (c *Connection) Find(ctx context.Context, capability string) (all []Found, err error) {
	found, err := c.Owner.Find(ctx, capability)
	for _, f := range found {
		one := Found{Name: f.Name, DID: f.DID, URLs: f.URLs}
		for _, p := range f.Public {
			one.Public = append(one.Public, discovery.Kind{Kind: p.Kind, Points: p.Points})
		}
		all = append(all, one)
	}
	return all, err
}

// PingResult is one answer to Ping.
type PingResult struct {
	Path     p2p.Path `json:"path"` // lan, direct, punched or relayed
	Address  string   `json:"address,omitzero"`
	RTT      float64  `json:"rtt_ms"`
	Encoding string   `json:"encoding"`
}

// Ping measures n round trips to a site, a second apart, and emits each with its path, which
// may improve.
func Ping(ctx context.Context, t Target, n int, emit func(PingResult)) error {
	c, w, err := dialKnown(t)
	if err != nil {
		return err
	}
	defer c.Close()
	for i := range n {
		if i > 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Second):
			}
		}
		p, err := w.ping(ctx)
		if err != nil {
			return err
		}
		emit(p)
	}
	return nil
}

// ping measures one round trip over the route.
func (w *router) ping(ctx context.Context) (PingResult, error) {
	way, err := w.route(ctx)
	if err != nil {
		return PingResult{}, err
	}
	if way != w.near {
		in, err := w.network.open()
		if err != nil {
			return PingResult{}, err
		}
		p, err := in.Ping(ctx, w.site)
		if err != nil { // it may be elsewhere by now
			w.dropRoute(way)
		}
		return PingResult{Path: p.Path, Address: p.Address, RTT: float64(p.RTT.Microseconds()) / 1000, Encoding: "cbor"}, err
	}
	start := time.Now()
	at, err := w.near.Ping(ctx)
	encoding := "json"
	if w.near.Codec == rpc.CBOR {
		encoding = "cbor"
	}
	return PingResult{Path: NearPath, Address: at, RTT: float64(time.Since(start).Microseconds()) / 1000, Encoding: encoding}, err
}
