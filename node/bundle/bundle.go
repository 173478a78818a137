package bundle

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/identity"

	"github.com/fxamacker/cbor/v2"
)

// MaxBytes is the size of a bundle's file.
const MaxBytes = 64 << 10

const (
	version  = 1
	maxNeeds = 32
	maxText  = 48 << 10 // bytes of a definition
	maxFor   = 120      // characters of a need's purpose
	maxUnit  = 24
	maxMay   = 1 << 10
	maxTags  = 8
	maxWords = 12

	purpose identity.Purpose = "bundle"
)

// Kinds are the kinds of agents that a bundle may have: those whose definition is data.
var Kinds = []string{"rule", "routine"}

// NeedDevice is the device of a need's address in a definition: need/NAME.
const NeedDevice = "need"

// Content is the content of a bundle, as the wire has it. signedContent has what is signed.
type Content struct {
	Name       string `json:"name"`
	Kind       string `json:"kind"`
	Definition string `json:"definition"` // YAML, with need/NAME for each point
	Needs      []Need `json:"needs"`      // sorted by name
	May        string `json:"may,omitzero"`
	Created    int64  `json:"created"` // seconds since 1970, by the author's clock
	// Version grows with each version that the author publishes; 0 for a bundle that was only exported.
	Version     uint32   `json:"version,omitzero"`
	Tags        []string `json:"tags,omitzero"`        // as of the definition
	Description string   `json:"description,omitzero"` // as of the definition, clipped
}

// Need is a point that an agent needs.
type Need struct {
	Name string      `json:"name"`
	Kind device.Kind `json:"kind"`
	Unit string      `json:"unit,omitzero"` // of a number, as UCUM writes it
	For  string      `json:"for,omitzero"`  // what for, for people
}

// Address returns how a definition names the need.
func (n Need) Address() string { return device.Address(NeedDevice, n.Name) }

// Fits returns why a point cannot be the need; nil if it can.
func (n Need) Fits(kind device.Kind, unit string) error {
	switch {
	case n.Kind != kind:
		return fmt.Errorf("%s needs a %s, and that is a %s", n.Name, n.Kind, kind)
	case n.Unit != unit:
		return fmt.Errorf("%s needs %s, and that has %s", n.Name, cmp.Or(n.Unit, "no unit"), cmp.Or(unit, "none"))
	}
	return nil
}

// Bundle is a content whose signature was verified. It is immutable.
type Bundle struct {
	Content
	Author identity.ID
	ID     ID
}

// ID identifies the content of a bundle and its author.
type ID [sha256.Size]byte

// file is the encoded form of a bundle. The content is bytes in it, which nothing decodes before
// the signature is verified.
type file struct {
	Version   uint        `cbor:"1,keyasint"`
	Author    identity.ID `cbor:"2,keyasint"`
	Content   []byte      `cbor:"3,keyasint"`
	Signature []byte      `cbor:"4,keyasint"`
}

var (
	codec       = identity.NewCodec(4)
	importCodec = identity.NewCodec(8)
)

// versionOf returns the first field of an encoded file, which may have others than this program
// knows; 0 where there is none.
func versionOf(b []byte) uint {
	var v struct {
		Version uint `cbor:"1,keyasint"`
	}
	if cbor.Unmarshal(b, &v) != nil {
		return 0
	}
	return v.Version
}

func digest(author identity.ID, content []byte) ID {
	h := sha256.New()
	h.Write([]byte("agentsite bundle 1\n"))
	h.Write(author[:])
	h.Write(content)
	return ID(h.Sum(nil))
}

// Seal signs a content with its author's key and returns the file.
func Seal(key identity.Key, c Content) ([]byte, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	raw, err := codec.Encode(c.signed())
	if err != nil {
		return nil, err
	}
	id := digest(key.ID(), raw)
	b, err := codec.Encode(file{version, key.ID(), raw, key.Sign(purpose, id[:])})
	if err == nil && len(b) > MaxBytes {
		err = fmt.Errorf("the agent takes %d bytes, and a bundle has at most %d: split it", len(b), MaxBytes)
	}
	return b, err
}

// Open verifies a file. The error says in one line what is wrong with it.
func Open(b []byte) (*Bundle, error) {
	if len(b) > MaxBytes {
		return nil, fmt.Errorf("it is larger than %d bytes, which no bundle is: ask its author for another", MaxBytes)
	}
	var f file
	if err := codec.Decode(b, &f); err != nil {
		if v := versionOf(b); v > version {
			return nil, fmt.Errorf("it has version %d, and this program reads version %d: update agentsite", v, version)
		}
		return nil, errors.New("it is not a bundle, or is not whole: copy it again from where it came")
	}
	if f.Version != version {
		return nil, fmt.Errorf("it has version %d, and this program reads version %d: update agentsite, or ask its author for another", f.Version, version)
	}
	id := digest(f.Author, f.Content)
	if !f.Author.Verify(purpose, id[:], f.Signature) {
		return nil, errors.New("its signature is wrong: it was changed on the way, or is not by the author that it names; ask them for it again")
	}
	var content signedContent
	if err := codec.Decode(f.Content, &content); err != nil {
		return nil, errors.New("its author's program wrote what this one does not know: update agentsite, or ask them for another")
	}
	bundle := &Bundle{Content: content.plain(), Author: f.Author, ID: id}
	if err := bundle.check(); err != nil {
		return nil, fmt.Errorf("%w; ask its author for another", err)
	}
	return bundle, nil
}

// Time returns when the bundle was made, by its author's clock.
func (c Content) Time() time.Time { return time.Unix(c.Created, 0).UTC() }

// check refuses malformed content. The agent's kind checks the meaning of the definition.
func (c Content) check() error {
	if err := device.CheckName(c.Name); err != nil {
		return fmt.Errorf("the agent's name: %w", err)
	}
	if !slices.Contains(Kinds, c.Kind) {
		return fmt.Errorf("it is of kind %.24q, and a bundle has only agents that are data, such as rules", c.Kind)
	}
	if err := checkText("its definition", c.Definition, maxText, true); err != nil {
		return err
	}
	if len(c.Needs) > maxNeeds {
		return fmt.Errorf("it has %d needs, and may have %d", len(c.Needs), maxNeeds)
	}
	for i, n := range c.Needs {
		if err := n.check(); err != nil {
			return err
		}
		if i > 0 && c.Needs[i-1].Name >= n.Name {
			return errors.New("its needs are not sorted, or two have one name")
		}
	}
	if len(c.May) > maxMay {
		return fmt.Errorf("its wish for a permission has more than %d bytes", maxMay)
	}
	if c.May != "" {
		may, err := access.ParsePermissions(c.May)
		if err != nil {
			return fmt.Errorf("its wish for a permission: %w", err)
		}
		if access.FormatPermissions(may) != c.May {
			return errors.New("its wish for a permission is not in the usual form")
		}
	}
	if len(c.Tags) > maxTags || slices.ContainsFunc(c.Tags, func(tag string) bool { return !IsWord(tag) }) {
		return fmt.Errorf("its tags are not at most %d words of a-z, 0-9 and -", maxTags)
	}
	if err := checkText("its description", c.Description, 4*maxFor, false); err != nil {
		return err
	}
	if y := c.Time().Year(); y < 2020 || y > 9999 {
		return errors.New("its date is none")
	}
	return nil
}

func (n Need) check() error {
	if err := device.CheckName(n.Name); err != nil {
		return fmt.Errorf("a need's name: %w", err)
	}
	if !slices.Contains(needKinds, n.Kind) {
		return fmt.Errorf("its need %s is of kind %.24q, which no point is", n.Name, n.Kind)
	}
	if err := checkText("the unit of its need "+n.Name, n.Unit, maxUnit, false); err != nil {
		return err
	}
	return checkText("the text of its need "+n.Name, n.For, 4*maxFor, false)
}

var needKinds = []device.Kind{device.KindMeasurement, device.KindState, device.KindSwitch, device.KindLevel, device.KindEvent, device.KindText, device.KindImage}

// Excess returns the parts of the wish that are about more than the needs.
func (c Content) Excess() (parts []string) {
	if c.May == "" {
		return nil
	}
	may, err := access.ParsePermissions(c.May)
	if err != nil { // which check has refused
		return []string{c.May}
	}
	for _, p := range may {
		if len(p.Points) == 0 || slices.ContainsFunc(p.Points, func(point string) bool { return !c.needs(point) }) {
			parts = append(parts, p.String())
		}
	}
	return parts
}

func (c Content) needs(address string) bool {
	return slices.ContainsFunc(c.Needs, func(n Need) bool { return n.Address() == address })
}
