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
	// Prefix is that of our own network, and Amino that of IPFS, which anybody may use.
	Prefix protocol.ID = "/agentsite"
	Amino  protocol.ID = kad.DefaultPrefix

	dialTimeout = 3 * time.Second
	joinTimeout = 10 * time.Second
)

// Options are what a DHT is made with.
type Options struct {
	Host host.Host

	// Server has the host hold what others announce. It is for machines that are always
	// there and reached by everybody. It does not announce itself on Amino.
	Server bool

	// Realm is whose sites are announced and found; none for a server that does neither.
	Realm discovery.Realm

	// Bootstrap are servers that are known, of which some are there. They are asked and
	// told besides those that the network itself shows, so that it cannot hide a site
	// which one of them knows. They learn no more than other servers do. On Amino none is
	// for those that IPFS names.
	Bootstrap []peer.AddrInfo

	// Prefix tells networks apart; empty for our own.
	Prefix protocol.ID

	// Capabilities are what the site can do, as on its card. It is asked whenever the
	// site is announced. nil is for none.
	Capabilities func() []string

	// Newer is told of a record of this host's site, signed by it, that is newer than the
	// one which is announced. nil is for nobody.
	Newer func(*discovery.Signed)

	// Log gets what fails and is tried again; nil for nobody.
	Log *slog.Logger
}

// DHT is a medium. It is safe for concurrent use.
type DHT struct {
	o         Options
	self      peer.ID
	library   *kad.IpfsDHT
	sender    *sender
	messenger *pb.ProtocolMessenger
	store     *store

	announced atomic.Pointer[discovery.Signed] // this host's own

	joining chan struct{} // holds one while somebody joins

	mu   sync.Mutex
	wake map[chan struct{}]bool // of each Find
}

var _ discovery.Medium = (*DHT)(nil)

// New makes a DHT. It asks nobody before it is used, unless it is a server.
func New(o Options) (*DHT, error) {
	if !o.Realm.Exists() && !o.Server {
		return nil, errors.New("a site is found in a realm: make one with agentsite realm new, or use the public one")
	}
	if o.Prefix == "" {
		o.Prefix = Prefix
	}
	if o.Server && o.Prefix == Amino {
		return nil, errors.New("a site does not serve the network of IPFS: use it as a client")
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
	d := &DHT{o: o, self: o.Host.ID(), store: newStore(prefixOf(o.Host), forgetAddresses(o.Host)), joining: make(chan struct{}, 1), wake: make(map[chan struct{}]bool)}
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

// keptTag is why connections to known servers are not ended when there are many.
const bootstrapTag = "bootstrap"

// Close ends what is under way and returns when it has ended.
func (d *DHT) Close() error {
	for _, b := range d.o.Bootstrap {
		d.o.Host.ConnManager().Unprotect(b.ID, bootstrapTag)
	}
	d.sender.cancel()
	err := d.library.Close()
	d.sender.close()
	return err
}

// Requests is how many messages were sent to servers so far.
func (d *DHT) Requests() uint64 { return d.sender.requests.Load() }

// key is under what something of the realm is kept.
func (d *DHT) key(purpose string, words ...string) cid.Cid {
	h := d.o.Realm.Hash(purpose, words...)
	mh, err := multihash.Encode(h[:], multihash.SHA2_256)
	if err != nil {
		panic(err) // it is a hash of that length
	}
	return cid.NewCidV1(cid.Raw, mh)
}

// join sees that there are servers to ask. A client does so before it asks and never
// else. It fails when ctx ends, also while another joins.
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
	// Some that are known may be silent: who has met one waits no longer for them.
	meeting, cancel := context.WithTimeout(d.sender.ctx, joinTimeout)
	met, all := make(chan struct{}, len(d.o.Bootstrap)), make(chan struct{})
	if !d.sender.spawn(func() {
		defer cancel()
		var asking sync.WaitGroup
		for _, b := range d.o.Bootstrap {
			asking.Go(func() {
				if err := d.contact(meeting, b); err != nil {
					d.o.Log.Debug("a known server of the DHT does not answer", "peer", b.ID, "error", err)
					return
				}
				met <- struct{}{}
			})
		}
		asking.Wait()
		close(all)
		if table.Size() > 0 {
			_, _ = d.library.GetClosestPeers(meeting, string(d.self)) // meets those near; who is in the table counts
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
		return fmt.Errorf("no server of the DHT answers, of %d that are known: is there a way to the internet, and one of the relays up?", len(d.o.Bootstrap))
	}
	return nil
}

// meet asks a server that is known for others, and remembers it if it answers.
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
