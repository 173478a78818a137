package internet

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"agentsite/discovery"
	"agentsite/discovery/card"
	"agentsite/node/bundle"
	"agentsite/node/identity"
	"agentsite/transport/p2p"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

const (
	// maxHubSites bounds the sites that a search asks, and askingHub how many at a time.
	maxHubSites, askingHub = 32, 6
	// hubTimeout and hubBytes bound what one site may take of a search.
	hubTimeout = 12 * time.Second
	hubBytes   = 256 << 10
)

// Offer is a bundle that a site publishes. Its signature was verified; Site says that it has the file.
type Offer struct {
	Site *discovery.Signed
	ID   bundle.FileID
	File []byte
	*bundle.Bundle
}

// SearchHub looks for published bundles that match. It asks the sites of the realm that announce one of
// the words, or any bundle where there are none, and calls emit for each bundle of each site, one at a
// time. It blocks until all were asked or ctx ends, and fails only if no site was found. A site
// that sends something else, too much, or nothing for long is left out.
func (n *Network) SearchHub(
	ctx context.Context, realm discovery.Realm, words []string, match func(*bundle.Bundle) bool, emit func(Offer),
) error {
	h := &hubSearch{
		network: n, realm: realm, match: match, emit: emit,
		asked: make(map[identity.ID]bool), slots: make(chan struct{}, askingHub),
		fetched: make(map[bundle.FileID]Offer),
	}
	capabilities := []string{bundle.HubWord}
	if len(words) > 0 {
		capabilities = nil
		for _, w := range words {
			capabilities = append(capabilities, bundle.HubWord+"/"+w)
		}
	}
	errs := make([]error, len(capabilities))
	var looking sync.WaitGroup
	for i, c := range capabilities {
		looking.Go(func() { errs[i] = n.Find(ctx, c, func(r *discovery.Signed) { h.add(ctx, r) }) })
	}
	looking.Wait()
	h.asking.Wait()
	if len(h.asked) > 0 || slices.Contains(errs, nil) {
		return nil
	}
	return errors.Join(errs...)
}

// hubSearch is one search.
type hubSearch struct {
	network *Network
	realm   discovery.Realm
	match   func(*bundle.Bundle) bool
	emit    func(Offer)
	slots   chan struct{}
	asking  sync.WaitGroup

	mu      sync.Mutex
	asked   map[identity.ID]bool
	fetched map[bundle.FileID]Offer // by whichever site they came; those that match
}

// add asks a site in the background, once.
func (h *hubSearch) add(ctx context.Context, r *discovery.Signed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked[r.Site] || len(h.asked) == maxHubSites {
		return
	}
	h.asked[r.Site] = true
	h.asking.Go(func() {
		select {
		case h.slots <- struct{}{}:
			defer func() { <-h.slots }()
			ctx, cancel := context.WithTimeout(ctx, hubTimeout)
			defer cancel()
			h.ask(ctx, r)
		case <-ctx.Done():
		}
	})
}

// ask fetches a site's list, and those of its files that no other site has sent.
func (h *hubSearch) ask(ctx context.Context, r *discovery.Signed) {
	who, err := p2p.PeerID(r.Site)
	if err != nil {
		return
	}
	at := peer.AddrInfo{ID: who}
	for _, text := range (&discovery.Site{Signed: r}).Multiaddrs() {
		if a, err := multiaddr.NewMultiaddr(text); err == nil {
			at.Addrs = append(at.Addrs, a)
		}
	}
	list, err := card.FetchFile(ctx, h.network.host, h.realm, at, card.Catalog)
	if err != nil {
		return
	}
	ids, err := bundle.DecodeCatalog(list)
	if err != nil {
		return
	}
	left := hubBytes
	for _, id := range ids {
		h.mu.Lock()
		o, have := h.fetched[id]
		h.mu.Unlock()
		if !have {
			file, err := card.FetchFile(ctx, h.network.host, h.realm, at, card.FileID(id))
			if left -= len(file); ctx.Err() != nil || left < 0 {
				return
			}
			if err != nil {
				continue
			}
			b, err := bundle.Open(file)
			if err != nil || !h.match(b) {
				continue
			}
			o = Offer{ID: id, File: file, Bundle: b}
		}
		o.Site = r
		h.mu.Lock()
		h.fetched[id] = o
		h.emit(o)
		h.mu.Unlock()
	}
}
