package access

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/agents"
	"agentsite/node/identity"
)

// Limits of the store.
const (
	maxOwners = 8
	maxGrants = 64
	maxTokens = 64
	maxName   = 24
)

// Owner is a key with authority over the site.
type Owner struct {
	ID   identity.ID `cbor:"1,keyasint"`
	Name string      `cbor:"2,keyasint,omitempty"`
}

// Token is a bearer token that stands for a grant.
type Token struct {
	Name  string `cbor:"1,keyasint"`
	Hash  Hash   `cbor:"2,keyasint"` // of the token, which is not stored
	URL   string `cbor:"3,keyasint"` // the site's, for which alone it is valid
	Until int64  `cbor:"4,keyasint"` // seconds since 1970; 0 for ever
	Grant []byte `cbor:"5,keyasint"`
	// SignIn is set for a client that signed in by OAuth. A program before it refuses such a file.
	SignIn *SignIn `cbor:"6,keyasint,omitempty"`
}

// storeFile is the stored form of a Store.
type storeFile struct {
	Version  uint          `cbor:"1,keyasint"`
	Owners   []Owner       `cbor:"2,keyasint"`
	Secret   []byte        `cbor:"3,keyasint,omitempty"` // of the claim, until there is an owner
	Recovery []byte        `cbor:"4,keyasint,omitempty"` // SHA-256 of the code
	Grants   [][]byte      `cbor:"5,keyasint"`
	Tokens   []Token       `cbor:"6,keyasint"`
	Blocks   []Hash        `cbor:"7,keyasint"`           // revoked
	Keys     []identity.ID `cbor:"8,keyasint"`           // revoked, those of former owners too
	Site     []byte        `cbor:"9,keyasint,omitempty"` // the site's key; none in a file of before November 2026
}

// Options are the parameters of a Store.
type Options struct {
	Site identity.ID
	URL  string // the site's, for which its tokens are valid; set before the first Bearer
	// Access and Counts are the last arguments of SaveAccess and SaveCounts, nil at first. Both
	// functions write durably; each is called for one change at a time.
	Access, Counts         []byte
	SaveAccess, SaveCounts func([]byte) error
	Build                  time.Time // of the program
	// SystemClock returns the system's time, and whether something synchronises it.
	SystemClock func() (t time.Time, synchronised bool)
	// OnEnd is called when permissions have ended, to end the leases that depended on them; nil for
	// nothing. After a revocation it is called before that is stored.
	OnEnd func()
	// OnEnding is told by Run of each stored permission that ends soon, a week and a day before, and again
	// after a start; nil for nothing.
	OnEnding func(who string, grant Hash, until time.Time)
	// LastKnown uses the last known time while the time is not known. A permission then lasts
	// longer by as long as the site was off.
	LastKnown bool
}

// Store decides about permissions on a site. All methods are safe for concurrent use. Those that
// change it return an error and change nothing where that cannot be stored, except for revocations.
// Its refusals are faults: Busy where waiting helps, otherwise Denied.
type Store struct {
	Options
	start   time.Time
	changed chan struct{} // wakes Run, as the next expiry may be another
	guesses guessLimiter  // of the recovery code
	signIn  atomic.Value  // the URL for which the tokens of clients are valid that signed in, a string

	saving      sync.Mutex // held during a save; locked before mu
	mu          sync.Mutex
	file        storeFile               // changed with both locks
	credentials map[string][]credential // by principal
	hosted      map[string][]credential // of the agents in the configuration, by principal
	blocks      map[Hash]bool           // the last blocks of the stored grants, those of tokens too
	revoking    []Revocation            // that are not stored yet
	leases      map[lease][]credential  // by which grants each principal moved each output
	called      map[string]time.Time    // when the bearer of each token last called, by principal
	// dropped is set where expired presented grants were dropped before Run saw it.
	dropped bool
	marks   []mark
	counter rateCounter
	clock   clock
}

// credential is a grant that a principal has.
type credential struct {
	principal string // its ID
	root      string // the ID of the principal that an owner granted it to, which may have passed it on
	grant     *Grant
	token     string // its name; "" without one
	until     int64  // of the token
	presented bool   // by its holder, and so only in memory
	hosted    bool   // of an agent in the configuration; no owner signed it
}

// newCredential returns a grant as its audience's credential.
func newCredential(g *Grant) credential {
	return credential{principal: g.Audience().String(), root: g.Blocks[0].Audience.String(), grant: g}
}

// expires returns when the grant, or the token that stands for it, expires; 0 for never.
func (c credential) expires() int64 {
	until := c.until
	if t := c.grant.Until(); !t.IsZero() && (until == 0 || t.Unix() < until) {
		until = t.Unix()
	}
	return until
}

// find returns the index of a grant among credentials that are no tokens, -1 for none.
func find(all []credential, g *Grant) int {
	return slices.IndexFunc(all, func(c credential) bool { return c.token == "" && bytes.Equal(c.grant.bytes, g.bytes) })
}

// NewStore decodes and verifies the stored files.
func NewStore(o Options) (*Store, error) {
	if o.OnEnd == nil {
		o.OnEnd = func() {}
	}
	if o.OnEnding == nil {
		o.OnEnding = func(string, Hash, time.Time) {}
	}
	s := &Store{Options: o, start: time.Now(), changed: make(chan struct{}, 1), leases: make(map[lease][]credential),
		called: make(map[string]time.Time), file: storeFile{Version: version}}
	if len(o.Access) > 0 {
		if err := decodeFile("the access store", o.Access, &s.file); err != nil {
			return nil, err
		}
		if len(s.file.Site) > 0 && !bytes.Equal(s.file.Site, o.Site[:]) {
			return nil, errors.New("the access store is that of another site, with other owners")
		}
	}
	s.file.Site = o.Site[:]
	var saved time.Time
	var known bool
	var err error
	if s.counter, s.marks, saved, known, err = decodeCounts(o.Counts); err != nil {
		return nil, err
	}
	s.clock = newClock(o.Build, saved, known)
	if s.credentials, s.blocks, err = s.load(s.file); err != nil {
		return nil, err
	}
	return s, nil
}

// load returns the credentials of a file and the last blocks of its grants. It parses only
// grants that are not loaded yet. The caller does not hold the lock.
func (s *Store) load(f storeFile) (map[string][]credential, map[Hash]bool, error) {
	parsed := make(map[string]*Grant)
	s.mu.Lock() // Present may change it meanwhile
	for _, all := range s.credentials {
		for _, c := range all {
			parsed[string(c.grant.bytes)] = c.grant
		}
	}
	s.mu.Unlock()
	credentials, blocks := make(map[string][]credential), make(map[Hash]bool)
	add := func(raw []byte, t *Token) (err error) {
		g := parsed[string(raw)]
		if g == nil {
			if g, err = ParseGrant(raw); err != nil {
				return err
			}
		}
		c := newCredential(g)
		if t != nil {
			c.principal, c.token, c.until = t.principal(), t.Name, t.Until
			if len(g.Blocks) == 1 { // the site has it for the bearer of the token
				c.root = c.principal
			}
		}
		blocks[g.ID()] = true
		credentials[c.principal] = append(credentials[c.principal], c)
		return nil
	}
	for _, raw := range f.Grants {
		if err := add(raw, nil); err != nil {
			return nil, nil, err
		}
	}
	for _, t := range f.Tokens {
		if err := add(t.Grant, &t); err != nil {
			return nil, nil, err
		}
	}
	return credentials, blocks, nil
}

// clone returns a copy whose lists can be changed.
func (f storeFile) clone() storeFile {
	f.Owners, f.Grants, f.Tokens = slices.Clone(f.Owners), slices.Clone(f.Grants), slices.Clone(f.Tokens)
	f.Blocks, f.Keys = slices.Clone(f.Blocks), slices.Clone(f.Keys)
	return f
}

// change edits a copy of the file, without what is revoked, stores it, and then uses it.
func (s *Store) change(edit func(*storeFile) error) error {
	s.saving.Lock()
	defer s.saving.Unlock()
	f := s.file.clone()
	s.mu.Lock()
	revoked := slices.Clone(s.revoking)
	s.mu.Unlock()
	for _, r := range revoked {
		f.revoke(r)
	}
	if err := edit(&f); err != nil {
		return err
	}
	credentials, blocks, err := s.load(f)
	if err != nil {
		return err
	}
	text, err := codec.Encode(f)
	if err != nil {
		return err
	}
	if err := s.SaveAccess(text); err != nil {
		return fmt.Errorf("the change could not be stored, and has no effect: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	presented := s.presented()
	s.file, s.credentials, s.blocks = f, credentials, blocks
	s.revoking = slices.Delete(s.revoking, 0, len(revoked))
	for _, c := range presented {
		if find(credentials[c.principal], c.grant) < 0 {
			credentials[c.principal] = append(credentials[c.principal], c)
		}
	}
	s.wake()
	return nil
}

// Grants lists the grants that principals have, stored and presented, without those of tokens.
func (s *Store) Grants() []*Grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*Grant
	for _, have := range s.credentials {
		for _, c := range have {
			if c.token == "" {
				all = append(all, c.grant)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Grant) int { return bytes.Compare(a.bytes, b.bytes) })
	return all
}

// Version returns a number that changes when the permissions of p may have changed, and is
// 0 while p has no valid one.
func (s *Store) Version(p agents.Principal) (n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.credentialsOf(p) {
		if !s.invalid(c) {
			id := c.grant.ID()
			n = n*31 + binary.BigEndian.Uint64(id[:]) | 1
		}
	}
	return n
}

func (f *storeFile) owns(id identity.ID) bool {
	return slices.ContainsFunc(f.Owners, func(o Owner) bool { return o.ID == id })
}

// accepts refuses a grant that is revoked or not from this site. A revoked key loses every grant
// that it had or issued, also those that the site never saw. So each stored grant of such a key was
// added afterwards, and is valid. adding is the last block of a grant that is being added, zero for
// no grant.
func (s *Store) accepts(f *storeFile, g *Grant, adding Hash) error {
	if !f.owns(g.Issuer) {
		return denied("your grant is from %v, who is not an owner of this site", g.Issuer)
	}
	revoked := func(key identity.ID, block Hash) bool {
		return slices.Contains(f.Keys, key) && block != adding && !s.blocks[block]
	}
	if revoked(g.Issuer, g.ids[0]) {
		return errRevoked
	}
	for i, block := range g.Blocks {
		if block.Node != (identity.ID{}) && block.Node != s.Site {
			return denied("your grant is for another site, %s", block.Node.PeerID())
		}
		if slices.Contains(f.Blocks, g.ids[i]) || revoked(block.Audience, g.ids[i]) {
			return errRevoked
		}
	}
	return nil
}
