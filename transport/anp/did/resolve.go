package did

import (
	"context"
	"errors"
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
	// A document is used for keepGood, and its absence for keepBad, which limits how often a caller
	// that only names it can cause a fetch.
	keepGood     = 10 * time.Minute
	keepBad      = time.Minute
	fetchTimeout = 10 * time.Second
	maxWaiting   = 8 // for one document
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
	mu       sync.Mutex
	fetched  time.Time // by the monotonic clock; zero for never
	doc      *Document
	err      error
	fetching chan struct{} // closed at the end of the fetch that is under way; nil for none
	waiting  int           // callers, for that
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

// document returns the document of a name. Callers at a time wait for one fetch, a few of them:
// nobody has proved anything yet.
func (e *entry) document(ctx context.Context, client *http.Client, name string) (*Document, error) {
	e.mu.Lock()
	keep := keepGood
	if e.err != nil {
		keep = keepBad
	}
	fetching := e.fetching
	switch {
	case fetching == nil && !e.fetched.IsZero() && time.Since(e.fetched) < keep:
		defer e.mu.Unlock()
		return e.doc, e.err
	case e.waiting >= maxWaiting:
		e.mu.Unlock()
		return nil, fmt.Errorf("the document of %s is being fetched: try again in a moment", name)
	case fetching == nil:
		e.fetching = make(chan struct{})
		e.mu.Unlock()
		return e.fetch(ctx, client, name)
	}
	e.waiting++
	e.mu.Unlock()
	var err error
	select {
	case <-fetching:
	case <-ctx.Done():
		err = ctx.Err()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting--; err != nil {
		return nil, err
	}
	return e.doc, e.err
}

// fetch fetches the document for all that wait for it.
func (e *entry) fetch(ctx context.Context, client *http.Client, name string) (doc *Document, err error) {
	err = errors.New("reading the document panicked")
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.doc, e.err, e.fetched = doc, err, time.Now()
		close(e.fetching)
		e.fetching = nil
	}()
	// Of a caller that leaves, the others still want it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	doc, err = Fetch(ctx, client, name)
	return doc, err
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

// Lookup fetches the document of a did:wba and returns the key that its fragment names. Without a
// fragment it returns the subject's only authentication key.
func Lookup(ctx context.Context, text string) (identity.ID, error) {
	name, fragment := Split(text)
	if err := Check(name); err != nil {
		return identity.ID{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	doc, err := Fetch(ctx, NewClient(), name)
	if err != nil {
		return identity.ID{}, err
	}
	if fragment {
		return doc.Key(text)
	}
	return doc.sole()
}

// sole returns the only key that authenticates.
func (d *Document) sole() (key identity.ID, err error) {
	for _, k := range d.keys {
		if key != (identity.ID{}) && k != key {
			return key, fmt.Errorf("%s has several Ed25519 keys: write which one, such as %[1]s#key-1", d.ID)
		}
		key = k
	}
	if key == (identity.ID{}) {
		return key, fmt.Errorf("%s has no Ed25519 key that authenticates it", d.ID)
	}
	return key, nil
}
