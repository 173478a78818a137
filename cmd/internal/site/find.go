package site

import (
	"context"
	"time"

	"agentsite/discovery"
	"agentsite/discovery/card"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/owner"
	"agentsite/transport/p2p"
	"agentsite/transport/rpc"
)

// Find emits the sites of a realm that show, where they are, that they can do something,
// such as measurement/temperature; all of the realm for "". Each is emitted as soon as it
// answers, one at a time. It blocks until all were asked who are said to be there, or ctx
// ends; that some could not be asked is no error where others were found.
func Find(ctx context.Context, j Joined, capability, version string, emit func(Found)) error {
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
	out := &outside{key: identity.New(), realms: []Joined{j}, version: version} // nobody need know who looks
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

// finder finds the other sites of a site's realm for its owner; nil without a realm.
func finder(there *presence) owner.Finder {
	if there.realm == nil {
		return nil
	}
	return func(ctx context.Context, capability string) (all []owner.Found, err error) {
		if capability == "" {
			for _, s := range there.realm.Sites() {
				all = append(all, toOwner(foundAt(s.Signed)))
			}
			return all, nil
		}
		err = there.far.Find(ctx, capability, func(r *discovery.Signed) { all = append(all, toOwner(foundAt(r))) })
		return all, err
	}
}

func toOwner(f Found) owner.Found {
	out := owner.Found{Name: f.Name, DID: f.DID, URLs: f.URLs}
	for _, k := range f.Public {
		out.Public = append(out.Public, owner.Public{Kind: k.Kind, Points: k.Points})
	}
	return out
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

// Pong is what came of asking a site whether it is there.
type Pong struct {
	Path     p2p.Path `json:"path"` // lan, direct, punched or relayed
	Address  string   `json:"address,omitzero"`
	RTT      float64  `json:"rtt_ms"`
	Encoding string   `json:"encoding"`
}

// Ping asks a site n times, a second apart, whether it is there, and by which way. The way
// may be a better one each time.
func Ping(ctx context.Context, t Target, n int, emit func(Pong)) error {
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

// ping asks by the way that there is.
func (w *ways) ping(ctx context.Context) (Pong, error) {
	way, err := w.look(ctx)
	if err != nil {
		return Pong{}, err
	}
	if way != w.near {
		in, err := w.outside.open()
		if err != nil {
			return Pong{}, err
		}
		p, err := in.Ping(ctx, w.site)
		if err != nil { // it may be elsewhere by now
			w.leave(way)
		}
		return Pong{Path: p.Path, Address: p.Address, RTT: float64(p.RTT.Microseconds()) / 1000, Encoding: "cbor"}, err
	}
	start := time.Now()
	at, err := w.near.Ping(ctx)
	encoding := "json"
	if w.near.Codec == rpc.CBOR {
		encoding = "cbor"
	}
	return Pong{Path: NearPath, Address: at, RTT: float64(time.Since(start).Microseconds()) / 1000, Encoding: encoding}, err
}
