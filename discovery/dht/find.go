package dht

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"agentsite/discovery"
	"agentsite/discovery/card"
	"agentsite/node/identity"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

const (
	minFindInterval = 25 * time.Minute
	maxFindInterval = 35 * time.Minute
	sightingTTL     = 70 * time.Minute // of a sighting

	lookupTimeout = 30 * time.Second // for the answers of all servers
	askTimeout    = 4 * time.Second  // for a site
)

// Find finds all sites of the realm at once, every half an hour, and after Refresh. It emits
// those that answered, and a goodbye for each that answered before and does not any more.
func (d *DHT) Find(ctx context.Context, emit func(discovery.Sighting) error) error {
	if !d.o.Realm.Exists() {
		return errors.New("finding sites needs a realm")
	}
	woken, cancel := d.refreshed.Subscribe()
	defer cancel()
	there := make(map[peer.ID]peer.AddrInfo) // the sites that answered, and their addresses
	pause := minRetryPause
	for {
		found, err := d.runLookup(ctx, d.key("realm"), slices.Collect(maps.Values(there)), "", emit)
		if ctx.Err() != nil {
			return nil
		}
		wait := minFindInterval + rand.N(maxFindInterval-minFindInterval)
		if err != nil {
			d.o.Log.Warn("lookup in the DHT failed", "retry", pause, "err", err)
			wait, pause = pause, min(2*pause, maxRetryPause)
			maps.Copy(there, found)
		} else {
			pause = minRetryPause
			for p := range there {
				if _, still := found[p]; !still {
					goodbye(p, emit)
				}
			}
			there = found
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-woken:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Refresh makes each Find look up now.
func (d *DHT) Refresh() { d.refreshed.Notify() }

func goodbye(p peer.ID, emit func(discovery.Sighting) error) {
	if id, err := identity.Parse(p.String()); err == nil {
		_ = emit(discovery.Sighting{Site: id})
	}
}

// Lookup emits the sites of the realm with a capability, such as measurement/temperature, or all
// for "". It emits them as they answer, from one goroutine at a time. It returns when all sites
// that servers name were asked, or when ctx ends.
func (d *DHT) Lookup(ctx context.Context, capability string, emit func(discovery.Sighting) error) error {
	if !d.o.Realm.Exists() {
		return errors.New("finding sites needs a realm")
	}
	key := d.key("realm")
	if capability != "" {
		if err := card.CheckCapability(capability); err != nil {
			return err
		}
		key = d.key("capability", capability)
	}
	_, err := d.runLookup(ctx, key, nil, capability, emit)
	return err
}

// sendNewer sends a newer record to a site that shows an older one.
func (d *DHT) sendNewer(ctx context.Context, p peer.AddrInfo, newest *discovery.Signed) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := card.SendNewer(ctx, d.o.Host, d.o.Realm, p, newest); err != nil {
		d.o.Log.Debug("newer record not delivered", "peer", p.ID, "err", err)
	}
}

// ask fetches a site's card, or returns this host's own.
func (d *DHT) ask(ctx context.Context, p peer.AddrInfo) (discovery.Sighting, []string, error) {
	id, err := identity.Parse(p.ID.String())
	if err != nil {
		return discovery.Sighting{}, nil, err
	}
	if p.ID == d.self {
		r := d.announced.Load()
		if r == nil {
			return discovery.Sighting{}, nil, errors.New("this host announces nothing")
		}
		return discovery.Sighting{Site: id, Record: r.Bytes(), For: sightingTTL}, d.o.Capabilities(), nil
	}
	net := d.o.Host.Network()
	before := net.Connectedness(p.ID)
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c, err := card.Fetch(ctx, d.o.Host, d.o.Realm, p)
	at := directIPs(net.ConnsToPeer(p.ID))
	if before == network.NotConnected {
		d.closeUnused(p.ID)
	}
	if err != nil {
		return discovery.Sighting{}, nil, err
	}
	return discovery.Sighting{Site: id, Record: c.Record, At: at, For: sightingTTL}, c.Capabilities, nil
}

// addresses returns a peer's known addresses.
func (d *DHT) addresses(p peer.ID) []ma.Multiaddr { return d.o.Host.Peerstore().Addrs(p) }

// closeUnused closes the connections to a peer that was only asked.
func (d *DHT) closeUnused(p peer.ID) {
	if d.library.RoutingTable().Find(p) != "" || d.o.Host.ConnManager().IsProtected(p, "") {
		return
	}
	for _, c := range d.o.Host.Network().ConnsToPeer(p) {
		if len(c.GetStreams()) == 0 {
			c.Close()
		}
	}
}

// providers emits the peers that servers name for a key, as they answer, from one goroutine
// and some repeatedly.
func (d *DHT) providers(ctx context.Context, key cid.Cid, emit func(server peer.ID, p peer.AddrInfo)) error {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	if d.o.Server {
		held, err := d.library.ProviderStore().GetProviders(ctx, key.Hash())
		if err != nil {
			return err
		}
		for _, p := range held {
			emit(d.self, p)
		}
	}
	return d.walk(ctx, key, func(server peer.ID, who []*peer.AddrInfo) {
		for _, p := range who {
			emit(server, *p)
		}
	})
}
