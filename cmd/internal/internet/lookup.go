package internet

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"agentsite/discovery"
	"agentsite/discovery/card"
	"agentsite/node/identity"
	"agentsite/transport/p2p"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

// Circuits returns the addresses of a site that has a place at the relays.
func (n *Network) Circuits() (at []string) {
	for _, r := range n.relays {
		for _, a := range r.Addrs {
			at = append(at, a.String()+"/p2p/"+r.ID.String()+"/p2p-circuit")
		}
	}
	return at
}

// Locate asks the tables of all realms at once for a site's addresses. It calls found, once at a time,
// with those that a table finds, as soon as it does. It blocks until all were asked, and fails if none
// has found any.
func (n *Network) Locate(ctx context.Context, id identity.ID, found func(at []string)) error {
	var mu sync.Mutex
	errs := make([]error, len(n.tables))
	var asking sync.WaitGroup
	for i, t := range n.tables {
		asking.Go(func() {
			errs[i] = t.Locate(ctx, id, func(at []multiaddr.Multiaddr) {
				mu.Lock()
				defer mu.Unlock()
				found(texts(at))
			})
		})
	}
	asking.Wait()
	if len(errs) == 0 {
		return errors.New("there is no realm to look it up in")
	}
	if slices.Contains(errs, nil) {
		return nil
	}
	return errors.Join(errs...)
}

func texts(all []multiaddr.Multiaddr) (at []string) {
	for _, a := range all {
		at = append(at, a.String())
	}
	return at
}

// quickLocate asks one table after the other for a site's addresses: those after the first cost more.
func (n *Network) quickLocate(ctx context.Context, id identity.ID) (peer.AddrInfo, error) {
	var all error
	for _, t := range n.tables {
		at, err := t.QuickLocate(ctx, id)
		if err == nil {
			return at, nil
		}
		all = errors.Join(all, err)
	}
	return peer.AddrInfo{}, all
}

// Find asks all tables at once for sites with a capability, "" for any, and then these
// sites. emit gets each site's record as soon as the site shows it, one at a time. Find blocks
// until all were asked or ctx ends; it fails only if none was found.
func (n *Network) Find(ctx context.Context, capability string, emit func(*discovery.Signed)) error {
	var mu sync.Mutex
	var failed error
	seen := make(map[identity.ID]bool)
	var asking sync.WaitGroup
	for _, t := range n.tables {
		asking.Go(func() {
			err := t.Lookup(ctx, capability, func(s discovery.Sighting) error {
				r, err := discovery.Open(s.Record)
				if err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				if !seen[r.Site] {
					seen[r.Site] = true
					emit(r)
				}
				return nil
			})
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
		})
	}
	asking.Wait()
	if len(seen) > 0 { // one table is enough
		return nil
	}
	return failed
}

// FetchFile fetches a file that a site of a realm shares, by its ID. The site is connected.
func (n *Network) FetchFile(ctx context.Context, realm discovery.Realm, site identity.ID, file card.FileID) ([]byte, error) {
	who, err := p2p.PeerID(site)
	if err != nil {
		return nil, err
	}
	return card.FetchFile(ctx, n.host, realm, peer.AddrInfo{ID: who}, file)
}

// Search returns the records of the sites of the site's realm that have a capability. For "" it
// returns the known records, without asking anybody.
func (n *Network) Search(ctx context.Context, capability string) (all []*discovery.Signed, err error) {
	if capability == "" {
		for _, s := range n.directory.Sites() {
			all = append(all, s.Signed)
		}
		return all, nil
	}
	err = n.Find(ctx, capability, func(r *discovery.Signed) { all = append(all, r) })
	return all, err
}

// fetchSpread is the maximum random delay of a fetch, for each known site. All hear of a new site
// at once, which may be a small board.
const fetchSpread = 50 * time.Millisecond

// fetchRecord fetches a site's record from the site, unless another medium has brought the record
// of that sequence, or brings it during a short delay. A new site looks for all others, too, and is
// then asked over the same connections. A site that announces an older record than the known one is
// sent the known one.
func (n *Network) fetchRecord(ctx context.Context, id identity.ID, sequence uint64) (discovery.Sighting, error) {
	known, there := n.directory.Site(id)
	if there && known.Sequence == sequence {
		return discovery.Sighting{Site: id, Record: known.Bytes()}, nil
	}
	most := time.Duration(1+len(n.directory.Sites())) * fetchSpread
	if there {
		most *= 4 // the known record will do, and many may have a new one: a relay of theirs is gone
	}
	discovery.Sleep(ctx, rand.N(most))
	known, there = n.directory.Site(id)
	if there && known.Sequence == sequence {
		return discovery.Sighting{Site: id, Record: known.Bytes()}, nil
	}
	who, err := p2p.PeerID(id)
	if err != nil {
		return discovery.Sighting{}, err
	}
	at := peer.AddrInfo{ID: who}
	if n.host.Network().Connectedness(who) == network.NotConnected {
		at, err = n.quickLocate(ctx, id)
	}
	if there && known.Sequence > sequence {
		if err == nil {
			err = card.SendNewer(ctx, n.host, n.realm, at, known.Signed)
		}
		if err != nil {
			slog.Debug("sending a newer record failed", "site", id, "err", err)
		}
		return discovery.Sighting{Site: id, Record: known.Bytes()}, nil
	}
	if err != nil {
		return discovery.Sighting{}, err
	}
	c, err := card.Fetch(ctx, n.host, n.realm, at)
	return discovery.Sighting{Site: id, Record: c.Record}, err
}
