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

	"github.com/ipfs/go-cid"
	kad "github.com/libp2p/go-libp2p-kad-dht"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	"golang.org/x/sync/errgroup"
)

const (
	// Servers forget after a day, and some forget the addresses earlier.
	minAnnounceInterval = 6 * time.Hour
	maxAnnounceInterval = 10 * time.Hour

	minRetryPause = 2 * time.Second // before a retry
	maxRetryPause = 5 * time.Minute
	maxAwayPause  = 30 * time.Second // before an absent known server is tried again

	// Known servers are asked now and then whether they still know this host: others may have
	// taken its slot.
	minCheckInterval = 4 * time.Minute
	maxCheckInterval = 6 * time.Minute

	changeDelay = time.Second // in which changes are merged

	// Where servers that should store an entry did not, they are told again soon: a lookup
	// does not ask all of them. Not forever: some may never store it.
	partialRetry      = 20 * time.Second
	maxPartialRetries = 4 // each after twice as long

	replication    = 20 // servers of a key, as in the library
	maxKeysAtOnce  = 4
	sendRetryPause = 250 * time.Millisecond // then twice and four times as long
)

// Announce makes servers store that this host has the realm's site, with its capabilities; in the
// public realm also its record. It repeats that in time, when the host's addresses change, and when
// a known server has forgotten. It removes nothing at its end: a lookup then finds that the site
// does not answer.
func (d *DHT) Announce(ctx context.Context, record *discovery.Signed) error {
	if !d.o.Realm.Exists() {
		return errors.New("announcing needs a realm")
	}
	if record.Site.PeerID() != d.self.String() {
		return fmt.Errorf("the DHT's host is %v, and cannot announce %v", d.self, record.Site)
	}
	events, err := d.o.Host.EventBus().Subscribe([]any{new(event.EvtLocalAddressesUpdated), new(event.EvtPeerConnectednessChanged)})
	if err != nil {
		return err
	}
	changes := d.watch(events)
	defer changes.end()
	d.announced.Store(record)
	defer d.announced.CompareAndSwap(record, nil)
	s := newAnnounceState()
	next := time.NewTimer(0)
	defer next.Stop()
	check := time.NewTimer(minCheckInterval + rand.N(maxCheckInterval-minCheckInterval))
	defer check.Stop()
	started, failing := false, false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changes.woken:
			if !started { // it is about to be told all
				continue
			}
			for _, p := range changes.take() {
				s.suspect(time.Now(), p)
			}
			if !s.isCurrent(selectAddrs(d.o.Host.Addrs())) {
				s.due = time.Now().Add(changeDelay)
			}
		case <-check.C:
			check.Reset(minCheckInterval + rand.N(maxCheckInterval-minCheckInterval))
			for _, b := range d.o.Bootstrap {
				s.suspect(time.Now(), b.ID)
			}
		case <-next.C:
			started = true
			err := d.update(ctx, record, s)
			if err != nil && !failing && ctx.Err() == nil {
				d.o.Log.Warn("announcement in the DHT incomplete", "err", err)
			}
			failing = err != nil
		}
		next.Reset(time.Until(s.next()))
	}
}

// changeWatcher collects the events that matter to Announce.
type changeWatcher struct {
	woken chan struct{}
	end   func()

	mu      sync.Mutex
	servers []peer.ID // known ones that connected or disconnected, each once
}

// watch receives events at once, whatever Announce does meanwhile: the event bus blocks the
// host until all subscribers have received.
func (d *DHT) watch(events event.Subscription) *changeWatcher {
	c := &changeWatcher{woken: make(chan struct{}, 1)}
	var taking sync.WaitGroup
	taking.Go(func() {
		for e := range events.Out() {
			if e, ok := e.(event.EvtPeerConnectednessChanged); ok && !c.note(e.Peer, d.isKnown) {
				continue
			}
			select {
			case c.woken <- struct{}{}:
			default:
			}
		}
	})
	c.end = func() {
		events.Close()
		taking.Wait()
	}
	return c
}

// note stores a known server and reports whether p is one.
func (c *changeWatcher) note(p peer.ID, known func(peer.ID) bool) bool {
	if !known(p) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.servers, p) {
		c.servers = append(c.servers, p)
	}
	return true
}

// take returns the servers since its last call.
func (c *changeWatcher) take() (servers []peer.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	servers, c.servers = c.servers, nil
	return servers
}

// announceState tracks the announcements of the site in the network. It uses no clock and no
// network.
type announceState struct {
	addrs   []ma.Multiaddr // where it is
	due     time.Time      // when to announce to all
	pause   time.Duration  // before a failed announcement is repeated
	partial int            // consecutive announcements that only some stored

	unconfirmed     map[peer.ID]bool // known servers that were absent, or may have forgotten
	recheckAt       time.Time        // when to ask these
	recheckPause    time.Duration    // before that is repeated
	noRecheckBefore time.Time        // limits rechecks where connections flap
}

func newAnnounceState() *announceState {
	return &announceState{pause: minRetryPause, unconfirmed: make(map[peer.ID]bool), recheckPause: minRetryPause}
}

// isCurrent reports whether the announced addresses are these.
func (s *announceState) isCurrent(at []ma.Multiaddr) bool {
	return len(s.addrs) == len(at) && !slices.ContainsFunc(at, func(a ma.Multiaddr) bool { return !ma.Contains(s.addrs, a) })
}

// next returns when something is due.
func (s *announceState) next() time.Time {
	if len(s.unconfirmed) > 0 && s.recheckAt.Before(s.due) {
		return s.recheckAt
	}
	return s.due
}

// suspect schedules a recheck of a known server that may have forgotten the site, or is back;
// later where its connections flap.
func (s *announceState) suspect(now time.Time, server peer.ID) {
	waits := len(s.unconfirmed) > 0
	s.unconfirmed[server] = true
	switch {
	case now.After(s.noRecheckBefore):
		s.noRecheckBefore = now.Add(maxAwayPause)
		s.recheckAt = now.Add(changeDelay)
	case !waits:
		s.recheckAt = s.noRecheckBefore
	}
}

// rechecked stores whether all known servers know the site.
func (s *announceState) rechecked(now time.Time, all bool) {
	if all {
		s.recheckPause = minRetryPause
		return
	}
	s.recheckAt = now.Add(jitter(s.recheckPause))
	s.recheckPause = min(2*s.recheckPause, maxAwayPause)
}

// announced stores the result of an announcement.
func (s *announceState) announced(now time.Time, at []ma.Multiaddr, untold map[peer.ID]bool, whole bool, err error) {
	s.addrs = at
	if len(untold) > 0 && len(s.unconfirmed) == 0 {
		s.recheckAt = now.Add(jitter(s.recheckPause))
	}
	clear(s.unconfirmed)
	maps.Copy(s.unconfirmed, untold)
	if err != nil {
		s.due = now.Add(jitter(s.pause))
		if s.pause = min(2*s.pause, maxRetryPause); errors.Is(err, errUnreachable) { // which costs little
			s.pause = min(s.pause, maxAwayPause)
		}
		return
	}
	s.pause = minRetryPause
	wait := minAnnounceInterval + rand.N(maxAnnounceInterval-minAnnounceInterval) // not all at once
	if s.partial++; whole || s.partial > maxPartialRetries {
		s.partial = 0
	} else {
		wait = partialRetry << s.partial / 2
	}
	s.due = now.Add(wait)
}

func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2) }

// errUnreachable means that servers do not answer.
var errUnreachable = errors.New("unreachable")

// update makes the announcements that the network does not have.
func (d *DHT) update(ctx context.Context, record *discovery.Signed, s *announceState) (err error) {
	if at := selectAddrs(d.o.Host.Addrs()); !s.isCurrent(at) || !time.Now().Before(s.due) {
		var untold map[peer.ID]bool
		var whole bool
		untold, whole, err = d.announce(ctx, record, at)
		s.announced(time.Now(), at, untold, whole, err)
	}
	if len(s.unconfirmed) > 0 && !time.Now().Before(s.recheckAt) {
		away := d.recheck(ctx, s)
		s.rechecked(time.Now(), away == nil)
		err = errors.Join(err, away)
	}
	return err
}

// announce announces once, and fails if most servers of a key do not store it. It returns the
// known servers that did not, and whether all others did.
func (d *DHT) announce(ctx context.Context, record *discovery.Signed, at []ma.Multiaddr) (untold map[peer.ID]bool, whole bool, err error) {
	untold = make(map[peer.ID]bool)
	if len(at) == 0 {
		return untold, false, errors.New("the host has no reachable address yet")
	}
	keys, err := d.keys()
	if err != nil {
		return untold, false, err
	}
	if err := d.join(ctx); err != nil {
		return untold, false, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	var all errgroup.Group
	var mu sync.Mutex
	refused := 0
	all.SetLimit(maxKeysAtOnce)
	for _, k := range keys {
		all.Go(func() error {
			silent, refusing, err := d.provide(ctx, k, at)
			mu.Lock()
			defer mu.Unlock()
			for _, p := range refusing {
				if d.isKnown(p) {
					untold[p] = true
				} else {
					refused++
				}
			}
			refused += silent
			return err
		})
	}
	if d.o.Realm.Public() && d.o.Prefix != Amino {
		all.Go(func() error { return d.put(ctx, record) })
	}
	err = all.Wait()
	return untold, refused == 0, err
}

// keys returns the keys of this host's site: the realm's, its own, and those of its
// capabilities.
func (d *DHT) keys() ([]cid.Cid, error) {
	keys := []cid.Cid{d.key("realm"), d.key("site", d.self.String())}
	for _, name := range d.o.Capabilities() {
		if err := card.CheckCapability(name); err != nil {
			return nil, err
		}
		keys = append(keys, d.key("capability", name))
	}
	return keys, nil
}

// put stores the site's record at the servers nearest to the site.
func (d *DHT) put(ctx context.Context, record *discovery.Signed) error {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	err := d.library.PutValue(ctx, keyOf(d.self), record.Bytes())
	if d.isAlone() {
		return nil
	}
	// Servers keep the newer one, and do not say so.
	if b, gets := d.library.GetValue(ctx, keyOf(d.self), kad.Quorum(0)); gets == nil && d.o.Newer != nil {
		if r, opens := open(keyOf(d.self), b); opens == nil && r.Sequence > record.Sequence {
			d.o.Newer(r)
		}
	}
	return err
}

// isAlone reports whether this is a server that knows no other.
func (d *DHT) isAlone() bool { return d.o.Server && d.library.RoutingTable().Size() == 0 }

// provide announces to the servers nearest to a key, and to the known ones, that this host has it.
// The library announces only to the former, and ignores whether they stored it. provide returns the
// servers that did not, how many are missing among the nearest, and an error if most did not.
func (d *DHT) provide(ctx context.Context, key cid.Cid, at []ma.Multiaddr) (silent int, refusing []peer.ID, err error) {
	if err := d.library.Provide(ctx, key, false); err != nil { // entries that this host holds itself
		return 0, nil, err
	}
	near, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	servers, err := d.library.GetClosestPeers(near, string(key.Hash())) // as many as it found
	if len(servers) == 0 && d.isAlone() {
		return 0, nil, nil
	}
	silent = max(0, min(d.library.RoutingTable().Size(), replication)-len(servers)) // that should be among them
	for _, b := range d.o.Bootstrap {
		if !slices.Contains(servers, b.ID) {
			servers = append(servers, b.ID)
		}
	}
	var mu sync.Mutex
	var all errgroup.Group
	for _, s := range servers {
		all.Go(func() error {
			err := d.announceTo(ctx, s, key, at)
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				refusing = append(refusing, s)
			}
			return err
		})
	}
	why := all.Wait()
	if len(refusing) > len(servers)/2 || len(servers) == 0 {
		return silent, refusing, fmt.Errorf("only %d of %d servers of the DHT store it (%w)", len(servers)-len(refusing), len(servers), errors.Join(err, why))
	}
	return silent, refusing, nil
}

// announceTo tells one server, with retries: it may be busy.
func (d *DHT) announceTo(ctx context.Context, server peer.ID, key cid.Cid, at []ma.Multiaddr) (err error) {
	for pause := sendRetryPause; ; pause *= 2 {
		if err = d.messenger.PutProviderAddrs(ctx, server, key.Hash(), peer.AddrInfo{ID: d.self, Addrs: at}); err == nil || pause > 4*sendRetryPause {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// isKnown reports whether a peer is one of the configured servers.
func (d *DHT) isKnown(p peer.ID) bool {
	return slices.ContainsFunc(d.o.Bootstrap, func(b peer.AddrInfo) bool { return b.ID == p })
}

// recheck contacts known servers that may have forgotten this host, and tells those that did.
// It fails while one does not answer or store.
func (d *DHT) recheck(ctx context.Context, s *announceState) error {
	keys, err := d.keys()
	if err != nil {
		return err
	}
	var all errgroup.Group
	var mu sync.Mutex
	for _, b := range slices.DeleteFunc(slices.Clone(d.o.Bootstrap), func(b peer.AddrInfo) bool { return !s.unconfirmed[b.ID] }) {
		all.Go(func() error {
			err := d.recheckServer(ctx, b, keys, s.addrs)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				delete(s.unconfirmed, b.ID)
			}
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return fmt.Errorf("%w: %w", errUnreachable, err)
	}
	return nil
}

// recheckServer asks a known server for this host under its own key, the realm's, and a random one.
// If one is missing, it announces all of them.
func (d *DHT) recheckServer(ctx context.Context, b peer.AddrInfo, keys []cid.Cid, at []ma.Multiaddr) error {
	if err := d.contact(ctx, b); err != nil {
		return fmt.Errorf("the known server %v does not answer (%w)", b.ID, err)
	}
	ask := keys[:2:2]
	if len(keys) > 2 {
		ask = append(ask, keys[2+rand.N(len(keys)-2)])
	}
	forgot := false
	for _, k := range ask {
		who, _, err := d.messenger.GetProviders(ctx, b.ID, k.Hash())
		if err != nil {
			return err
		}
		// Where there are more than an answer holds, this host need not be among them.
		forgot = forgot || len(who) < maxProviders && !slices.ContainsFunc(who, func(p *peer.AddrInfo) bool { return p.ID == d.self })
	}
	if !forgot {
		return nil
	}
	var all errgroup.Group
	all.SetLimit(maxKeysAtOnce)
	for _, k := range keys {
		all.Go(func() error { return d.announceTo(ctx, b.ID, k, at) })
	}
	return all.Wait()
}
