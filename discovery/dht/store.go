package dht

import (
	"container/list"
	"context"
	"errors"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/simplelru"
	ds "github.com/ipfs/go-datastore"
	"github.com/ipfs/go-datastore/query"
	"github.com/libp2p/go-libp2p-kad-dht/records"
)

const (
	validity = 24 * time.Hour // of what is stored

	mostStored     = 1 << 16
	mostStoredEach = 256 // of one peer
	maxStored      = 2 << 10
)

var (
	errTooMuch = errors.New("it stores too much here")
	providers  = path.Clean(records.ProvidersKeyPrefix)
)

// store is what a server remembers: at most so much, and of each peer. The last part of
// a key is the peer whose entry it is. If it is full, the oldest entry goes. All it does
// takes as long as there are entries to return.
type store struct {
	mu      sync.Mutex
	folders map[string]map[string]*list.Element // by what stands before the last part, and by that
	each    map[string]int                      // how many entries have the same last part
	order   list.List                           // the oldest first
}

type entry struct {
	folder, name string
	value        []byte
}

var _ ds.Batching = (*store)(nil)

func newStore() *store {
	return &store{folders: make(map[string]map[string]*list.Element), each: make(map[string]int)}
}

// Put refuses what is too long, and more of a peer than it may have.
func (s *store) Put(_ context.Context, key ds.Key, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	folder, name := path.Split(key.String())
	folder = path.Clean(folder)
	if len(value) > maxStored {
		return errTooMuch
	}
	if e := s.folders[folder][name]; e != nil {
		e.Value.(*entry).value = value
		s.order.MoveToBack(e)
		return nil
	}
	if s.each[name] >= mostStoredEach {
		return errTooMuch
	}
	if s.order.Len() >= mostStored {
		s.drop(s.order.Front())
	}
	if s.folders[folder] == nil {
		s.folders[folder] = make(map[string]*list.Element)
	}
	s.folders[folder][name] = s.order.PushBack(&entry{folder, name, value})
	s.each[name]++
	return nil
}

// drop forgets an entry, or nothing. The caller holds mu.
func (s *store) drop(e *list.Element) {
	if e == nil {
		return
	}
	old := s.order.Remove(e).(*entry)
	if delete(s.folders[old.folder], old.name); len(s.folders[old.folder]) == 0 {
		delete(s.folders, old.folder)
	}
	if s.each[old.name]--; s.each[old.name] == 0 {
		delete(s.each, old.name)
	}
}

// find returns the entry of a key, or nil. The caller holds mu.
func (s *store) find(key ds.Key) *list.Element {
	folder, name := path.Split(key.String())
	return s.folders[path.Clean(folder)][name]
}

// Get is that of a datastore.
func (s *store) Get(_ context.Context, key ds.Key) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(key)
	if e == nil {
		return nil, ds.ErrNotFound
	}
	return e.Value.(*entry).value, nil
}

// Has is that of a datastore.
func (s *store) Has(ctx context.Context, key ds.Key) (bool, error) {
	return ds.GetBackedHas(ctx, s, key)
}

// GetSize is that of a datastore.
func (s *store) GetSize(ctx context.Context, key ds.Key) (int, error) {
	return ds.GetBackedSize(ctx, s, key)
}

// Delete is that of a datastore.
func (s *store) Delete(_ context.Context, key ds.Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(s.find(key))
	return nil
}

// Query returns the entries of one folder, or all providers. Of the providers of one key
// it returns as many as an answer holds, others each time.
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

// Sync has nothing to wait for.
func (*store) Sync(context.Context, ds.Key) error { return nil }

// Close ends nothing.
func (*store) Close() error { return nil }

// Batch does many at once, as they come.
func (s *store) Batch(context.Context) (ds.Batch, error) { return ds.NewBasicBatch(s), nil }

// uncached keeps no sets of providers beside the store, whose bounds they would not have.
type uncached struct{ simplelru.LRUCache }

// Add forgets.
func (uncached) Add(any, any) bool { return false }

// Get has nothing.
func (uncached) Get(any) (any, bool) { return nil, false }
