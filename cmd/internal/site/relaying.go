package site

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/discovery/dht"
	"agentsite/discovery/gossip"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/p2p"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// RelayOptions are what relay is told.
type RelayOptions struct {
	Folder  state.Folder // its key is in a folder of its own there
	Listen  string       // host:port, or :port for all addresses
	Allow   string       // a file with the keys of those that may be reached through it; "" for everybody
	Others  []string
	Version string
	// Ready is told where others reach the relay.
	Ready func(addresses []string)
}

const (
	relayFolder = "relay"
	allowEvery  = 10 * time.Second // looks at the file

	mostRelayMemory = 512 << 20
)

// Relay is where sites meet that are behind routers, and where others look for them. It
// reads nothing of what it passes on. It blocks until ctx ends.
func Relay(ctx context.Context, o RelayOptions) error {
	folder := state.Folder(o.Folder.Path(relayFolder))
	beThrifty(mostRelayMemory)
	unlock, err := folder.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	key, err := folder.KeyLocked()
	if err != nil {
		return err
	}
	listen, err := p2p.At(o.Listen)
	if err != nil {
		return state.Mistakef("--listen takes an address and a port, or a port such as :8475 for all addresses, not %q", o.Listen)
	}
	others, err := p2p.ParsePeers(o.Others)
	if err != nil {
		return state.Mistakef("--other: %w", err)
	}
	may := &allowlist{file: o.Allow}
	service := &p2p.Relay{}
	if o.Allow != "" {
		if err := may.read(); err != nil {
			return state.Mistakef("--allow: %w", err)
		}
		service.Allow = may.has
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
		forwards.Allow = func(id identity.ID) bool { // the other relays pass on what is for those that are allowed
			return may.has(id) || slices.ContainsFunc(others, func(r peer.AddrInfo) bool { return r.ID.String() == id.PeerID() })
		}
	}
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		if err := gossip.Forward(ctx, host, forwards); err != nil {
			slog.Error("news are not passed on", "err", err)
		}
	})
	if o.Allow != "" {
		all.Go(func() { may.follow(ctx) })
	}
	all.Go(func() { (&internet{Host: host, joining: joining{meets: others}}).Run(ctx) })
	o.Ready(reachedAt(host))
	<-ctx.Done()
	return nil
}

// reachedAt are the addresses of a relay as others are told them: those that lead there
// from anywhere, where it has such.
func reachedAt(host *p2p.Host) (all []string) {
	public := multiaddr.FilterAddrs(host.Addrs(), manet.IsPublicAddr)
	if len(public) == 0 {
		public = host.Addrs()
	}
	for _, a := range public {
		all = append(all, a.String()+"/p2p/"+host.ID().String())
	}
	return all
}

// allowlist is a file of keys, a line each; what follows # is for people.
type allowlist struct {
	file string

	mu   sync.Mutex
	was  stamp
	keys map[identity.ID]bool
}

func (l *allowlist) has(id identity.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.keys[id]
}

// follow reads the file again when it is another one, until ctx ends. One with a mistake
// changes nothing.
func (l *allowlist) follow(ctx context.Context) {
	every := time.NewTicker(allowEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		if now, there := stampOf(l.file); !there || now == l.was {
			continue
		}
		if err := l.read(); err != nil {
			slog.Error("who may be reached through this relay stays as it was", "err", err)
		}
	}
}

func (l *allowlist) read() error {
	l.was, _ = stampOf(l.file)
	text, err := os.ReadFile(l.file)
	if err != nil {
		return err
	}
	keys := make(map[identity.ID]bool)
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		id, err := identity.Parse(line)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", l.file, n, err)
		}
		keys[id] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys = keys
	return lines.Err()
}
