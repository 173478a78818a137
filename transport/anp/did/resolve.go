package did

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"agentsite/node/identity"
	"agentsite/transport/web/outbound"
)

const (
	maxDocument = 64 << 10
	// A document is used for keepGood, and its absence for keepBad: that is how often somebody who
	// only writes names can have it fetched.
	keepGood     = 10 * time.Minute
	keepBad      = time.Minute
	fetchTimeout = 10 * time.Second
)

// NewClient returns a client for documents: it dials public addresses only.
func NewClient() *http.Client { return outbound.Client(fetchTimeout) }

// Resolver finds the keys of names. It fetches the documents of names that the owner listed, and
// of no others. It is safe for concurrent use.
type Resolver struct {
	client  *http.Client
	entries map[string]*entry
}

// entry is a name, with its document as it was last fetched.
type entry struct {
	mu      sync.Mutex
	fetched time.Time // by the monotonic clock; zero for never
	doc     *Document
	err     error
}

// NewResolver returns a resolver for those names, which are checked.
func NewResolver(names []string, client *http.Client) *Resolver {
	r := &Resolver{client, make(map[string]*entry)}
	for _, n := range names {
		r.entries[n] = new(entry)
	}
	return r
}

// Key returns the key that an ID means: that of a did:key, or one of a did:wba that the owner
// listed. It may wait for the network until ctx ends.
func (r *Resolver) Key(ctx context.Context, keyID string) (identity.ID, error) {
	name, ok := Split(keyID)
	if strings.HasPrefix(name, keyPrefix) {
		if ok && "did:key:"+keyID[len(name)+1:] != name {
			return identity.ID{}, fmt.Errorf("the part of a did:key behind # is the key again, or left out")
		}
		return identity.Parse(name)
	}
	e := r.entries[name]
	if e == nil || !ok {
		return identity.ID{}, fmt.Errorf("keyid is did:key:z6Mk…, or of a did:wba that the owner of this site listed as one of http: callers")
	}
	doc, err := e.document(ctx, r.client, name)
	if err != nil {
		return identity.ID{}, err
	}
	return doc.Key(keyID)
}

// document returns the document of a name. Callers at a time wait for one fetch.
func (e *entry) document(ctx context.Context, client *http.Client, name string) (*Document, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	keep := keepGood
	if e.err != nil {
		keep = keepBad
	}
	if !e.fetched.IsZero() && time.Since(e.fetched) < keep {
		return e.doc, e.err
	}
	// Of a caller that leaves, the others still want it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	e.doc, e.err = Fetch(ctx, client, name)
	e.fetched = time.Now()
	return e.doc, e.err
}

// Fetch fetches the document of a checked name.
func Fetch(ctx context.Context, client *http.Client, name string) (*Document, error) {
	text, err := outbound.Get(ctx, client, location(name), maxDocument)
	if err != nil {
		return nil, fmt.Errorf("the document of %s cannot be fetched: %w", name, err)
	}
	doc, err := Parse(name, text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return doc, nil
}
