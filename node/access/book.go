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

	maxPresented = 8 // of what was passed on from one root
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
	Until int64  `cbor:"4,keyasint"` // seconds since 1970
	Grant []byte `cbor:"5,keyasint"`
}

// book is what is kept of a Book.
type book struct {
	Version  uint          `cbor:"1,keyasint"`
	Owners   []Owner       `cbor:"2,keyasint"`
	Secret   []byte        `cbor:"3,keyasint,omitempty"` // of the claim, until there is an owner
	Recovery []byte        `cbor:"4,keyasint,omitempty"` // SHA-256 of the code
	Grants   [][]byte      `cbor:"5,keyasint"`
	Tokens   []Token       `cbor:"6,keyasint"`
	Blocks   []Hash        `cbor:"7,keyasint"` // revoked
	Keys     []identity.ID `cbor:"8,keyasint"` // revoked
}

// Options are what a Book works with.
type Options struct {
	Site identity.ID
	// Book and Meter are what was last given to the functions below, nil at first.
	// Those keep them so that a loss of power takes nothing back, and are called for
	// one change at a time.
	Book, Meter         []byte
	SaveBook, SaveMeter func([]byte) error
	Build               time.Time // when the program was made
	// System is the system's clock, and whether something synchronises it.
	System func() (t time.Time, synchronised bool)
	// Ended is called once permissions have ended by an owner's word, before that is
	// kept, to end what is held by their leave; nil for nothing.
	Ended func()
	// StrictReads also refuses reads that are granted until a time while the time is
	// not known.
	StrictReads bool
}

// Book is who may do what on a site. All methods are safe for concurrent use. Those
// that change it return an error and change nothing where it cannot be kept, but for
// revocations. May waits for no disk.
type Book struct {
	Options
	start   time.Time
	guesses pace // of the recovery code

	saving sync.Mutex // while something is kept, and around mu
	mu     sync.Mutex
	kept   book                 // changed with both
	held   map[string][]holding // by principal
	ended  []Revocation         // that are not kept yet
	meter  Meter
	clock  Clock
}

// holding is a grant in somebody's hands.
type holding struct {
	who   string // the principal's ID
	grant *Grant
	token string // its name; "" without one
	until int64  // of the token
}

// NewBook reads what was kept.
func NewBook(o Options) (*Book, error) {
	if o.Ended == nil {
		o.Ended = func() {}
	}
	b := &Book{Options: o, start: time.Now(), kept: book{Version: version}}
	if len(o.Book) > 0 {
		if err := readKept("who may do what", o.Book, &b.kept); err != nil {
			return nil, err
		}
	}
	var saved time.Time
	var err error
	if b.meter, saved, err = decodeMeter(o.Meter); err != nil {
		return nil, err
	}
	b.clock = NewClock(o.Build, saved)
	if b.held, err = b.hold(b.kept); err != nil {
		return nil, err
	}
	return b, nil
}

// hold opens the grants that are kept, those only that are not open yet.
func (b *Book) hold(k book) (map[string][]holding, error) {
	open := make(map[string]*Grant)
	for _, all := range b.held {
		for _, h := range all {
			open[string(h.grant.bytes)] = h.grant
		}
	}
	held := make(map[string][]holding)
	add := func(name string, raw []byte, h holding) (err error) {
		if h.grant = open[string(raw)]; h.grant == nil {
			if h.grant, err = Open(raw); err != nil {
				return err
			}
		}
		if name == "" {
			name = h.grant.Audience().String()
		}
		h.who = name
		held[name] = append(held[name], h)
		return nil
	}
	for _, raw := range k.Grants {
		if err := add("", raw, holding{}); err != nil {
			return nil, err
		}
	}
	for _, t := range k.Tokens {
		if err := add(tokenPrefix+t.Name, t.Grant, holding{token: t.Name, until: t.Until}); err != nil {
			return nil, err
		}
	}
	return held, nil
}

// change keeps what do makes of a copy, and goes by it from then on.
func (b *Book) change(do func(*book) error) error {
	b.saving.Lock()
	defer b.saving.Unlock()
	k := b.kept
	k.Owners, k.Grants, k.Tokens = slices.Clone(k.Owners), slices.Clone(k.Grants), slices.Clone(k.Tokens)
	k.Blocks, k.Keys = slices.Clone(k.Blocks), slices.Clone(k.Keys)
	if err := do(&k); err != nil {
		return err
	}
	held, err := b.hold(k)
	if err != nil {
		return err
	}
	text, err := form.Encode(k)
	if err != nil {
		return err
	}
	if err := b.SaveBook(text); err != nil {
		return fmt.Errorf("this could not be kept, and nothing is changed: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept, b.held = k, held
	return nil
}

// ran is how long the process has run.
func (b *Book) ran() time.Duration { return time.Since(b.start) }

func (b *Book) now() (t time.Time, sure bool) {
	system, synchronised := b.System()
	return b.clock.Read(b.ran(), system, synchronised)
}

// Now is the time of day, and whether it is that and not only not earlier.
func (b *Book) Now() (t time.Time, sure bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now()
}

// Tell is an owner who proved who it is, and says what the time is now. What was known
// well enough already is not kept once more.
func (b *Book) Tell(t time.Time) error {
	b.mu.Lock()
	before, sure := b.now()
	b.clock.Tell(b.ran(), t)
	b.mu.Unlock()
	if sure && t.Sub(before) < time.Minute {
		return nil
	}
	return b.Save()
}

// Save keeps the time and what was counted. Call it now and then, and at the end:
// what a site has run since is not credited after a start.
func (b *Book) Save() error {
	b.saving.Lock()
	defer b.saving.Unlock()
	b.mu.Lock()
	least, _ := b.now()
	text, err := b.meter.encode(b.ran(), least)
	b.mu.Unlock()
	if err != nil {
		return err
	}
	return b.SaveMeter(text)
}

// Deposit keeps a grant at an owner's word, so that its audience need not bring it along.
func (b *Book) Deposit(raw []byte) (*Grant, error) {
	g, err := Open(raw)
	if err != nil {
		return nil, err
	}
	return g, b.deposit(g, maxGrants, maxGrants)
}

// Present keeps a grant that its holder brings along. Those leave room for what owners
// deposit, and for those from another root.
func (b *Book) Present(holder identity.ID, raw []byte) (*Grant, error) {
	g, err := Open(raw)
	switch {
	case err != nil:
		return nil, err
	case g.Audience() != holder:
		return nil, denied("this grant is for %v, and you are %v", g.Audience(), holder)
	}
	return g, b.deposit(g, maxGrants*3/4, maxPresented)
}

// deposit keeps a grant, unless there are as many already, or as many from its root.
func (b *Book) deposit(g *Grant, most, mostOfRoot int) error {
	b.mu.Lock()
	kept := slices.ContainsFunc(b.held[g.Audience().String()], func(h holding) bool { return h.token == "" && bytes.Equal(h.grant.bytes, g.bytes) })
	b.mu.Unlock()
	if kept {
		return nil
	}
	return b.change(func(k *book) error {
		if err := k.accepts(b.Site, g); err != nil {
			return err
		}
		now, _ := b.Now()
		ofRoot := 0
		k.Grants = slices.DeleteFunc(k.Grants, func(raw []byte) bool {
			have, err := Open(raw)
			if err != nil || !have.Until().IsZero() && !have.Until().After(now) {
				return true
			}
			if have.ids[0] == g.ids[0] {
				ofRoot++
			}
			return false
		})
		if len(k.Grants) >= most || ofRoot >= mostOfRoot {
			return denied("%d grants are kept here, %d of them from this root, which is as many as there can be: have an owner revoke one", len(k.Grants), ofRoot)
		}
		k.Grants = append(k.Grants, g.Bytes())
		return nil
	})
}

// Grants lists the grants that are kept, but for those of tokens.
func (b *Book) Grants() []*Grant {
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
func (b *Book) Standing(p agents.Principal) (n uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range b.held[p.ID] {
		if b.counts(h, agents.Returns) == nil {
			id := h.grant.ID()
			n = n*31 + binary.BigEndian.Uint64(id[:]) | 1
		}
	}
	return n
}

// accepts reports why a grant means nothing here: it is another's, or revoked.
func (k *book) accepts(site identity.ID, g *Grant) error {
	if !slices.ContainsFunc(k.Owners, func(o Owner) bool { return o.ID == g.Issuer }) {
		return denied("your grant is from %v, who is no owner of this site", g.Issuer)
	}
	for i, b := range g.Blocks {
		if b.Node != (identity.ID{}) && b.Node != site {
			return denied("your grant is for another site, %s", b.Node.PeerID())
		}
		if slices.Contains(k.Blocks, g.ids[i]) || slices.Contains(k.Keys, b.Audience) {
			return errRevoked
		}
	}
	return nil
}
