package site

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"

	"agentsite/discovery"
	"agentsite/discovery/card"
	"agentsite/discovery/dht"
	"agentsite/discovery/gossip"
	"agentsite/node/config"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/owner"
	"agentsite/transport/p2p"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

const (
	// relayEvery is how often it is looked whether relays are still connected, and
	// relayPatience how long one may take to answer.
	relayEvery    = 30 * time.Second
	relayPatience = 10 * time.Second

	relayTag = "relay"
)

// joining is how a program takes part in the global network.
type joining struct {
	options p2p.Options
	meets   []peer.AddrInfo // where others are asked for
	seeks   []Joined        // the realms whose sites are looked for
	server  bool

	// Of a site that is found.
	realm discovery.Realm // the zero one for nobody
	ipfs  bool
	card  func() card.Card
	newer func(*discovery.Signed) // is told of newer records of the site than it knows
}

// internet is a program's part in the global network. Close it.
type internet struct {
	*p2p.Host
	joining
	media  map[string]discovery.Medium // of a site: of its realm; none without one
	known  *discovery.Directory        // of a site: who else of its realm is there
	tables []*dht.DHT
	ending []func()
}

// join takes part.
func join(j joining) (in *internet, err error) {
	host, err := p2p.New(j.options)
	if err != nil {
		return nil, err
	}
	in = &internet{Host: host, joining: j, media: make(map[string]discovery.Medium)}
	defer func() {
		if err != nil {
			in.Close()
		}
	}()
	for _, k := range j.seeks {
		r, err := discovery.ParseRealm(k.Realm)
		if err != nil {
			return nil, state.Mistake{Err: err}
		}
		if err := in.enter(r, k.IPFS); err != nil {
			return nil, err
		}
	}
	if !j.realm.Exists() {
		return in, nil
	}
	if err := in.enter(j.realm, j.ipfs); err != nil {
		return nil, err
	}
	in.ending = append(in.ending, card.Serve(host, j.realm, j.card, j.newer))
	talk, err := gossip.New(gossip.Options{Host: host, Realm: j.realm, Ask: in.ask})
	if err != nil {
		return nil, err
	}
	in.ending = append(in.ending, func() { talk.Close() })
	in.media["gossip"] = talk
	in.known = discovery.NewDirectory(slog.Default(), in.media)
	return in, nil
}

// enter joins those who keep where the sites of a realm are.
func (in *internet) enter(r discovery.Realm, ipfs bool) error {
	o := dht.Options{Host: in.Host, Realm: r, Server: in.server, Bootstrap: in.meets, Newer: in.newer, Log: slog.Default()}
	if in.card != nil {
		o.Capabilities = func() []string { return in.card().Capabilities }
	}
	if err := in.table("dht", o); err != nil || !ipfs {
		return err
	}
	o.Server, o.Prefix, o.Bootstrap = false, dht.Amino, nil
	return in.table("ipfs", o)
}

func (in *internet) table(name string, o dht.Options) error {
	t, err := dht.New(o)
	if err != nil {
		return err
	}
	in.ending = append(in.ending, func() { t.Close() })
	in.tables = append(in.tables, t)
	in.media[name] = t
	return nil
}

// Close leaves the network.
func (in *internet) Close() error {
	for _, end := range slices.Backward(in.ending) {
		end()
	}
	return in.Host.Close()
}

// Run stays connected to the relays until ctx ends, which is where the realm meets.
func (in *internet) Run(ctx context.Context) {
	every := time.NewTicker(relayEvery)
	defer every.Stop()
	for {
		for _, r := range in.meets {
			in.ConnManager().Protect(r.ID, relayTag)
			if in.Network().Connectedness(r.ID) != network.Connected {
				in.meet(ctx, r)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

// meet connects to a relay.
func (in *internet) meet(ctx context.Context, r peer.AddrInfo) {
	ctx, cancel := context.WithTimeout(ctx, relayPatience)
	defer cancel()
	// Also where many attempts have failed before: it may be there again.
	if err := in.Connect(network.WithForceDirectDial(ctx, "relay"), r); err != nil && ctx.Err() == nil {
		slog.Debug("a relay does not answer", "relay", r.ID, "err", err)
	}
}

// moved has changed be called whenever others reach the host elsewhere, until ctx ends.
func (in *internet) moved(ctx context.Context, changed func()) {
	changes, err := in.EventBus().Subscribe(new(event.EvtLocalAddressesUpdated))
	if err != nil {
		slog.Error("where the site is reached is not followed", "err", err)
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

// Before a site is announced, its relays have settleFar to give it a place, and what comes
// soon after the first is waited for too: each change has to be told to many.
const (
	settleFar  = 10 * time.Second
	settleMore = 2 * time.Second
)

// settled waits until others reach the host from anywhere, as far as is known: through a
// relay, or directly. It does not wait for ever, and not at all without relays.
func (in *internet) settled(ctx context.Context) {
	if len(in.options.Relays) == 0 {
		return
	}
	first, cancel := context.WithTimeout(ctx, settleFar)
	defer cancel()
	in.moved(first, func() {
		if slices.ContainsFunc(in.Addrs(), func(a multiaddr.Multiaddr) bool {
			return p2p.OverRelay(a) || manet.IsPublicAddr(a)
		}) {
			cancel()
		}
	})
	discovery.Sleep(ctx, settleMore)
}

// maxReached is how many addresses of a host are told.
const maxReached = 6

// reached are the addresses at which others reach the host: those through relays first,
// which most do, and then those that lead anywhere, before those of its own network.
func (in *internet) reached() []string {
	rank := func(a multiaddr.Multiaddr) int {
		_, tcp := a.ValueForProtocol(multiaddr.P_TCP)
		r := 0
		switch {
		case manet.IsIPLoopback(a):
			r = 6
		case p2p.OverRelay(a):
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
	all := slices.Clone(in.Addrs())
	slices.SortFunc(all, func(a, b multiaddr.Multiaddr) int { // in one order, or it would be another record
		return cmp.Or(rank(a)-rank(b), strings.Compare(a.String(), b.String()))
	})
	var texts []string
	for _, a := range all {
		if rank(a) >= 6 && rank(all[0]) < 6 {
			break // of use to nobody else
		}
		if len(texts) < maxReached {
			texts = append(texts, a.String())
		}
	}
	return texts
}

// where asks the tables for a site, with how.
func (in *internet) where(ctx context.Context, id identity.ID, how func(*dht.DHT, context.Context, identity.ID) (peer.AddrInfo, error)) (peer.AddrInfo, error) {
	var all error
	for _, t := range in.tables {
		at, err := how(t, ctx, id)
		if err == nil {
			return at, nil
		}
		all = errors.Join(all, err)
	}
	return peer.AddrInfo{}, all
}

// askSpread is how long, for each site that is known, one may wait that is to be asked: all
// hear at once of who is new, and that may be a small board.
const askSpread = 50 * time.Millisecond

// ask has a site show its card, where it is connected or the tables say that it is, unless
// another medium has brought the record already, or does in the moment before: who is new
// looks for all others, too, and is asked by the same connections then. A site that says it
// has an older record than is known is told of that.
func (in *internet) ask(ctx context.Context, id identity.ID, sequence uint64) (discovery.Sighting, error) {
	known, there := in.known.Site(id)
	if there && known.Sequence == sequence {
		return discovery.Sighting{Site: id, Record: known.Bytes()}, nil
	}
	most := time.Duration(1+len(in.known.Sites())) * askSpread
	if there {
		most *= 4 // what is known of it will do, and many may have news: a relay of theirs is gone
	}
	discovery.Sleep(ctx, rand.N(most))
	known, there = in.known.Site(id)
	if there && known.Sequence == sequence {
		return discovery.Sighting{Site: id, Record: known.Bytes()}, nil
	}
	who, err := p2p.PeerOf(id)
	if err != nil {
		return discovery.Sighting{}, err
	}
	at := peer.AddrInfo{ID: who}
	if in.Network().Connectedness(who) == network.NotConnected {
		at, err = in.where(ctx, id, (*dht.DHT).Near)
	}
	if there && known.Sequence > sequence {
		if err == nil {
			err = card.Tell(ctx, in.Host, in.realm, at, known.Signed)
		}
		if err != nil {
			slog.Debug("a site is not told that a newer record of it is known", "site", id, "err", err)
		}
		return discovery.Sighting{Site: id, Record: known.Bytes()}, nil
	}
	if err != nil {
		return discovery.Sighting{}, err
	}
	c, err := card.Ask(ctx, in.Host, in.realm, at)
	return discovery.Sighting{Site: id, Record: c.Record}, err
}

// openInternet has a site take part as its configuration says; nil without that section.
func openInternet(cfg *config.Internet, o p2p.Options, there *presence) (*internet, error) {
	if cfg == nil {
		return nil, nil
	}
	listen, err := p2p.At(cfg.Listen)
	if err != nil {
		return nil, state.Mistakef("internet: %w", err)
	}
	relays, err := p2p.ParsePeers(cfg.Relays)
	if err != nil {
		return nil, state.Mistakef("internet: relays: %w", err)
	}
	j := joining{options: o, meets: relays, server: cfg.Server, ipfs: cfg.IPFS, card: there.card, newer: there.newer}
	if cfg.Realm != "" {
		if j.realm, err = discovery.ParseRealm(cfg.Realm); err != nil {
			return nil, state.Mistakef("internet: %w", err)
		}
	}
	j.options.Listen, j.options.Relays = listen, relays
	j.options.PortMap = cfg.PortMap && !slices.ContainsFunc(listen, onlyHere)
	return join(j)
}

// onlyHere reports whether an address leads nowhere but to this machine.
func onlyHere(at string) bool {
	a, err := multiaddr.NewMultiaddr(at)
	return err == nil && manet.IsIPLoopback(a)
}

// places is where a site may be reached: by HTTPS and from anywhere.
func places(at net.Addr, id identity.ID, far *internet) []string {
	all := reachable(at, id)
	if far != nil {
		all = append(all, far.reached()...)
	}
	return all
}

// claimAddresses is where a site is claimed: the first places, without the name that whoever
// knows its key looks for anyway, and its first relay.
func claimAddresses(at net.Addr, id identity.ID, far *internet) []string {
	near := reachable(at, id)
	if len(near) > 1 {
		near = near[:len(near)-1]
	}
	return append(near, far.throughRelay()...)
}

// throughRelay is where a site will be reached once it has a place at its first relay.
func (in *internet) throughRelay() []string {
	if in == nil || len(in.options.Relays) == 0 {
		return nil
	}
	r := in.options.Relays[0]
	return []string{r.Addrs[0].String() + "/p2p/" + r.ID.String() + "/p2p-circuit"}
}

// carriers are where the host listens, with the protocols that it speaks now.
func (in *internet) carriers() (all []owner.Carrier) {
	if in == nil {
		return nil
	}
	var protocols []string
	for _, p := range in.Mux().Protocols() {
		protocols = append(protocols, string(p))
	}
	slices.Sort(protocols)
	for _, a := range in.Network().ListenAddresses() {
		if !p2p.OverRelay(a) {
			all = append(all, owner.Carrier{Kind: owner.P2PCarrier, Address: a.String(), Routes: protocols})
		}
	}
	return all
}
