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
	"agentsite/device"
	"agentsite/node/identity"

	"github.com/fxamacker/cbor/v2"
)

const (
	version   = 1
	maxBlocks = 4
	maxGrant  = 4 << 10 // bytes

	grantPurpose identity.Purpose = "grant"
)

// Block is one step of a grant: a permission of its issuer for its audience. The issuer of the
// first block is an owner, and of each other one the audience of the block before.
type Block struct {
	Audience    identity.ID  `cbor:"1,keyasint"`
	Node        identity.ID  `cbor:"2,keyasint,omitzero"`  // the site; zero for all of the owner's
	From        int64        `cbor:"3,keyasint,omitempty"` // seconds since 1970; 0 for no start
	Until       int64        `cbor:"4,keyasint,omitempty"` // exclusive; 0 for ever
	Nonce       [16]byte     `cbor:"5,keyasint"`           // makes two equal blocks distinct
	Permissions []Permission `cbor:"6,keyasint"`           // the first that covers a call decides
	// Name is that of the audience, as the issuer calls it: a phone, or the agent of a site that passed
	// its grant on to it. It is shown and decides nothing; "" for none. A program before it refuses
	// such a block.
	Name string `cbor:"7,keyasint,omitempty"`
	// Issued is the time of the signature by the issuer's clock, in nanoseconds since 1970; 0 for unknown.
	// Of the grants that the same keys passed on, a newer one replaces older ones; see marks.
	Issued int64 `cbor:"8,keyasint,omitempty"`
}

func (b Block) check() error {
	if len(b.Permissions) == 0 || len(b.Permissions) > maxEntries {
		return fmt.Errorf("a grant has 1 to %d parts, not %d", maxEntries, len(b.Permissions))
	}
	if !b.Audience.Valid() {
		return errors.New("the audience's key is one with which anybody can sign")
	}
	if b.From < 0 || b.Until < 0 || b.Issued < 0 || b.Until > 0 && b.Until <= b.From {
		return errors.New("a grant ends after it begins")
	}
	if b.Name != "" {
		if err := device.CheckName(b.Name); err != nil {
			return err
		}
	}
	for _, p := range b.Permissions {
		if err := p.check(); err != nil {
			return err
		}
		for _, pattern := range p.Points {
			if p.AtOtherSite(pattern) {
				return fmt.Errorf("%s is at another site: only the agents of this site ask there", pattern)
			}
		}
	}
	return nil
}

// Hash identifies a block with all blocks before it.
type Hash [sha256.Size]byte

func (h Hash) String() string { return fmt.Sprintf("%x", h[:8]) }

// Grant is a chain of blocks with verified signatures. Whether its issuer is an owner of a
// site is for that site to decide. It is immutable.
type Grant struct {
	Issuer identity.ID
	Blocks []Block
	ids    []Hash // of the blocks
	keys   []Hash // of the issuer and the audiences up to each block
	bytes  []byte
}

// Signers returns the keys that signed the grant: the issuer's, and those of the audiences
// that passed it on.
func (g *Grant) Signers() []identity.ID {
	all := []identity.ID{g.Issuer}
	for _, b := range g.Blocks[:len(g.Blocks)-1] {
		all = append(all, b.Audience)
	}
	return all
}

// HolderName returns what the owner who signed the grant calls its holder; "" for nothing, and where it was passed on.
func (g *Grant) HolderName() string {
	if len(g.Blocks) > 1 {
		return ""
	}
	return g.Blocks[0].Name
}

// Expired reports whether the grant has ended.
func (g *Grant) Expired(now time.Time) bool {
	until := g.Until()
	return !until.IsZero() && !until.After(now)
}

// grantWire is the encoded form of a grant.
type grantWire struct {
	_       struct{} `cbor:",toarray"`
	Version uint
	Issuer  identity.ID
	Blocks  []signedBlock
}

type signedBlock struct {
	_         struct{} `cbor:",toarray"`
	Block     cbor.RawMessage
	Signature []byte
}

// codec encodes grants and stored files.
var codec = identity.NewCodec(8)

// decodeFile decodes a stored file, whose first field is its version.
func decodeFile(what string, b []byte, v any) error {
	var file struct {
		Version uint `cbor:"1,keyasint"`
	}
	err := codec.Decode(b, v)
	if cbor.Unmarshal(b, &file) == nil && file.Version > version {
		err = fmt.Errorf("it has version %d, and needs a newer agentsite", file.Version)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", what, err)
	}
	return nil
}

// hashBlock returns the hash of a block and of its predecessor: the hash of the block before, or
// the issuer.
func hashBlock(before, block []byte) Hash {
	h := sha256.New()
	h.Write(before)
	h.Write(block)
	return Hash(h.Sum(nil))
}

// Issue creates a grant with key as the issuer. It sets the block's nonce and time.
func Issue(key identity.Key, b Block) (*Grant, error) {
	rand.Read(b.Nonce[:])
	b.Issued = time.Now().UnixNano()
	return (&Grant{Issuer: key.ID()}).extend(key, grantWire{Version: version, Issuer: key.ID()}, b)
}

// Delegate passes a grant on to the block's audience. key is that of the last block's audience.
// Permissions of the block beyond those of earlier blocks stay refused.
func (g *Grant) Delegate(key identity.Key, b Block) (*Grant, error) {
	rand.Read(b.Nonce[:])
	b.Issued = time.Now().UnixNano()
	return g.Attenuate(key, b)
}

// Attenuate is Delegate, but for equal blocks it returns the same grant again: its holder may
// present it any number of times, and has one.
func (g *Grant) Attenuate(key identity.Key, b Block) (*Grant, error) {
	if key.ID() != g.Audience() {
		return nil, fmt.Errorf("this grant is for %v: only its key can pass it on", g.Audience())
	}
	var c grantWire
	if err := codec.Decode(g.bytes, &c); err != nil {
		return nil, err
	}
	return g.extend(key, c, b)
}

func (g *Grant) extend(key identity.Key, c grantWire, b Block) (*Grant, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	raw, err := codec.Encode(b)
	if err != nil {
		return nil, err
	}
	id := hashBlock(g.lastHash(), raw)
	c.Blocks = append(c.Blocks, signedBlock{Block: raw, Signature: key.Sign(grantPurpose, id[:])})
	all, err := codec.Encode(c)
	if err != nil {
		return nil, err
	}
	return ParseGrant(all)
}

// lastHash returns the predecessor of the next block's hash.
func (g *Grant) lastHash() []byte {
	if len(g.ids) == 0 {
		return g.Issuer[:]
	}
	return g.ids[len(g.ids)-1][:]
}

// ParseGrant decodes a grant and verifies its signatures.
func ParseGrant(b []byte) (*Grant, error) {
	if len(b) > maxGrant {
		return nil, fmt.Errorf("a grant of %d bytes is longer than %d: shorten its permission, or pass it on fewer times", len(b), maxGrant)
	}
	if len(b) > 2 && b[0] == 0x83 && b[1] != version { // an array of three
		return nil, fmt.Errorf("this grant has an unknown version: it needs a newer agentsite")
	}
	var c grantWire
	if err := codec.Decode(b, &c); err != nil {
		return nil, fmt.Errorf("invalid grant: %w", err)
	}
	if len(c.Blocks) == 0 || len(c.Blocks) > maxBlocks {
		return nil, fmt.Errorf("a grant can be passed on %d times, and this has %d blocks", maxBlocks-1, len(c.Blocks))
	}
	g := &Grant{Issuer: c.Issuer, bytes: bytes.Clone(b)}
	for i, s := range c.Blocks {
		var block Block
		if err := codec.Decode(s.Block, &block); err != nil {
			return nil, fmt.Errorf("block %d of the grant cannot be read: %w", i+1, err)
		}
		if err := block.check(); err != nil {
			return nil, fmt.Errorf("block %d of the grant: %w", i+1, err)
		}
		issuer, id := g.Audience(), hashBlock(g.lastHash(), s.Block)
		if !issuer.Verify(grantPurpose, id[:], s.Signature) {
			return nil, fmt.Errorf("block %d of the grant is not signed by %v", i+1, issuer)
		}
		keys := g.Issuer[:]
		if i > 0 {
			keys = g.keys[i-1][:]
		}
		g.Blocks, g.ids, g.keys = append(g.Blocks, block), append(g.ids, id),
			append(g.keys, hashBlock(keys, block.Audience[:]))
	}
	return g, nil
}

// Audience returns the key that has the grant: without a block, its issuer.
func (g *Grant) Audience() identity.ID {
	if len(g.Blocks) == 0 {
		return g.Issuer
	}
	return g.Blocks[len(g.Blocks)-1].Audience
}

// Bytes returns the encoded grant. The caller does not change it.
func (g *Grant) Bytes() []byte { return g.bytes }

// Words returns the permissions of the last block as text; those before it may permit less.
func (g *Grant) Words() string { return FormatPermissions(g.Blocks[len(g.Blocks)-1].Permissions) }

// ID returns the hash of the last block, which identifies the grant.
func (g *Grant) ID() Hash { return g.ids[len(g.ids)-1] }

// EndSecond returns t in seconds since 1970, rounded up, and 0 for the zero Time. Grants and tokens
// end at whole seconds, and never earlier than requested.
func EndSecond(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Add(time.Second - 1).Unix()
}

// lastSecond is the last one of the year 9999. A later time has no form in JSON. Every holder who passes a grant on
// chooses an end.
const lastSecond = 253402300799

// Until returns when the first of the blocks ends, at the latest with the year 9999; the zero Time for never.
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
	return time.Unix(min(until, lastSecond), 0).UTC()
}

// partIndex is the place of a permission in a grant.
type partIndex struct{ block, part int }

// findParts finds, in every block and for every point of an ask, the permission that decides.
// It is not ok where a block has none; missing is the point, "" for an ask without. It appends
// them to parts, so that few need no allocation.
func (g *Grant) findParts(ask agents.Ask, parts []partIndex) (all []partIndex, missing string, ok bool) {
	points := ask.Points
	if len(points) == 0 {
		points = noPoint[:]
	}
	name := ask.Name()
	if name == agents.AnswerTool && len(g.Blocks) > 1 { // the one to whom an owner gave it does not pass it on
		return nil, "", false
	}
	for i, b := range g.Blocks {
		for _, point := range points {
			n := slices.IndexFunc(b.Permissions, func(p Permission) bool { return p.covers(name, point, ask.Effect) })
			if n < 0 {
				return nil, point, false
			}
			if p := (partIndex{i, n}); !slices.Contains(parts, p) {
				parts = append(parts, p)
			}
		}
	}
	return parts, "", true
}

var noPoint = [1]string{} // in place of the points of an ask that names none

// allow checks an ask against every permission that decides: all have to allow it, and the
// narrowest limits hold. It also returns the rates that the ask counts against.
func (g *Grant) allow(ask agents.Ask) (l agents.Limits, charges []charge, err error) {
	var few [8]partIndex
	parts, missing, ok := g.findParts(ask, few[:0])
	if !ok {
		return l, nil, missingPermission(ask.Name(), missing)
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

// missingPermission is the refusal of a tool on a point, "" for none, that no permission covers.
func missingPermission(tool, point string) *device.Fault {
	p := Permission{Tools: []string{tool}}
	if point != "" {
		p.Points = []string{point}
	}
	if p.check() != nil {
		return denied("you lack a permission for this") // no site has such names
	}
	for _, a := range actions {
		switch {
		case !slices.Contains(a.tools, tool):
		case point != "" || a.word == wordStop:
			p.Tools = a.tools
		default:
			return denied("you lack the permission to %s anything here; an owner can grant one such as '%[1]s *'", a.word)
		}
	}
	return denied("you lack the permission '%s', which an owner can grant", p.String())
}
