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
	maxLocated    = 24 // addresses that unknown servers name
)

// Locate looks for a site's addresses, also through relays. It calls found, once at a time, with
// those that it finds, as soon as it does: the known ones, those that the site signed, and those that
// servers name. Only the handshake verifies them. It blocks until all servers were asked, for ten
// seconds at most, and fails if there is no address.
func (d *DHT) Locate(ctx context.Context, id identity.ID, found func(at []ma.Multiaddr)) error {
	p, err := peer.Decode(id.PeerID())
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var all []ma.Multiaddr
	add := func(some []ma.Multiaddr, most int) {
		mu.Lock()
		defer mu.Unlock()
		some = slices.DeleteFunc(ma.Unique(slices.Clone(some)), func(a ma.Multiaddr) bool { return ma.Contains(all, a) })
		if some = some[:min(len(some), max(0, most-len(all)))]; len(some) > 0 {
			all = append(all, some...)
			found(some)
		}
	}
	add(d.addresses(p), maxLocated)
	if d.o.Host.Network().Connectedness(p) != network.NotConnected {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, locateTimeout)
	defer cancel()
	failed := d.search(ctx, p, add)
	switch {
	case len(all) > 0:
		return nil
	case failed != nil:
		return failed
	}
	return fmt.Errorf("no server of the DHT knows an address of %v", id)
}

// QuickLocate is a cheaper Locate, which returns the addresses. It asks the known servers until one
// knows the site, the next also besides a slow one, and the network only if none does.
func (d *DHT) QuickLocate(ctx context.Context, id identity.ID) (peer.AddrInfo, error) {
	p, err := peer.Decode(id.PeerID())
	if err != nil {
		return peer.AddrInfo{}, err
	}
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan []*peer.AddrInfo, len(d.o.Bootstrap))
	waiting := 0
	next := rand.Perm(len(d.o.Bootstrap))
	for len(next) > 0 || waiting > 0 {
		var late <-chan time.Time
		if len(next) > 0 {
			server := d.o.Bootstrap[next[0]].ID
			next = next[1:]
			if !d.sender.spawn(func() {
				said, _, _ := d.messenger.GetProviders(asking, server, d.key("site", p.String()).Hash()) // nil of one that fails
				answers <- said
			}) {
				return peer.AddrInfo{}, errClosed
			}
			waiting++
			late = time.After(hedgeAfter)
		}
		select {
		case said := <-answers:
			waiting--
			if i := slices.IndexFunc(said, func(who *peer.AddrInfo) bool { return who.ID == p && len(who.Addrs) > 0 }); i >= 0 {
				return *said[i], nil
			}
		case <-late:
		case <-ctx.Done():
			return peer.AddrInfo{}, ctx.Err()
		}
	}
	at := peer.AddrInfo{ID: p}
	err = d.Locate(ctx, id, func(some []ma.Multiaddr) { at.Addrs = append(at.Addrs, some...) })
	return at, err
}

// search asks the network in all ways at once, of which none waits for a server that another one
// needs. add gets what each finds, and how many addresses there may be with these. It fails if no server
// answers.
func (d *DHT) search(ctx context.Context, p peer.ID, add func(some []ma.Multiaddr, most int)) (failed error) {
	var asking sync.WaitGroup
	if d.o.Realm.Exists() {
		asking.Go(func() {
			_ = d.providers(ctx, d.key("site", p.String()), func(server peer.ID, who peer.AddrInfo) { // what it found counts
				most := maxLocated
				if d.isKnown(server) { // others do not take its place
					most *= 2
				}
				if who.ID == p {
					add(who.Addrs, most)
				}
			})
		})
	}
	if failed = d.join(ctx); failed == nil { // the library needs a server in its table
		if d.o.Realm.Public() && d.o.Prefix != Amino {
			asking.Go(func() { d.signedAddrs(ctx, p, func(some []ma.Multiaddr) { add(some, 2*maxLocated) }) })
		}
		_, _ = d.library.FindPeer(context.WithValue(ctx, lookupTarget{}, p), p) // the peerstore has the result
		add(d.addresses(p), maxLocated)
	}
	asking.Wait()
	return failed
}

// signedAddrs calls found with the addresses in records of a site that servers hold, each newer than
// the one before.
func (d *DHT) signedAddrs(ctx context.Context, p peer.ID, found func([]ma.Multiaddr)) {
	values, err := d.library.SearchValue(ctx, keyOf(p), kad.Quorum(0))
	if err != nil {
		return
	}
	for b := range values {
		r, err := open(keyOf(p), b)
		if err != nil {
			continue
		}
		var all []ma.Multiaddr
		for _, text := range (&discovery.Site{Signed: r}).Multiaddrs() {
			if a, err := ma.NewMultiaddr(text); err == nil {
				all = append(all, a)
			}
		}
		found(all)
	}
}
