package discovery

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentsite/node/identity"
)

const (
	version = 1

	purpose identity.Purpose = "record"
)

// Errors of an invalid record.
var (
	ErrOversized = errors.New("the record is too long")
	ErrMalformed = errors.New("malformed record")
	ErrForged    = errors.New("the record's signature is not its site's")
)

// Signed is a record with its site's signature. It is immutable.
type Signed struct {
	Record
	body, signature, offer []byte
}

// envelope is the encoded form of a record. The body is signed and holds the offer's digest,
// so that the offer can be omitted where there is no room.
type envelope struct {
	Version   uint   `cbor:"1,keyasint"`
	Body      []byte `cbor:"2,keyasint"`
	Signature []byte `cbor:"3,keyasint"`
	Offer     []byte `cbor:"4,keyasint,omitempty"`
}

type body struct {
	Site      identity.ID       `cbor:"1,keyasint"`
	Sequence  uint64            `cbor:"2,keyasint"`
	Name      string            `cbor:"3,keyasint"`
	Addresses []string          `cbor:"4,keyasint"`
	Digest    [sha256.Size]byte `cbor:"5,keyasint,omitzero"`
	Lifetime  uint32            `cbor:"6,keyasint"` // seconds
}

// form is the encoding of records.
var form = identity.NewCodec(4)

// Sign returns the record signed with the site's key. It sorts the offer and does not change
// r.
func (r Record) Sign(key identity.Key) (*Signed, error) {
	if r.Site != key.ID() {
		return nil, fmt.Errorf("a record of %v cannot be signed with the key of %v", r.Site, key.ID())
	}
	r.Addresses, r.Offer = slices.Clone(r.Addresses), SortOffer(r.Offer)
	s := &Signed{Record: r}
	var err error
	if len(r.Offer) > 0 {
		if s.offer, err = form.Encode(r.Offer); err != nil {
			return nil, err
		}
		s.Digest = sha256.Sum256(s.offer)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	s.body, err = form.Encode(body{r.Site, r.Sequence, r.Name, r.Addresses, s.Digest, uint32(r.Lifetime / time.Second)})
	if err != nil {
		return nil, err
	}
	s.signature = key.Sign(purpose, s.body)
	if n := len(s.Short()); n > MaxShort {
		return nil, fmt.Errorf("a record of %d bytes without its offer is longer than %d: give it fewer or shorter addresses", n, MaxShort)
	}
	if n := len(s.Bytes()); n > MaxRecord {
		return nil, fmt.Errorf("a record of %d bytes is longer than %d: make fewer points public", n, MaxRecord)
	}
	return s, nil
}

// SortOffer returns an offer in canonical order.
func SortOffer(offer []Kind) []Kind {
	offer = slices.Clone(offer)
	for i := range offer {
		offer[i].Points = slices.Sorted(slices.Values(offer[i].Points))
	}
	slices.SortFunc(offer, func(a, b Kind) int { return strings.Compare(a.Kind, b.Kind) })
	return offer
}

// Bytes returns the encoded record, at most MaxRecord bytes.
func (s *Signed) Bytes() []byte { return s.encode(s.offer) }

// Short returns the encoded record without its public offer, at most MaxShort bytes. Open
// accepts it as the same record.
func (s *Signed) Short() []byte { return s.encode(nil) }

func (s *Signed) encode(offer []byte) []byte {
	b, err := form.Encode(envelope{version, s.body, s.signature, offer})
	if err != nil {
		panic(err) // three strings of bytes and a number can be written
	}
	return b
}

// Open decodes a record and verifies its signature. Its errors wrap ErrOversized,
// ErrMalformed or ErrForged.
func Open(b []byte) (*Signed, error) {
	s, err := read(b)
	if err == nil {
		err = s.verify()
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// read decodes a record without verifying its signature.
func read(b []byte) (*Signed, error) {
	if len(b) > MaxRecord {
		return nil, fmt.Errorf("%w, with %d bytes, more than %d", ErrOversized, len(b), MaxRecord)
	}
	if len(b) > 2 && b[0]&0xe0 == 0xa0 && b[1] == 1 && b[2] != version { // a map, whose first key is 1
		return nil, fmt.Errorf("%w, of a version that needs a newer agentsite", ErrMalformed)
	}
	var e envelope
	if err := form.Decode(b, &e); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	var f body
	if err := form.Decode(e.Body, &f); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	s := &Signed{
		Record: Record{
			Site: f.Site, Sequence: f.Sequence, Name: f.Name, Addresses: f.Addresses,
			Digest: f.Digest, Lifetime: time.Duration(f.Lifetime) * time.Second,
		},
		body: e.Body, signature: e.Signature, offer: e.Offer,
	}
	if len(e.Offer) > 0 {
		if sha256.Sum256(e.Offer) != f.Digest {
			return nil, fmt.Errorf("%w, its offer does not match its digest", ErrForged)
		}
		if err := form.Decode(e.Offer, &s.Offer); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		if len(s.Offer) == 0 {
			return nil, fmt.Errorf("%w, with an empty offer", ErrMalformed)
		}
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if n := len(s.Short()); n > MaxShort {
		return nil, fmt.Errorf("%w, with %d bytes without its offer, more than %d", ErrOversized, n, MaxShort)
	}
	return s, nil
}

func (s *Signed) verify() error {
	if !s.Site.Verify(purpose, s.body, s.signature) {
		return ErrForged
	}
	return nil
}
