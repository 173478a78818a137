package dht

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/discovery"

	"github.com/ipfs/go-cid"
	kad "github.com/libp2p/go-libp2p-kad-dht"
	pb "github.com/libp2p/go-libp2p-kad-dht/pb"
	"github.com/libp2p/go-libp2p-kad-dht/records"
	record "github.com/libp2p/go-libp2p-record"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/multiformats/go-multihash"
)

const (
	// Prefix is the protocol prefix of agentsite's own network, and Amino that of IPFS.
	Prefix protocol.ID = "/agentsite"
	Amino  protocol.ID = kad.DefaultPrefix

	dialTimeout = 3 * time.Second
	joinTimeout = 10 * time.Second
)

// Options configure a DHT.
type Options struct {
	Host host.Host

	// Server makes the host store the announcements of others. It is for machines that are always on
	// and publicly reachable. A server does not join Amino.
	Server bool

	// Realm is the realm of announcements and lookups; the zero Realm for a server without
	// either.
	Realm discovery.Realm

	// Bootstrap are known servers, of which some should be up. They are asked and told
	// besides those that the network returns, so that it cannot hide a site that one of them
	// knows. They learn no more than other servers. On Amino an empty list means those of
	// IPFS.
	Bootstrap []peer.AddrInfo

	// Prefix is the network; "" is agentsite's own.
	Prefix protocol.ID

	// Capabilities returns the site's, as on its card, for each announcement. nil is for
	// none.
	Capabilities func() []string

	// Newer is called with a valid record of this host's site that is newer than the
	// announced one. It may be nil.
	Newer func(*discovery.Signed)

	// Log receives failures that are retried; it may be nil.
	Log *slog.Logger
}

// DHT is a medium over a Kademlia table. It is safe for concurrent use.
type DHT struct {
	o         Options
	self      peer.ID
	library   *kad.IpfsDHT
	sender    *sender
	messenger *pb.ProtocolMessenger
	store     *store

	announced atomic.Pointer[discovery.Signed] // this host's record

	joining chan struct{} // holds one value while join runs

	refreshed discovery.Notifier
}

var _ discovery.Medium = (*DHT)(nil)

// New returns a DHT. It sends nothing before it is used, unless it is a server.
func New(o Options) (*DHT, error) {
	if !o.Realm.Exists() && !o.Server {
		return nil, errors.New("a site is found in a realm: make one with agentsite realm new, or use the public one")
	}
	if o.Prefix == "" {
		o.Prefix = Prefix
	}
	if o.Server && o.Prefix == Amino {
		return nil, errors.New("a site takes part in the network of IPFS as a client only")
	}
	if o.Prefix == Amino && len(o.Bootstrap) == 0 {
		o.Bootstrap = kad.GetDefaultBootstrapPeerAddrInfos()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Capabilities == nil {
		o.Capabilities = func() []string { return nil }
	}
	d := &DHT{o: o, self: o.Host.ID(), store: newStore(prefixOf(o.Host), forgetAddresses(o.Host)), joining: make(chan struct{}, 1)}
	o.Bootstrap = slices.DeleteFunc(slices.Clone(o.Bootstrap), func(p peer.AddrInfo) bool { return p.ID == d.self })
	d.o.Bootstrap = o.Bootstrap
	safe := newLimitedHost(o.Host)
	options := []kad.Option{
		kad.ProtocolPrefix(o.Prefix),
		kad.WithCustomMessageSender(func(_ host.Host, protocols []protocol.ID) pb.MessageSenderWithDisconnect {
			d.sender = newSender(safe, protocols, d.isKnown)
			return d.sender
		}),
		kad.LookupCheckConcurrency(16),
	}
	if o.Prefix != Amino {
		options = append(options,
			kad.Validator(record.NamespacedValidator{namespace: validator{}}),
			kad.Datastore(d.store), kad.MaxRecordAge(validity),
			kad.ProviderManagerOpts(records.ProvideValidity(validity), records.ProviderAddrTTL(validity), records.Cache(noCache{})),
			kad.AddressFilter(selectAddrs),
			kad.OnRequestHook(func(_ context.Context, s network.Stream, m *pb.Message) {
				sanitizeRequest(safe, s.Conn().RemotePeer(), m)
			}),
		)
	}
	if o.Server {
		options = append(options, kad.Mode(kad.ModeServer), kad.BootstrapPeers(o.Bootstrap...))
	} else {
		options = append(options, kad.Mode(kad.ModeClient), kad.DisableAutoRefresh())
	}
	var err error
	if d.library, err = kad.New(safe, options...); err != nil {
		return nil, err
	}
	if d.messenger, err = pb.NewProtocolMessenger(d.sender); err != nil {
		return nil, err
	}
	for _, b := range o.Bootstrap {
		o.Host.ConnManager().Protect(b.ID, bootstrapTag)
		o.Host.Peerstore().AddAddrs(b.ID, b.Addrs, peerstore.PermanentAddrTTL)
	}
	return d, nil
}

// bootstrapTag protects the connections to known servers.
const bootstrapTag = "bootstrap"

// Close cancels everything and blocks until it has ended.
func (d *DHT) Close() error {
	for _, b := range d.o.Bootstrap {
		d.o.Host.ConnManager().Unprotect(b.ID, bootstrapTag)
	}
	d.sender.cancel()
	err := d.library.Close()
	d.sender.close()
	return err
}

// Requests returns the number of messages sent to servers.
func (d *DHT) Requests() uint64 { return d.sender.requests.Load() }

// Entries returns how many announcements and records a server stores.
func (d *DHT) Entries() int {
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	return d.store.order.Len()
}

// key derives a key of the realm.
func (d *DHT) key(purpose string, words ...string) cid.Cid {
	h := d.o.Realm.Hash(purpose, words...)
	mh, err := multihash.Encode(h[:], multihash.SHA2_256)
	if err != nil {
		panic(err) // it is a hash of that length
	}
	return cid.NewCidV1(cid.Raw, mh)
}

// join fills the routing table if no server is connected. It fails when ctx ends, also while
// another call joins.
func (d *DHT) join(ctx context.Context) error {
	select {
	case d.joining <- struct{}{}:
		defer func() { <-d.joining }()
	case <-ctx.Done():
		return ctx.Err()
	}
	table := d.library.RoutingTable()
	connected := func(p peer.ID) bool { return d.o.Host.Network().Connectedness(p) == network.Connected }
	if slices.ContainsFunc(table.ListPeers(), connected) {
		return nil
	}
	// One known server suffices: others may be silent.
	meeting, cancel := context.WithTimeout(d.sender.ctx, joinTimeout)
	met, all := make(chan struct{}, len(d.o.Bootstrap)), make(chan struct{})
	if !d.sender.spawn(func() {
		defer cancel()
		var asking sync.WaitGroup
		for _, b := range d.o.Bootstrap {
			asking.Go(func() {
				if err := d.contact(meeting, b); err != nil {
					d.o.Log.Debug("DHT server unavailable", "peer", b.ID, "err", err)
					return
				}
				met <- struct{}{}
			})
		}
		asking.Wait()
		close(all)
		if table.Size() > 0 {
			_, _ = d.library.GetClosestPeers(meeting, string(d.self)) // connects to the nearest servers
		}
	}) {
		cancel()
		return errClosed
	}
	select {
	case <-met:
		select {
		case <-all:
		case <-time.After(hedgeAfter):
		case <-ctx.Done():
		}
	case <-all:
	case <-ctx.Done():
		return ctx.Err()
	}
	if table.Size() == 0 && !d.o.Server { // which may be the first
		return d.errNoServer()
	}
	return nil
}

// contact asks a known server for others, and adds it to the routing table if it answers.
func (d *DHT) contact(ctx context.Context, server peer.AddrInfo) (err error) {
	for range 2 { // a connection may end just when it is used
		if err = d.sender.host.Connect(ctx, server); err != nil {
			return err
		}
		if _, err = d.messenger.GetClosestPeers(ctx, server.ID, d.self); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	// It may be there as any other, whose place a stranger may take.
	d.library.RoutingTable().RemovePeer(server.ID)
	_, err = d.library.RoutingTable().TryAddPeer(server.ID, true, false)
	return err
}

func (d *DHT) errNoServer() error {
	if len(d.o.Bootstrap) == 0 {
		return errors.New("no server of the DHT is known: add a relay to the realm")
	}
	return fmt.Errorf("none of the %d known servers of the DHT answers: check the internet connection and the relays", len(d.o.Bootstrap))
}
