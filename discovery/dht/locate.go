package dht

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"

	kad "github.com/libp2p/go-libp2p-kad-dht"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

const (
	// bounds Locate
	locateTimeout = 10 * time.Second
	maxLocated    = 32 // addresses
)

// Locate returns a site's possible addresses, also through relays: known ones, then those
// that the site signed, then those that servers name. Only the handshake verifies them. It
// blocks for ten seconds at most, and fails if there is none.
func (d *DHT) Locate(ctx context.Context, id identity.ID) (peer.AddrInfo, error) {
	p, err := peer.Decode(id.PeerID())
	if err != nil {
		return peer.AddrInfo{}, err
	}
	known := d.addresses(p)
	if d.o.Host.Network().Connectedness(p) != network.NotConnected {
		return peer.AddrInfo{ID: p, Addrs: known}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, locateTimeout)
	defer cancel()
	var signed, said []ma.Multiaddr
	var failed error
	if failed = d.join(ctx); failed == nil {
		signed, said = d.search(ctx, p)
	}
	var all []ma.Multiaddr
	for _, some := range [][]ma.Multiaddr{known, signed, said, d.addresses(p)} {
		for _, a := range some {
			if len(all) < maxLocated && !ma.Contains(all, a) {
				all = append(all, a)
			}
		}
	}
	if len(all) == 0 && failed != nil {
		return peer.AddrInfo{}, failed
	}
	if len(all) == 0 {
		return peer.AddrInfo{}, fmt.Errorf("no server of the DHT knows an address of %v", id)
	}
	return peer.AddrInfo{ID: p, Addrs: all}, nil
}

// QuickLocate is a cheaper Locate. It asks the known servers one after the other until one knows
// the site, and the network only if none does.
func (d *DHT) QuickLocate(ctx context.Context, id identity.ID) (peer.AddrInfo, error) {
	p, err := peer.Decode(id.PeerID())
	if err != nil {
		return peer.AddrInfo{}, err
	}
	for _, i := range rand.Perm(len(d.o.Bootstrap)) {
		said, _, err := d.messenger.GetProviders(ctx, d.o.Bootstrap[i].ID, d.key("site", p.String()).Hash())
		if i := slices.IndexFunc(said, func(who *peer.AddrInfo) bool { return who.ID == p && len(who.Addrs) > 0 }); err == nil && i >= 0 {
			return *said[i], nil
		}
	}
	return d.Locate(ctx, id)
}

// search asks the network in all ways.
func (d *DHT) search(ctx context.Context, p peer.ID) (signed, said []ma.Multiaddr) {
	var asking sync.WaitGroup
	if d.o.Realm.Exists() {
		asking.Go(func() {
			_ = d.providers(ctx, d.key("site", p.String()), func(_ peer.ID, who peer.AddrInfo) { // what it found counts
				if who.ID == p {
					said = append(said, who.Addrs...)
				}
			})
		})
	}
	if d.o.Realm.Public() && d.o.Prefix != Amino {
		asking.Go(func() { signed = d.signedAddrs(ctx, p) })
	}
	asking.Go(func() { _, _ = d.library.FindPeer(context.WithValue(ctx, lookupTarget{}, p), p) }) // the peerstore has the result
	asking.Wait()
	return signed, said
}

// signedAddrs returns the addresses in the newest record of a site that servers hold.
func (d *DHT) signedAddrs(ctx context.Context, p peer.ID) (all []ma.Multiaddr) {
	b, _ := d.library.GetValue(ctx, keyOf(p), kad.Quorum(0)) // as far as it came
	r, err := open(keyOf(p), b)
	if err != nil {
		return nil
	}
	for _, text := range (&discovery.Site{Signed: r}).Multiaddrs() {
		if a, err := ma.NewMultiaddr(text); err == nil {
			all = append(all, a)
		}
	}
	return all
}
