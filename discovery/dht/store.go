package dht

import (
	"container/list"
	"context"
	"encoding/base32"
	"errors"
	"net/netip"
	"path"
	"strings"
	"sync"
	"time"

	"agentsite/node/quota"

	"github.com/hashicorp/golang-lru/simplelru"
	ds "github.com/ipfs/go-datastore"
	"github.com/ipfs/go-datastore/query"
	"github.com/libp2p/go-libp2p-kad-dht/records"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
)

const (
	validity = 24 * time.Hour // of stored entries

	maxEntries          = 1 << 16
	maxEntriesPerPeer   = 256  // of one peer
	maxEntriesPerPrefix = 4096 // of one network
	reservedPerPrefix   = 64   // entries of one network that newer ones of other networks do not evict
	reservedPerPeer     = 32   // of one peer that its own network's do not evict
	maxValueSize        = 2 << 10
)

var (
	errQuota  = errors.New("the peer stores too much here")
	errFull   = errors.New("the table is full")
	providers = path.Clean(records.ProvidersKeyPrefix)
)

// store is a server's datastore, bounded in all, by peer and by network. The last part of a key is
// the entry's peer. When a network or the store is full, the oldest entry of the peer with the most
// entries, in the network with the most, is evicted. Entries within the reserved number of a
// network, or of a peer in its full network, are not evicted. If all are reserved, a new entry is
// refused, which the announcing peer sees. Operations take constant time, plus the entries
// returned.
type store struct {
	from   func(name string) netip.Prefix // the network of an entry's peer
	forget func(name string)              // called with mu held when a peer has no entry left

	mu       sync.Mutex
	perPeer  map[string]int                      // entries in all networks
	folders  map[string]map[string]*list.Element // by the key without its last part, and by that
	prefixes map[netip.Prefix]*subnet
	largest  ranking[*subnet]
	order    list.List // oldest first
}

// subnet holds the entries of one network.
type subnet struct {
	prefix  netip.Prefix
	peers   map[string]*list.List // oldest first
	largest ranking[string]
	size    int
}

type entry struct {
	folder, name string
	value        []byte
	subnet       *subnet
	peerElement  *list.Element // in the list of its peer
}

var _ ds.Batching = (*store)(nil)

// prefixOf returns a function for the network from which an entry's peer is connected to h. It is
// the zero prefix for the host itself and for a disconnected peer.
func prefixOf(h host.Host) func(name string) netip.Prefix {
	return func(name string) netip.Prefix {
		b, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(name)
		if err != nil {
			return netip.Prefix{}
		}
		who := peer.ID(b) // of a provider
		if text, ok := strings.CutPrefix(string(b), "/"+namespace+"/"); ok {
			who, _ = peer.Decode(text)
		}
		for _, c := range h.Network().ConnsToPeer(who) {
			return quota.PrefixOf(c.RemoteMultiaddr())
		}
		return netip.Prefix{}
	}
}

// forgetAddresses returns a function that expires a provider's addresses, which the library
// keeps beside the store.
func forgetAddresses(h host.Host) func(name string) {
	return func(name string) {
		if b, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(name); err == nil {
			h.Peerstore().UpdateAddrs(peer.ID(b), validity, peerstore.TempAddrTTL)
		}
	}
}

func newStore(from func(name string) netip.Prefix, forget func(name string)) *store {
	return &store{from: from, forget: forget, perPeer: make(map[string]int), folders: make(map[string]map[string]*list.Element), prefixes: make(map[netip.Prefix]*subnet)}
}

// Put refuses values that are too long, entries beyond a peer's quota, and new ones when the
// store is full.
func (s *store) Put(_ context.Context, key ds.Key, value []byte) error {
	folder, name := path.Split(key.String())
	folder = path.Clean(folder)
	if len(value) > maxValueSize {
		return errQuota
	}
	from := s.from(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.folders[folder][name]; at != nil { // it keeps its place, wherever its peer is now
		e := at.Value.(*entry)
		e.value = value
		s.order.MoveToBack(at)
		e.subnet.peers[name].MoveToBack(e.peerElement)
		return nil
	}
	if err := s.makeRoom(from, name); err != nil {
		if s.perPeer[name] == 0 {
			s.forget(name)
		}
		return err
	}
	n := s.prefixes[from]
	if n == nil {
		n = &subnet{prefix: from, peers: make(map[string]*list.List)}
		s.prefixes[from] = n
	}
	s.add(&entry{folder: folder, name: name, value: value, subnet: n})
	return nil
}

// makeRoom evicts for one more entry if need be, or returns why it cannot. The caller holds
// mu.
func (s *store) makeRoom(from netip.Prefix, name string) error {
	n := s.prefixes[from]
	if n != nil && n.peers[name] != nil && n.peers[name].Len() >= maxEntriesPerPeer {
		return errQuota
	}
	if n != nil && n.size >= maxEntriesPerPrefix {
		if n.peers[n.largest.top()].Len() <= reservedPerPeer {
			return errFull
		}
		s.dropOf(n)
	}
	if s.order.Len() < maxEntries {
		return nil
	}
	if most := s.largest.top(); most.size > reservedPerPrefix {
		s.dropOf(most)
		return nil
	}
	return errFull
}

// add stores an entry. The caller holds mu.
func (s *store) add(e *entry) {
	at := s.order.PushBack(e)
	if s.folders[e.folder] == nil {
		s.folders[e.folder] = make(map[string]*list.Element)
	}
	s.folders[e.folder][e.name] = at
	n := e.subnet
	if n.peers[e.name] == nil {
		n.peers[e.name] = list.New()
	}
	e.peerElement = n.peers[e.name].PushBack(at)
	n.largest.set(e.name, n.peers[e.name].Len()-1, n.peers[e.name].Len())
	n.size++
	s.largest.set(n, n.size-1, n.size)
	s.perPeer[e.name]++
}

// dropOf evicts the oldest entry of the peer with the most in a network. The caller holds mu.
func (s *store) dropOf(n *subnet) {
	s.drop(n.peers[n.largest.top()].Front().Value.(*list.Element))
}

// drop removes an entry; nil is fine. The caller holds mu.
func (s *store) drop(at *list.Element) {
	if at == nil {
		return
	}
	e := s.order.Remove(at).(*entry)
	if delete(s.folders[e.folder], e.name); len(s.folders[e.folder]) == 0 {
		delete(s.folders, e.folder)
	}
	n := e.subnet
	own := n.peers[e.name]
	own.Remove(e.peerElement)
	n.largest.set(e.name, own.Len()+1, own.Len())
	if own.Len() == 0 {
		delete(n.peers, e.name)
	}
	n.size--
	s.largest.set(n, n.size+1, n.size)
	if n.size == 0 {
		delete(s.prefixes, n.prefix)
	}
	if s.perPeer[e.name]--; s.perPeer[e.name] == 0 {
		delete(s.perPeer, e.name)
		s.forget(e.name)
	}
}

// find returns the entry of a key, or nil. The caller holds mu.
func (s *store) find(key ds.Key) *list.Element {
	folder, name := path.Split(key.String())
	return s.folders[path.Clean(folder)][name]
}

// Get implements ds.Datastore.
func (s *store) Get(_ context.Context, key ds.Key) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(key)
	if e == nil {
		return nil, ds.ErrNotFound
	}
	return e.Value.(*entry).value, nil
}

// Has implements ds.Datastore.
func (s *store) Has(ctx context.Context, key ds.Key) (bool, error) {
	return ds.GetBackedHas(ctx, s, key)
}

// GetSize implements ds.Datastore.
func (s *store) GetSize(ctx context.Context, key ds.Key) (int, error) {
	return ds.GetBackedSize(ctx, s, key)
}

// Delete implements ds.Datastore.
func (s *store) Delete(_ context.Context, key ds.Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(s.find(key))
	return nil
}

// Query returns the entries of one folder, or all providers. For one key it returns as many
// providers as an answer holds, in random order.
func (s *store) Query(_ context.Context, q query.Query) (query.Results, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []query.Entry
	prefix := path.Clean("/" + q.Prefix)
	if prefix == providers { // once an hour
		for e := s.order.Front(); e != nil; e = e.Next() {
			if old := e.Value.(*entry); strings.HasPrefix(old.folder, providers+"/") {
				found = append(found, old.query())
			}
		}
	}
	for _, e := range s.folders[prefix] {
		if len(found) >= maxProviders && strings.HasPrefix(prefix, providers+"/") {
			break
		}
		found = append(found, e.Value.(*entry).query())
	}
	return query.ResultsWithEntries(q, found), nil
}

func (e *entry) query() query.Entry {
	return query.Entry{Key: path.Join(e.folder, e.name), Value: e.value, Size: len(e.value)}
}

// Sync does nothing.
func (*store) Sync(context.Context, ds.Key) error { return nil }

// Close does nothing.
func (*store) Close() error { return nil }

// Batch returns a batch that is not atomic.
func (s *store) Batch(context.Context) (ds.Batch, error) { return ds.NewBasicBatch(s), nil }

// noCache replaces the library's cache of providers, which ignores the store's limits.
type noCache struct{ simplelru.LRUCache }

// Add stores nothing.
func (noCache) Add(any, any) bool { return false }

// Get finds nothing.
func (noCache) Get(any) (any, bool) { return nil, false }
