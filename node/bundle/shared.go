package bundle

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	// MaxShared is the size of the file of all bundles that a site shares, and maxShared their number.
	MaxShared = 1<<20 + 4<<10
	maxShared = 16
)

// FileID is the SHA-256 of a bundle's file.
type FileID [sha256.Size]byte

const fileIDPrefix = "sha256:"

// String returns it as people write it: sha256: and 64 hexadecimal digits, as sha256sum prints them.
func (id FileID) String() string { return fileIDPrefix + hex.EncodeToString(id[:]) }

// IsFileID reports whether a text is meant as a FileID, and not as the name of a file.
func IsFileID(text string) bool { return strings.HasPrefix(text, fileIDPrefix) }

// ParseFileID parses the result of String.
func ParseFileID(text string) (id FileID, err error) {
	digits, ok := strings.CutPrefix(text, fileIDPrefix)
	b, err := hex.DecodeString(digits)
	if !ok || err != nil || len(b) != len(id) || digits != strings.ToLower(digits) {
		return id, fmt.Errorf("%.80q does not name a bundle: it is sha256: and 64 digits of 0-9 and a-f, as agentsite agents share prints it", text)
	}
	return FileID(b), nil
}

// Word returns the capability by which members of a realm find the sites that share the file. It is a
// part of the ID, from which nobody gets the file.
func (id FileID) Word() string {
	return "bundle/" + strings.ToLower(base32.StdEncoding.EncodeToString(id[:15]))
}

// IDOf returns the ID of a file.
func IDOf(file []byte) FileID { return sha256.Sum256(file) }

// Shared are the bundles that a site shares with its realm.
type Shared struct {
	Version uint     `cbor:"1,keyasint"`
	Files   [][]byte `cbor:"2,keyasint"` // as they came, in their order
	// Published are those of the files that others may search.
	Published []Publication `cbor:"3,keyasint,omitempty"`

	all []*Bundle
}

// Publication says in which realm a file was published.
type Publication struct {
	ID     FileID `cbor:"1,keyasint"`
	Public bool   `cbor:"2,keyasint,omitempty"` // the public realm, and not one with a secret
}

// All returns the bundles, in the order of Files.
func (s *Shared) All() []*Bundle { return s.all }

// Find returns the index of a file; -1 for none.
func (s *Shared) Find(id FileID) int {
	return slices.IndexFunc(s.Files, func(f []byte) bool { return IDOf(f) == id })
}

// With returns them with one more, which is verified. One that is there already is not added again.
func (s *Shared) With(file []byte) (*Shared, error) {
	b, err := Open(file)
	switch {
	case err != nil:
		return nil, err
	case s.Find(IDOf(file)) >= 0:
		return s, nil
	case len(s.Files) >= maxShared:
		return nil, fmt.Errorf("this site shares %d bundles, and no more; end one: agentsite agents unshare sha256:…", len(s.Files))
	}
	return &Shared{
		Files: append(slices.Clip(s.Files), file), Published: s.Published, all: append(slices.Clip(s.all), b),
	}, nil
}

// Without returns them without the k-th.
func (s *Shared) Without(k int) *Shared {
	id := IDOf(s.Files[k])
	published := slices.DeleteFunc(slices.Clone(s.Published), func(p Publication) bool { return p.ID == id })
	return &Shared{
		Files:     slices.Delete(slices.Clone(s.Files), k, k+1),
		Published: published,
		all:       slices.Delete(slices.Clone(s.all), k, k+1),
	}
}

// Encode returns the file of all.
func (s *Shared) Encode() ([]byte, error) {
	s.Version = version
	return importCodec.Encode(s)
}

// DecodeShared decodes the result of Encode; nil is none. Each bundle is verified again.
func DecodeShared(b []byte) (*Shared, error) {
	s, stored := new(Shared), new(Shared)
	if b == nil {
		return s, nil
	}
	if len(b) > MaxShared {
		return nil, errors.New("the file of what is shared is too large")
	}
	if v := versionOf(b); v > version {
		return nil, fmt.Errorf("what is shared has version %d, and needs a newer agentsite", v)
	}
	if err := importCodec.Decode(b, stored); err != nil {
		return nil, fmt.Errorf("what is shared cannot be read: %w", err)
	}
	for _, file := range stored.Files {
		next, err := s.With(file)
		if err != nil {
			return nil, fmt.Errorf("a bundle that is shared: %w", err)
		}
		s = next
	}
	if len(stored.Published) > maxShared {
		return nil, errors.New("more is published than a site shares")
	}
	s.Published = stored.Published
	return s, nil
}
