package access

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/node/identity"
)

// bounds of what is kept.
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
	Hash  Hash   `cbor:"2,keyasint"` // of the token, which is nowhere kept
	URL   string `cbor:"3,keyasint"` // the site's, for which alone it counts
	Until int64  `cbor:"4,keyasint"` // seconds since 1970; 0 for ever
	Grant []byte `cbor:"5,keyasint"`
}

// storeFile is what is kept of a Book.
type storeFile struct {
	Version  uint          `cbor:"1,keyasint"`
	Owners   []Owner       `cbor:"2,keyasint"`
	Secret   []byte        `cbor:"3,keyasint,omitempty"` // of the claim, until there is an owner
	Recovery []byte        `cbor:"4,keyasint,omitempty"` // SHA-256 of the code
	Grants   [][]byte      `cbor:"5,keyasint"`
	Tokens   []Token       `cbor:"6,keyasint"`
	Blocks   []Hash        `cbor:"7,keyasint"` // revoked
	Keys     []identity.ID `cbor:"8,keyasint"` // revoked, those of former owners too
}

// Options are what a Book works with.
type Options struct {
	Site identity.ID
	// Access and Counts are what was last given to the functions below, nil at first.
	// Those keep them so that a loss of power takes nothing back, and are called for
	// one change at a time.
	Access, Counts         []byte
	SaveAccess, SaveCounts func([]byte) error
	Build                  time.Time // when the program was made
	// SystemClock is the system's clock, and whether something synchronises it.
	SystemClock func() (t time.Time, synchronised bool)
	// OnEnd is called once permissions have ended, by an owner's word, before that is
	// kept, or by themselves, to end what is held by their leave; nil for nothing.
	OnEnd func()
	// LastKnown goes by the last known time while the time is not known. A permission
	// then lasts longer by as much as the site was off.
	LastKnown bool
}

// Store is who may do what on a site. All methods are safe for concurrent use. Those
// that change it return an error and change nothing where it cannot be kept, but for
// revocations. May waits for no disk.
type Store struct {
	Options
	start   time.Time
	moved   chan struct{} // where the next end of a permission may be another
	guesses guessLimiter  // of the recovery code

	saving sync.Mutex // while something is kept, and around mu
	mu     sync.Mutex
	kept   storeFile               // changed with both
	held   map[string][]credential // by principal
	ends   map[Hash]bool           // the last blocks of the grants that are kept, those of tokens too
	ended  []Revocation            // that are not kept yet
	leases map[lease][]credential  // by which grants each output was moved, by each principal
	// dropped is set where grants that had ended were forgotten before Keep saw it.
	dropped bool
	meter   rateCounter
	clock   clock
}

// credential is a grant in somebody's hands.
type credential struct {
	who       string // the principal's ID
	root      string // the same of whom an owner granted it to, who may have passed it on
	grant     *Grant
	token     string // its name; "" without one
	until     int64  // of the token
	presented bool   // and so not kept on the disk
}

// newHolding is a grant in the hands of its audience.
func newHolding(g *Grant) credential {
	return credential{who: g.Audience().String(), root: g.Blocks[0].Audience.String(), grant: g}
}

// find is where a grant is among what its audience holds without a token; -1 for nowhere.
func find(held []credential, g *Grant) int {
	return slices.IndexFunc(held, func(h credential) bool { return h.token == "" && bytes.Equal(h.grant.bytes, g.bytes) })
}

// NewStore reads what was kept.
func NewStore(o Options) (*Store, error) {
	if o.OnEnd == nil {
		o.OnEnd = func() {}
	}
	b := &Store{Options: o, start: time.Now(), moved: make(chan struct{}, 1), leases: make(map[lease][]credential), kept: storeFile{Version: version}}
	if len(o.Access) > 0 {
		if err := readKept("who may do what", o.Access, &b.kept); err != nil {
			return nil, err
		}
	}
	var saved time.Time
	var known bool
	var err error
	if b.meter, saved, known, err = decodeMeter(o.Counts); err != nil {
		return nil, err
	}
	b.clock = newClock(o.Build, saved, known)
	if b.held, b.ends, err = b.hold(b.kept); err != nil {
		return nil, err
	}
	return b, nil
}

// hold opens the grants that are kept, those only that are not open yet. The lock is free.
func (b *Store) hold(k storeFile) (map[string][]credential, map[Hash]bool, error) {
	open := make(map[string]*Grant)
	b.mu.Lock() // what is presented meanwhile changes it
	for _, all := range b.held {
		for _, h := range all {
			open[string(h.grant.bytes)] = h.grant
		}
	}
	b.mu.Unlock()
	held, ends := make(map[string][]credential), make(map[Hash]bool)
	add := func(raw []byte, t *Token) (err error) {
		g := open[string(raw)]
		if g == nil {
			if g, err = ParseGrant(raw); err != nil {
				return err
			}
		}
		h := newHolding(g)
		if t != nil {
			h.who, h.token, h.until = tokenPrefix+t.Name, t.Name, t.Until
			if len(g.Blocks) == 1 { // the site holds it for whoever brings the token
				h.root = h.who
			}
		}
		ends[g.ID()] = true
		held[h.who] = append(held[h.who], h)
		return nil
	}
	for _, raw := range k.Grants {
		if err := add(raw, nil); err != nil {
			return nil, nil, err
		}
	}
	for _, t := range k.Tokens {
		if err := add(t.Grant, &t); err != nil {
			return nil, nil, err
		}
	}
	return held, ends, nil
}

// change keeps what do makes of a copy, and goes by it from then on.
func (b *Store) change(do func(*storeFile) error) error {
	b.saving.Lock()
	defer b.saving.Unlock()
	k := b.kept
	k.Owners, k.Grants, k.Tokens = slices.Clone(k.Owners), slices.Clone(k.Grants), slices.Clone(k.Tokens)
	k.Blocks, k.Keys = slices.Clone(k.Blocks), slices.Clone(k.Keys)
	if err := do(&k); err != nil {
		return err
	}
	held, ends, err := b.hold(k)
	if err != nil {
		return err
	}
	text, err := form.Encode(k)
	if err != nil {
		return err
	}
	if err := b.SaveAccess(text); err != nil {
		return fmt.Errorf("this could not be kept, and nothing is changed: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	presented := b.presented()
	b.kept, b.held, b.ends = k, held, ends
	for _, h := range presented {
		if find(held[h.who], h.grant) < 0 {
			held[h.who] = append(held[h.who], h)
		}
	}
	b.poke()
	return nil
}

// AddGrant keeps a grant at an owner's word, so that its audience need not bring it along.
// A key that was revoked has what is deposited for it afterwards.
func (b *Store) AddGrant(raw []byte) (*Grant, error) {
	g, err := ParseGrant(raw)
	if err != nil {
		return nil, err
	}
	return g, b.deposit(g)
}

// deposit keeps a grant, unless there are as many already.
func (b *Store) deposit(g *Grant) error {
	b.mu.Lock()
	held := b.held[g.Audience().String()]
	b.mu.Unlock()
	if i := find(held, g); i >= 0 && !held[i].presented {
		return nil
	}
	return b.change(func(k *storeFile) error {
		if err := b.accepts(k, g, g.ID()); err != nil {
			return err
		}
		now, _ := b.Now()
		k.Grants = slices.DeleteFunc(k.Grants, func(raw []byte) bool {
			have, err := ParseGrant(raw)
			return err != nil || !have.Until().IsZero() && !have.Until().After(now)
		})
		if len(k.Grants) >= maxGrants {
			return denied("%d grants are kept here, which is as many as there can be: revoke one first", len(k.Grants))
		}
		k.Grants = append(k.Grants, g.Bytes())
		return nil
	})
}

// Grants lists the grants that are in somebody's hands, but for those of tokens.
func (b *Store) Grants() []*Grant {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []*Grant
	for _, held := range b.held {
		for _, h := range held {
			if h.token == "" {
				all = append(all, h.grant)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Grant) int { return bytes.Compare(a.bytes, b.bytes) })
	return all
}

// Standing is another when what p has a permission for may have changed, and 0 while
// nothing that is kept for p counts.
func (b *Store) Standing(p agents.Principal) (n uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range b.held[p.ID] {
		if !b.over(h) {
			id := h.grant.ID()
			n = n*31 + binary.BigEndian.Uint64(id[:]) | 1
		}
	}
	return n
}

func (k *storeFile) owns(id identity.ID) bool {
	return slices.ContainsFunc(k.Owners, func(o Owner) bool { return o.ID == id })
}

// accepts reports why a grant means nothing here: it is another's, or revoked. A revoked
// key loses every grant that it had or issued, also those that the site never saw. So each
// grant of such a key that is kept was deposited afterwards, and counts; anew is one that
// is being deposited.
func (b *Store) accepts(k *storeFile, g *Grant, anew Hash) error {
	if !k.owns(g.Issuer) {
		return denied("your grant is from %v, who is no owner of this site", g.Issuer)
	}
	ended := func(key identity.ID, block Hash) bool {
		return slices.Contains(k.Keys, key) && block != anew && !b.ends[block]
	}
	if ended(g.Issuer, g.ids[0]) {
		return errRevoked
	}
	for i, block := range g.Blocks {
		if block.Node != (identity.ID{}) && block.Node != b.Site {
			return denied("your grant is for another site, %s", block.Node.PeerID())
		}
		if slices.Contains(k.Blocks, g.ids[i]) || ended(block.Audience, g.ids[i]) {
			return errRevoked
		}
	}
	return nil
}
