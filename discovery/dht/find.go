package dht

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"agentsite/discovery"
	"agentsite/discovery/card"
	"agentsite/node/identity"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	ma "github.com/multiformats/go-multiaddr"
)

const (
	findLeast = 25 * time.Minute
	findMost  = 35 * time.Minute
	holds     = 70 * time.Minute // what was found

	lookPatience = 30 * time.Second // for all that the servers say
	headStart    = time.Second      // of the known servers
	askPatience  = 4 * time.Second  // for a site
	asksAtOnce   = 16
	mostAsked    = 512 // sites of one key
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
	pause := pauseLeast
	for {
		found, err := d.look(ctx, d.key("realm"), slices.Collect(maps.Values(there)), "", emit)
		if ctx.Err() != nil {
			return nil
		}
		wait := findLeast + rand.N(findMost-findLeast)
		if err != nil {
			d.o.Log.Warn("sites could not be found in the DHT, and that is tried again", "after", pause, "error", err)
			wait, pause = pause, min(2*pause, pauseMost)
			maps.Copy(there, found)
		} else {
			pause = pauseLeast
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
	_, err := d.look(ctx, key, nil, capability, emit)
	return err
}

// look asks those for their cards of whom servers say that they have a key, and some
// besides, and emits each whose card is right. It returns who that was, and where.
func (d *DHT) look(ctx context.Context, key cid.Cid, besides []peer.AddrInfo, capability string, emit func(discovery.Sighting) error) (map[peer.ID]peer.AddrInfo, error) {
	l := &looking{d: d, capability: capability, emit: emit, asked: make(map[peer.ID]bool), places: make(chan struct{}, asksAtOnce), found: make(map[peer.ID]peer.AddrInfo)}
	for _, p := range besides {
		l.add(ctx, p)
	}
	err := d.providers(ctx, key, func(p peer.AddrInfo) { l.add(ctx, p) })
	l.asking.Wait()
	for _, p := range l.failed { // more may be known of them now, and less to do
		l.asking.Go(func() { l.ask(ctx, p) })
	}
	l.asking.Wait()
	return l.found, err
}

// looking is one look.
type looking struct {
	d          *DHT
	capability string
	emit       func(discovery.Sighting) error
	asking     sync.WaitGroup
	places     chan struct{}

	asked map[peer.ID]bool // of the one goroutine that adds

	mu     sync.Mutex      // held while emitting
	failed []peer.AddrInfo // who is asked once more
	found  map[peer.ID]peer.AddrInfo
}

// add has a site be asked, once.
func (l *looking) add(ctx context.Context, p peer.AddrInfo) {
	if l.asked[p.ID] || len(l.asked) >= mostAsked {
		return
	}
	l.asked[p.ID] = true
	l.asking.Go(func() {
		if l.ask(ctx, p) {
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.failed = append(l.failed, p)
	})
}

// ask emits a site if it shows its card, and reports whether it did.
func (l *looking) ask(ctx context.Context, p peer.AddrInfo) bool {
	select {
	case l.places <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	seen, names, err := l.d.ask(ctx, p)
	<-l.places
	if err != nil {
		l.d.o.Log.Debug("a site of which the DHT knows does not show its card", "peer", p.ID, "error", err)
		return false
	}
	if l.capability != "" && !slices.Contains(names, l.capability) {
		return true // it could once
	}
	l.mu.Lock()
	l.found[p.ID] = peer.AddrInfo{ID: p.ID, Addrs: best(l.d.addresses(p.ID))}
	err = l.emit(seen) // whether it is taken there changes nothing here
	l.mu.Unlock()
	var older *discovery.Older
	if errors.As(err, &older) && p.ID != l.d.self {
		l.d.newer(ctx, p, older.Newest)
	}
	return true
}

// newer has a site that shows an older record than is known go beyond that.
func (d *DHT) newer(ctx context.Context, p peer.AddrInfo, newest *discovery.Signed) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	if err := card.Tell(ctx, d.o.Host, d.o.Realm, p, newest); err != nil {
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
		return discovery.Sighting{Site: id, Record: r.Bytes(), For: holds}, d.o.Capabilities(), nil
	}
	net := d.o.Host.Network()
	before := net.Connectedness(p.ID)
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	c, err := card.Ask(ctx, d.o.Host, d.o.Realm, p)
	at := ends(net.ConnsToPeer(p.ID))
	if before == network.NotConnected {
		d.part(p.ID)
	}
	if err != nil {
		return discovery.Sighting{}, nil, err
	}
	return discovery.Sighting{Site: id, Record: c.Record, At: at, For: holds}, c.Capabilities, nil
}

// addresses are those at which a peer may be, as far as is known here.
func (d *DHT) addresses(p peer.ID) []ma.Multiaddr { return d.o.Host.Peerstore().Addrs(p) }

// part ends connections to who was only asked: there may be many.
func (d *DHT) part(p peer.ID) {
	if d.library.RoutingTable().Find(p) != "" || d.o.Host.ConnManager().IsProtected(p, "") {
		return
	}
	for _, c := range d.o.Host.Network().ConnsToPeer(p) {
		if len(c.GetStreams()) == 0 {
			c.Close()
		}
	}
}

// providers emits who is said to have a key, from one goroutine and some more than once:
// first who the known servers say, whom nobody can hide, and then the network.
func (d *DHT) providers(ctx context.Context, key cid.Cid, emit func(peer.AddrInfo)) error {
	if err := d.join(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	said := make(chan peer.AddrInfo)
	var first sync.WaitGroup
	for _, b := range d.o.Bootstrap {
		first.Go(func() {
			who, _, err := d.messenger.GetProviders(ctx, b.ID, key.Hash())
			if err != nil {
				d.o.Log.Debug("a known server of the DHT does not answer", "peer", b.ID, "error", err)
			}
			for _, p := range who {
				d.o.Host.Peerstore().AddAddrs(p.ID, p.Addrs, peerstore.TempAddrTTL)
				said <- *p
			}
		})
	}
	answered := make(chan struct{})
	go func() {
		first.Wait()
		close(answered)
	}()
	go func() {
		defer close(said)
		select {
		case <-answered:
		case <-time.After(headStart):
		}
		for p := range d.library.FindProvidersAsync(ctx, key, 0) {
			said <- p
		}
		<-answered
	}()
	for p := range said {
		emit(p)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("the DHT was not asked to its end: %w", ctx.Err())
	}
	return nil
}
