package internet

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"sync"

	"agentsite/cmd/internal/memory"
	"agentsite/discovery/dht"
	"agentsite/discovery/gossip"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/p2p"
	"agentsite/transport/public"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// RelayOptions are the settings of a relay.
type RelayOptions struct {
	Folder  state.Folder // the relay's key is in a folder of its own there
	Listen  string       // host:port, or :port for all addresses
	Allow   string       // a file with the keys of the sites that are reached through it; "" for all
	Others  []string     // addresses of other relays, to share their table
	Public  string       // the zone of the sites' public names, "" for none; Allow names those that have one
	Callers string       // the address and port where callers of these names come to
	Version string
	Ready   func(addresses []string) // is called once, with the relay's addresses

	PublicConnections int // of one site's public name at a time
	PublicMiB         int // of it a day
}

// The default limits of a site's public name.
const (
	PublicConnections = public.DefaultConnections
	PublicMiB         = public.DefaultDailyBytes >> 20
)

const (
	relayFolder    = "relay"
	maxRelayMemory = 512 << 20
)

// Relay runs a relay: sites behind routers are reached through it, and it serves the DHT
// and forwards gossip. It can read nothing that it forwards. It blocks until ctx ends.
func Relay(ctx context.Context, o RelayOptions) error {
	folder := state.Folder(o.Folder.Path(relayFolder))
	memory.Limit(maxRelayMemory)
	unlock, err := folder.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	key, err := folder.KeyLocked()
	if err != nil {
		return err
	}
	listen, err := p2p.ListenAddrs(o.Listen)
	if err != nil {
		return state.Mistakef("--listen takes an address and a port, or a port such as :8475 for all addresses, not %q", o.Listen)
	}
	others, err := p2p.ParsePeers(o.Others)
	if err != nil {
		return state.Mistakef("--other: %w", err)
	}
	allowed := &allowlist{file: o.Allow}
	service := &p2p.Relay{}
	if o.Allow != "" {
		if err := allowed.read(); err != nil {
			return state.Mistakef("--allow: %w", err)
		}
		service.Allow = allowed.has
	}
	var callers net.Listener
	if o.Public != "" {
		if !public.IsName(o.Public) {
			return state.Mistakef("--public takes the zone of the sites' names, such as sites.example.org, not %q", o.Public)
		}
		if o.Allow == "" {
			return state.Mistakef("--public gives names in your zone: name the sites that have one, with --allow")
		}
		if o.PublicConnections < 1 || o.PublicMiB < 1 {
			return state.Mistakef("--public-connections and --public-mib take a number from 1 on")
		}
		if callers, err = net.Listen("tcp", o.Callers); err != nil {
			return state.Mistakef("--public-listen: %w", err)
		}
		defer callers.Close()
	}
	host, err := p2p.New(p2p.Options{Key: key, Listen: listen, Relay: service, Agent: "agentsite-relay/" + o.Version})
	if err != nil {
		return err
	}
	defer host.Close()
	table, err := dht.New(dht.Options{Host: host, Server: true, Bootstrap: others})
	if err != nil {
		return err
	}
	defer table.Close()

	forwards := gossip.Limits{}
	if o.Allow != "" {
		forwards.Allow = func(id identity.ID) bool { // the other relays forward the gossip of those that are allowed
			return allowed.has(id) || slices.ContainsFunc(others, func(r peer.AddrInfo) bool { return r.ID.String() == id.PeerID() })
		}
	}
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		if err := gossip.Forward(ctx, host, forwards); err != nil {
			slog.Error("forwarding announcements failed", "err", err)
		}
	})
	if o.Allow != "" {
		all.Go(func() { allowed.follow(ctx) })
	}
	all.Go(func() { keepConnected(ctx, host, others) })
	if callers != nil {
		names := public.NewRelay(host, public.RelayOptions{
			Zone: o.Public, Allow: allowed.has, Connections: o.PublicConnections, DailyBytes: int64(o.PublicMiB) << 20,
			Resolve: net.DefaultResolver.LookupCNAME,
		})
		all.Go(func() {
			if err := names.Serve(ctx, callers); err != nil {
				slog.Error("public names are not served any more", "err", err)
			}
		})
	}
	o.Ready(relayAddresses(host))
	<-ctx.Done()
	return nil
}

// relayAddresses returns a relay's public addresses, or all where it has none.
func relayAddresses(host *p2p.Host) (all []string) {
	public := multiaddr.FilterAddrs(host.Addrs(), manet.IsPublicAddr)
	if len(public) == 0 {
		public = host.Addrs()
	}
	for _, a := range public {
		all = append(all, a.String()+"/p2p/"+host.ID().String())
	}
	return all
}
