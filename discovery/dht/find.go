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
	sightingTTL     = 70 * time.Minute // what was found

	lookupTimeout = 30 * time.Second // for all that the servers say
	askTimeout    = 4 * time.Second  // for a site
)

// Find finds all sites of the realm at once, every half an hour, and after Refresh. It
// emits those that answered, and a goodbye for each that did before and does no more.
func (d *DHT) Find(ctx context.Context, emit func(discovery.Sighting) error) error {
	if !d.o.Realm.Exists() {
		return errors.New("who is of no realm finds nobody")
	}
	woken := make(chan struct{}, 1)
	d.mu.Lock()
	d.wake[woken] = true
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.wake, woken)
	}()
	there := make(map[peer.ID]peer.AddrInfo) // who answered, and where
	pause := minRetryPause
	for {
		found, err := d.runLookup(ctx, d.key("realm"), slices.Collect(maps.Values(there)), "", emit)
		if ctx.Err() != nil {
			return nil
		}
		wait := minFindInterval + rand.N(maxFindInterval-minFindInterval)
		if err != nil {
			d.o.Log.Warn("sites could not be found in the DHT, and that is tried again", "after", pause, "error", err)
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

// Refresh has each Find look again now.
func (d *DHT) Refresh() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for w := range d.wake {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

func goodbye(p peer.ID, emit func(discovery.Sighting) error) {
	if id, err := identity.Parse(p.String()); err == nil {
		_ = emit(discovery.Sighting{Site: id})
	}
}

// Lookup emits the sites of the realm that can do something, such as
// measurement/temperature, or all of them for "", as they answer, from one goroutine at a
// time. It returns when all that the servers know of were asked, or when ctx ends.
func (d *DHT) Lookup(ctx context.Context, capability string, emit func(discovery.Sighting) error) error {
	if !d.o.Realm.Exists() {
		return errors.New("who is of no realm finds nobody")
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

// newer has a site that shows an older record than is known go beyond that.
func (d *DHT) sendNewer(ctx context.Context, p peer.AddrInfo, newest *discovery.Signed) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := card.SendNewer(ctx, d.o.Host, d.o.Realm, p, newest); err != nil {
		d.o.Log.Debug("a site is not told that a newer record of it is known", "peer", p.ID, "error", err)
	}
}

// ask asks a site for its card, and who is this host itself.
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

// addresses are those at which a peer may be, as far as is known here.
func (d *DHT) addresses(p peer.ID) []ma.Multiaddr { return d.o.Host.Peerstore().Addrs(p) }

// part ends connections to who was only asked: there may be many.
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

// providers emits who is said to have a key, and by whom, from one goroutine and some more
// than once, as servers answer.
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
