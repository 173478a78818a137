package peer

import (
	"context"
	"time"

	"agentsite/device"
	"agentsite/discovery"
	"agentsite/discovery/card"
	"agentsite/node/acts"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/p2p"
	"agentsite/transport/rpc"
)

// Find emits the sites of a realm that announce a capability, such as measurement/temperature,
// "" for any. It calls emit for each site that answers, one at a time, and blocks until all were
// asked or ctx ends. It fails only where no site was found.
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
	names, _, err := user.Contacts().names()
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
		f := FoundIn(r)
		emit(Found{Found: f, Known: names[f.DID]})
	})
}

// FoundIn returns a site as its record announces it.
func FoundIn(r *discovery.Signed) acts.Found {
	f := acts.Found{Name: r.Name, DID: r.Site.String(), URLs: r.Addresses}
	for _, k := range r.Offer {
		f.Public = append(f.Public, acts.Public{Kind: k.Kind, Points: k.Points})
	}
	return f
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
	c, w, err := dialSite(t)
	if err != nil {
		return err
	}
	defer c.Close()
	for i := range n {
		if i > 0 {
			if err := device.Sleep(ctx, time.Second); err != nil {
				return err
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
	route, err := w.route(ctx)
	if err != nil {
		return PingResult{}, err
	}
	if route != w.near {
		in, err := w.network.open()
		if err != nil {
			return PingResult{}, err
		}
		p, err := in.Ping(ctx, w.site)
		if err != nil { // its addresses may have changed
			w.dropRoute(route)
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
