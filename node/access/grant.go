package access

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"agentsite/agents"
	"agentsite/node/identity"

	"github.com/fxamacker/cbor/v2"
)

const (
	version   = 1
	maxBlocks = 4
	maxGrant  = 4 << 10 // bytes

	purpose identity.Purpose = "grant"
)

// Block is one step of a grant: what its issuer allows its audience. The issuer of
// the first is an owner, and of each other the audience of the one before.
type Block struct {
	Audience    identity.ID  `cbor:"1,keyasint"`
	Node        identity.ID  `cbor:"2,keyasint,omitzero"`  // the site; zero for all of the owner's
	From        int64        `cbor:"3,keyasint,omitempty"` // seconds since 1970; 0 for always
	Until       int64        `cbor:"4,keyasint,omitempty"` // and not at this second any more; 0 for ever
	Nonce       [16]byte     `cbor:"5,keyasint"`           // so that two alike are two
	Permissions []Permission `cbor:"6,keyasint"`           // the first that covers a call decides
}

func (b Block) check() error {
	if len(b.Permissions) == 0 || len(b.Permissions) > maxEntries {
		return fmt.Errorf("a grant has 1 to %d parts, not %d", maxEntries, len(b.Permissions))
	}
	if !b.Audience.Valid() {
		return errors.New("a grant is for somebody, with a key that is theirs alone")
	}
	if b.From < 0 || b.Until < 0 || b.Until > 0 && b.Until <= b.From {
		return errors.New("a grant ends after it begins")
	}
	for _, p := range b.Permissions {
		if err := p.check(); err != nil {
			return err
		}
	}
	return nil
}

// Hash names a block with all before it.
type Hash [sha256.Size]byte

func (h Hash) String() string { return fmt.Sprintf("%x", h[:8]) }

// Grant is a chain of blocks whose signatures were verified. It says nothing yet of
// whether its issuer is an owner here. It is not changed once it is made.
type Grant struct {
	Issuer identity.ID
	Blocks []Block
	ids    []Hash // of the blocks
	bytes  []byte
}

// Signers are the keys that signed it: its issuer's, and of whoever passed it on.
func (g *Grant) Signers() []identity.ID {
	all := []identity.ID{g.Issuer}
	for _, b := range g.Blocks[:len(g.Blocks)-1] {
		all = append(all, b.Audience)
	}
	return all
}

// Expired reports whether it has ended.
func (g *Grant) Expired(now time.Time) bool {
	until := g.Until()
	return !until.IsZero() && !until.After(now)
}

// chain is a grant as it travels.
type chain struct {
	_       struct{} `cbor:",toarray"`
	Version uint
	Issuer  identity.ID
	Blocks  []signed
}

type signed struct {
	_         struct{} `cbor:",toarray"`
	Block     cbor.RawMessage
	Signature []byte
}

// form is how grants and what is kept are written.
var form = identity.NewCodec(8)

// readKept is Decode for what a site kept, whose first field is its version.
func readKept(what string, b []byte, v any) error {
	var kept struct {
		Version uint `cbor:"1,keyasint"`
	}
	err := form.Decode(b, v)
	if cbor.Unmarshal(b, &kept) == nil && kept.Version > version {
		err = fmt.Errorf("it is of version %d, and needs a newer agentsite", kept.Version)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", what, err)
	}
	return nil
}

// after names a block with all before it; before the first there is the issuer.
func after(before []byte, block []byte) Hash {
	h := sha256.New()
	h.Write(before)
	h.Write(block)
	return Hash(h.Sum(nil))
}

// Issue makes a grant, of which key's owner is the issuer. It gives the block its
// nonce.
func Issue(key identity.Key, b Block) (*Grant, error) {
	return (&Grant{Issuer: key.ID()}).extend(key, chain{Version: version, Issuer: key.ID()}, b)
}

// Delegate passes a grant on to the block's audience. The key is the audience's of
// the last block, and nobody is asked. What the block allows and those before it do
// not stays refused.
func (g *Grant) Delegate(key identity.Key, b Block) (*Grant, error) {
	if key.ID() != g.Audience() {
		return nil, fmt.Errorf("this grant is for %v: only its key can pass it on", g.Audience())
	}
	var c chain
	if err := form.Decode(g.bytes, &c); err != nil {
		return nil, err
	}
	return g.extend(key, c, b)
}

func (g *Grant) extend(key identity.Key, c chain, b Block) (*Grant, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	rand.Read(b.Nonce[:])
	raw, err := form.Encode(b)
	if err != nil {
		return nil, err
	}
	id := after(g.last(), raw)
	c.Blocks = append(c.Blocks, signed{Block: raw, Signature: key.Sign(purpose, id[:])})
	all, err := form.Encode(c)
	if err != nil {
		return nil, err
	}
	return ParseGrant(all)
}

// last is what the next block's name begins with.
func (g *Grant) last() []byte {
	if len(g.ids) == 0 {
		return g.Issuer[:]
	}
	return g.ids[len(g.ids)-1][:]
}

// ParseGrant reads a grant and verifies its signatures.
func ParseGrant(b []byte) (*Grant, error) {
	if len(b) > maxGrant {
		return nil, fmt.Errorf("a grant of %d bytes is longer than %d: let it permit less, or pass it on fewer times", len(b), maxGrant)
	}
	if len(b) > 2 && b[0] == 0x83 && b[1] != version { // an array of three
		return nil, fmt.Errorf("this grant is of a version that is not known here: it needs a newer agentsite")
	}
	var c chain
	if err := form.Decode(b, &c); err != nil {
		return nil, fmt.Errorf("this is no grant: %w", err)
	}
	if len(c.Blocks) == 0 || len(c.Blocks) > maxBlocks {
		return nil, fmt.Errorf("a grant can be passed on %d times, and this has %d blocks", maxBlocks-1, len(c.Blocks))
	}
	g := &Grant{Issuer: c.Issuer, bytes: bytes.Clone(b)}
	for i, s := range c.Blocks {
		var block Block
		if err := form.Decode(s.Block, &block); err != nil {
			return nil, fmt.Errorf("block %d of the grant cannot be read, and what is not understood is refused: %w", i+1, err)
		}
		if err := block.check(); err != nil {
			return nil, fmt.Errorf("block %d of the grant: %w", i+1, err)
		}
		issuer, id := g.Audience(), after(g.last(), s.Block)
		if !issuer.Verify(purpose, id[:], s.Signature) {
			return nil, fmt.Errorf("block %d of the grant is not signed by %v", i+1, issuer)
		}
		g.Blocks, g.ids = append(g.Blocks, block), append(g.ids, id)
	}
	return g, nil
}

// Audience is who holds the grant: before there is a block, its issuer.
func (g *Grant) Audience() identity.ID {
	if len(g.Blocks) == 0 {
		return g.Issuer
	}
	return g.Blocks[len(g.Blocks)-1].Audience
}

// Bytes are the grant as it travels. They are not to be changed.
func (g *Grant) Bytes() []byte { return g.bytes }

// Words are what the last block permits; those before it may permit less.
func (g *Grant) Words() string { return FormatPermissions(g.Blocks[len(g.Blocks)-1].Permissions) }

// ID names the grant.
func (g *Grant) ID() Hash { return g.ids[len(g.ids)-1] }

// EndSecond is the first whole second that is not before t, in seconds since 1970, and 0 for
// the zero Time: grants and tokens end at whole seconds, and last no shorter than was said.
func EndSecond(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Add(time.Second - 1).Unix()
}

// Until is when the first of its blocks ends; the zero Time for never.
func (g *Grant) Until() time.Time {
	var until int64
	for _, b := range g.Blocks {
		if b.Until != 0 && (until == 0 || b.Until < until) {
			until = b.Until
		}
	}
	if until == 0 {
		return time.Time{}
	}
	return time.Unix(until, 0).UTC()
}

// part is the place of a permission in a chain.
type part struct{ block, part int }

// deciding finds, in every block and for every point of an ask, the part that decides.
// Where a block has none, the ask is denied. It appends them to parts, so that few need
// no memory.
func (g *Grant) deciding(ask agents.Ask, parts []part) ([]part, error) {
	points := ask.Points
	if len(points) == 0 {
		points = []string{""}
	}
	for i, b := range g.Blocks {
		for _, point := range points {
			n := slices.IndexFunc(b.Permissions, func(p Permission) bool { return p.covers(ask.Tool, point, ask.Effect) })
			if n < 0 {
				return nil, lacks(ask.Tool, point)
			}
			if p := (part{i, n}); !slices.Contains(parts, p) {
				parts = append(parts, p)
			}
		}
	}
	return parts, nil
}

// allow holds an ask against every part that decides: all have to allow it, and the
// limits are the narrowest. It also says which rates the ask counts against.
func (g *Grant) allow(ask agents.Ask) (l agents.Limits, charges []charge, err error) {
	var few [8]part
	parts, err := g.deciding(ask, few[:0])
	if err != nil {
		return l, nil, err
	}
	for _, at := range parts {
		p := g.Blocks[at.block].Permissions[at.part]
		if err := p.allow(ask, &l); err != nil {
			return l, nil, err
		}
		if p.Rate != nil && ask.Effect != agents.Returns {
			charges = append(charges, charge{use{g.ids[0], g.ids[at.block], uint8(at.part)}, *p.Rate})
		}
	}
	return l, charges, nil
}

// lacks is the denial of what no part covers.
func lacks(tool, point string) *Denied {
	p := Permission{Tools: []string{tool}}
	if point != "" {
		p.Points = []string{point}
	}
	if p.check() != nil {
		return denied("you lack a permission for this") // there are no such names anywhere
	}
	for _, v := range verbs {
		if slices.Contains(v.tools, tool) && (point != "" || v.word == wordStop) {
			p.Tools = v.tools
		}
	}
	return denied("you lack the permission '%s', which an owner can grant", p.words())
}
