package internet

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/discovery"
	"agentsite/discovery/card"
	"agentsite/discovery/dht"
	"agentsite/discovery/gossip"
	"agentsite/transport/p2p"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

const (
	// relayInterval is how often the connections to relays are checked, and relayTimeout how
	// long one may take.
	relayInterval = 30 * time.Second
	relayTimeout  = 10 * time.Second

	relayTag = "relay"
)

// Options are how a program takes part.
type Options struct {
	P2P    p2p.Options
	Relays []peer.AddrInfo // to stay connected to; the DHT begins with them
	Realms []Realm         // whose sites are looked up
	Server bool            // it answers other's lookups in its site's realm
	Site   *Site           // nil for a program that announces none

	noGossip bool // for a simulation of the tables alone
}

// Realm is a realm whose sites are looked up.
type Realm struct {
	discovery.Realm
	IPFS bool // also in the public DHT of IPFS
}

// Site describes the own site to others of its realm. Its functions are called concurrently.
type Site struct {
	Realm
	Card  func() card.Card
	Newer func(*discovery.Signed)  // is called with a newer record of the site than it knows
	Files func(card.FileID) []byte // returns a file that the site shares with its realm; nil for none
}

// Network is a program's part in the global network. It is safe for concurrent use. Close it.
type Network struct {
	*p2p.Host
	host       host.Host // the same one; a simulation has only this
	relays     []peer.AddrInfo
	reserving  []peer.AddrInfo // the relays at which the host is reached
	realm      discovery.Realm // the site's; the zero one for none
	media      map[string]discovery.Medium
	directory  *discovery.Directory // the other sites of the site's realm; nil without one
	tables     []*dht.DHT
	deferred   []func() // in the order of Join; Close runs them backwards
	serveTable bool
}

// Join opens the host and the parts named in Options. It does not wait for the network.
func Join(o Options) (n *Network, err error) {
	o.P2P.Background = gossip.Protocol
	host, err := p2p.New(o.P2P)
	if err != nil {
		return nil, err
	}
	n, err = join(host, o)
	if err != nil {
		return nil, err
	}
	n.Host = host
	return n, nil
}

// join opens the parts on a host, and closes the host where it fails.
func join(host host.Host, o Options) (n *Network, err error) {
	n = &Network{
		host: host, relays: o.Relays, reserving: o.P2P.Relays, serveTable: o.Server, media: make(map[string]discovery.Medium),
	}
	defer func(n *Network) { // a return of an error sets the result to nil
		if err != nil {
			n.Close()
		}
	}(n)
	for _, r := range o.Realms {
		if err := n.joinRealm(r, nil); err != nil {
			return nil, err
		}
	}
	if o.Site == nil {
		return n, nil
	}
	n.realm = o.Site.Realm.Realm
	if err := n.joinRealm(o.Site.Realm, o.Site); err != nil {
		return nil, err
	}
	n.deferred = append(n.deferred, card.Serve(host, n.realm, o.Site.Card, o.Site.Newer), card.ServeFiles(host, n.realm, o.Site.Files))
	if !o.noGossip {
		announcements, err := gossip.New(gossip.Options{Host: host, Realm: n.realm, Ask: n.fetchRecord})
		if err != nil {
			return nil, err
		}
		n.deferred = append(n.deferred, func() { announcements.Close() })
		n.media["gossip"] = announcements
	}
	n.directory = discovery.NewDirectory(slog.Default(), n.media)
	return n, nil
}

// joinRealm opens the tables of a realm; site is nil if the realm is only searched.
func (n *Network) joinRealm(r Realm, site *Site) error {
	o := dht.Options{Host: n.host, Realm: r.Realm, Server: n.serveTable, Bootstrap: n.relays, Log: slog.Default()}
	if site != nil {
		o.Newer = site.Newer
		o.Capabilities = func() []string { return site.Card().Capabilities }
	}
	if err := n.openTable("dht", o); err != nil || !r.IPFS {
		return err
	}
	o.Server, o.Prefix, o.Bootstrap = false, dht.Amino, nil
	return n.openTable("ipfs", o)
}

func (n *Network) openTable(name string, o dht.Options) error {
	t, err := dht.New(o)
	if err != nil {
		return err
	}
	n.deferred = append(n.deferred, func() { t.Close() })
	n.tables = append(n.tables, t)
	n.media[name] = t
	return nil
}

// Close leaves the network.
func (n *Network) Close() error {
	for _, end := range slices.Backward(n.deferred) {
		end()
	}
	return n.host.Close()
}

// Realm returns the site's realm, the zero one for none.
func (n *Network) Realm() discovery.Realm { return n.realm }

// Media returns the media on which the site is announced, by their names. The caller does
// not change the map.
func (n *Network) Media() map[string]discovery.Medium { return n.media }

// Run stays connected to the relays and follows the other sites of the site's realm, until
// ctx ends.
func (n *Network) Run(ctx context.Context) {
	var following sync.WaitGroup
	if n.directory != nil {
		following.Go(func() { n.directory.Run(ctx) })
	}
	keepConnected(ctx, n.host, n.relays)
	following.Wait()
}

func keepConnected(ctx context.Context, host host.Host, relays []peer.AddrInfo) {
	every := time.NewTicker(relayInterval)
	defer every.Stop()
	for {
		var connecting sync.WaitGroup
		for _, r := range relays {
			host.ConnManager().Protect(r.ID, relayTag)
			if host.Network().Connectedness(r.ID) != network.Connected {
				connecting.Go(func() { connectRelay(ctx, host, r) })
			}
		}
		connecting.Wait()
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

func connectRelay(ctx context.Context, host host.Host, r peer.AddrInfo) {
	ctx, cancel := context.WithTimeout(ctx, relayTimeout)
	defer cancel()
	// Also where many attempts have failed before: it may be there again.
	if err := host.Connect(network.WithForceDirectDial(ctx, "relay"), r); err != nil && ctx.Err() == nil {
		slog.Debug("a relay does not answer", "relay", r.ID, "err", err)
	}
}

// OnAddressChange calls changed after each change of the host's addresses, until ctx ends.
func (n *Network) OnAddressChange(ctx context.Context, changed func()) {
	changes, err := n.host.EventBus().Subscribe(new(event.EvtLocalAddressesUpdated))
	if err != nil {
		slog.Error("watching the site's addresses failed", "err", err)
		return
	}
	defer changes.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changes.Out():
			changed()
		}
	}
}

// Before a site is announced, it waits at most reservationTimeout for a relay's reservation, and
// settleDelay for further changes, because each announcement goes to many.
const (
	reservationTimeout = 10 * time.Second
	settleDelay        = 2 * time.Second
)

// WaitReachable waits, for a bounded time, until the host has an address that others can reach from
// anywhere, through a relay or directly. Without relays it returns at once.
func (n *Network) WaitReachable(ctx context.Context) {
	if len(n.reserving) == 0 {
		return
	}
	first, cancel := context.WithTimeout(ctx, reservationTimeout)
	defer cancel()
	n.OnAddressChange(first, func() {
		if slices.ContainsFunc(n.host.Addrs(), func(a multiaddr.Multiaddr) bool {
			return p2p.IsRelayed(a) || manet.IsPublicAddr(a)
		}) {
			cancel()
		}
	})
	discovery.Sleep(ctx, settleDelay)
}

// maxAddresses is how many addresses of a host are announced.
const maxAddresses = 6

// Addresses returns the addresses at which others reach the host. Those through relays, which most
// can use, come first, then public ones, then those of its own network.
func (n *Network) Addresses() []string {
	rank := func(a multiaddr.Multiaddr) int {
		_, tcp := a.ValueForProtocol(multiaddr.P_TCP)
		r := 0
		switch {
		case manet.IsIPLoopback(a):
			r = 6
		case p2p.IsRelayed(a):
		case manet.IsPublicAddr(a):
			r = 2
		default:
			r = 4
		}
		if tcp == nil { // QUIC goes through more routers
			r++
		}
		return r
	}
	all := slices.Clone(n.host.Addrs())
	slices.SortFunc(all, func(a, b multiaddr.Multiaddr) int { // in one order, or it would be another record
		return cmp.Or(rank(a)-rank(b), strings.Compare(a.String(), b.String()))
	})
	var texts []string
	for _, a := range all {
		if rank(a) >= 6 && rank(all[0]) < 6 {
			break // of use to nobody else
		}
		if len(texts) < maxAddresses {
			texts = append(texts, a.String())
		}
	}
	return texts
}

// RelayAddress returns the address that the host will have at its first relay, "" without
// relays.
func (n *Network) RelayAddress() string {
	if len(n.reserving) == 0 {
		return ""
	}
	r := n.reserving[0]
	return r.Addrs[0].String() + "/p2p/" + r.ID.String() + "/p2p-circuit"
}
