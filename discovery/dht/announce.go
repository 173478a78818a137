package dht

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"agentsite/discovery"
	"agentsite/discovery/card"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	"golang.org/x/sync/errgroup"
)

const (
	// Servers forget after a day, and the addresses earlier on some.
	announceLeast = 6 * time.Hour
	announceMost  = 10 * time.Hour

	pauseLeast = 2 * time.Second // before what failed is tried again
	pauseMost  = 5 * time.Minute

	settle = time.Second // in which changes that come together are one

	// Where servers did not take it that should have, they are told soon again: who looks
	// does not ask all. Not for ever: some may never take it.
	tellSoon = 20 * time.Second
	mostSoon = 4 // times, each after twice as long

	closest    = 20 // servers of a key, as the library has it
	keysAtOnce = 4
	tellAgain  = 250 * time.Millisecond // and after twice and four times as long
)

// Announce has servers of the network know that this host has the realm's site, and what
// that can do; in the public realm they hold its record too. It does so again in time,
// when the host's addresses change, and when a known server has forgotten. Nothing is
// taken back at its end: who looks for the site then finds that it does not answer.
func (d *DHT) Announce(ctx context.Context, record *discovery.Signed) error {
	if !d.o.Realm.Exists() {
		return errors.New("who is of no realm announces nothing")
	}
	if record.Site.PeerID() != d.self.String() {
		return fmt.Errorf("the DHT's host is %v, and cannot announce %v", d.self, record.Site)
	}
	changes, err := d.o.Host.EventBus().Subscribe([]any{new(event.EvtLocalAddressesUpdated), new(event.EvtPeerConnectednessChanged)})
	if err != nil {
		return err
	}
	defer changes.Close()
	d.announced.Store(record)
	defer d.announced.CompareAndSwap(record, nil)
	next := time.NewTimer(0)
	defer next.Stop()
	var s standing
	pause := pauseLeast
	started := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-changes.Out():
			if !started { // it is about to be told all
				continue
			}
			if d.isAway(e) && !s.away {
				s.away, pause = true, pauseLeast
				next.Reset(settle)
			} else if !s.shows(best(d.o.Host.Addrs())) {
				next.Reset(settle)
			}
			continue
		case <-next.C:
		}
		started = true
		if err := d.keep(ctx, record, &s); err != nil {
			if pause == pauseLeast && ctx.Err() == nil {
				d.o.Log.Warn("the site could not be announced everywhere in the DHT, and that is tried again", "error", err)
			}
			next.Reset(pause)
			pause = min(2*pause, pauseMost)
			continue
		}
		pause = pauseLeast
		next.Reset(time.Until(s.due))
	}
}

// standing is what the network knows of the site.
type standing struct {
	at   []ma.Multiaddr // where it is
	due  time.Time      // when it has to be told again
	away bool           // a known server was, and may have forgotten
	soon int            // how often it was told to some only, one time after the other
}

func (s *standing) shows(at []ma.Multiaddr) bool {
	return len(s.at) == len(at) && !slices.ContainsFunc(at, func(a ma.Multiaddr) bool { return !ma.Contains(s.at, a) })
}

// keep tells the network what it does not know any more, or fails.
func (d *DHT) keep(ctx context.Context, record *discovery.Signed, s *standing) error {
	var missing error
	if s.away {
		var forgot bool
		if forgot, missing = d.back(ctx); forgot {
			s.due = time.Time{}
		}
		s.away = missing != nil
	}
	if at := best(d.o.Host.Addrs()); !s.shows(at) || !time.Now().Before(s.due) {
		whole, err := d.announce(ctx, record, at)
		if err != nil {
			s.due = time.Time{}
			return err
		}
		wait := announceLeast + rand.N(announceMost-announceLeast) // not all at once
		if s.soon++; whole || s.soon > mostSoon {
			s.soon = 0
		} else {
			wait = tellSoon << s.soon / 2
		}
		s.at, s.due = at, time.Now().Add(wait)
	}
	return missing
}

// announce does it once, and fails if most servers do not take a part of it. It reports
// whether all did.
func (d *DHT) announce(ctx context.Context, record *discovery.Signed, at []ma.Multiaddr) (whole bool, err error) {
	if len(at) == 0 {
		return false, errors.New("the host has no address yet at which it is reached")
	}
	if err := d.join(ctx); err != nil {
		return false, err
	}
	keys := []cid.Cid{d.key("realm"), d.key("site", record.Site.PeerID())}
	for _, name := range d.o.Capabilities() {
		if err := card.CheckCapability(name); err != nil {
			return false, err
		}
		keys = append(keys, d.key("capability", name))
	}
	var all errgroup.Group
	var refused atomic.Int32
	all.SetLimit(keysAtOnce)
	for _, k := range keys {
		all.Go(func() error {
			n, err := d.provide(ctx, k, at)
			refused.Add(int32(n))
			return err
		})
	}
	if d.o.Realm.Public() && d.o.Prefix != Amino {
		all.Go(func() error { return d.put(ctx, record) })
	}
	err = all.Wait()
	return refused.Load() == 0, err
}

// put has the servers nearest to the site hold its record.
func (d *DHT) put(ctx context.Context, record *discovery.Signed) error {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	err := d.library.PutValue(ctx, keyOf(d.self), record.Bytes())
	if d.alone() {
		return nil
	}
	return err
}

// alone reports whether this is a server that knows no other: it holds what it is told.
func (d *DHT) alone() bool { return d.o.Server && d.library.RoutingTable().Size() == 0 }

// provide tells the servers nearest to a key, and those that are known, that this host
// has it. The library would tell the former alone, and not say whether they took it. It
// returns how many did not, or were not there just then, and fails if most did not.
func (d *DHT) provide(ctx context.Context, key cid.Cid, at []ma.Multiaddr) (refused int, err error) {
	if err := d.library.Provide(ctx, key, false); err != nil { // what this host holds itself
		return 0, err
	}
	near, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	servers, err := d.library.GetClosestPeers(near, string(key.Hash())) // as many as it found
	if len(servers) == 0 && d.alone() {
		return 0, nil
	}
	silent := max(0, min(d.library.RoutingTable().Size(), closest)-len(servers)) // who should be among them
	for _, b := range d.o.Bootstrap {
		if !slices.Contains(servers, b.ID) {
			servers = append(servers, b.ID)
		}
	}
	var told atomic.Int32
	var all errgroup.Group
	for _, s := range servers {
		all.Go(func() error {
			err := d.tell(ctx, s, key, at)
			if err == nil {
				told.Add(1)
			}
			return err
		})
	}
	why := all.Wait()
	refused = len(servers) - int(told.Load())
	if refused > len(servers)/2 || len(servers) == 0 {
		return refused, fmt.Errorf("%d of %d servers of the DHT take it: %w", told.Load(), len(servers), errors.Join(err, why))
	}
	return refused + silent, nil
}

// tell tells one server, which may have much to do just then.
func (d *DHT) tell(ctx context.Context, server peer.ID, key cid.Cid, at []ma.Multiaddr) (err error) {
	for pause := tellAgain; ; pause *= 2 {
		if err = d.messenger.PutProviderAddrs(ctx, server, key.Hash(), peer.AddrInfo{ID: d.self, Addrs: at}); err == nil || pause > 4*tellAgain {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// isAway reports whether an event is the end of the connections to a known server: it
// may start anew, and has forgotten then.
func (d *DHT) isAway(e any) bool {
	c, ok := e.(event.EvtPeerConnectednessChanged)
	return ok && c.Connectedness != network.Connected && d.known(c.Peer)
}

func (d *DHT) known(p peer.ID) bool {
	return slices.ContainsFunc(d.o.Bootstrap, func(b peer.AddrInfo) bool { return b.ID == p })
}

// back meets the known servers again, and reports whether one has forgotten this host. It
// fails while one does not answer.
func (d *DHT) back(ctx context.Context) (forgot bool, err error) {
	var all errgroup.Group
	var forgotten atomic.Bool
	for _, b := range d.o.Bootstrap {
		all.Go(func() error {
			if err := d.meet(ctx, b); err != nil {
				return fmt.Errorf("the known server %v is away: %w", b.ID, err)
			}
			who, _, err := d.messenger.GetProviders(ctx, b.ID, d.key("site", d.self.String()).Hash())
			if err == nil && !slices.ContainsFunc(who, func(p *peer.AddrInfo) bool { return p.ID == d.self }) {
				forgotten.Store(true)
			}
			return err
		})
	}
	err = all.Wait()
	return forgotten.Load(), err
}
