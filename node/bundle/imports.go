package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"agentsite/device"
)

// MaxImports is the size of the file of all imports of a site.
const MaxImports = 1 << 20

const (
	maxImports = 32
	maxRemoved = 64

	// Drafts by agents of the site have places of their own, so that they take none of the owner's.
	maxProposed        = 12
	maxProposedByAgent = 4
)

// Imports are the bundles that a site has, as they are stored.
type Imports struct {
	Version uint     `cbor:"1,keyasint"`
	All     []Import `cbor:"2,keyasint"` // in the order in which they came
	Removed []ID     `cbor:"3,keyasint"` // the last ones, oldest first
}

// Import is a bundle that a site has: a draft until its owner accepts it.
type Import struct {
	Name     string      `cbor:"1,keyasint"` // here
	File     []byte      `cbor:"2,keyasint"` // as it came
	Bound    []BoundNeed `cbor:"3,keyasint"` // for each need, in their order
	Accepted bool        `cbor:"4,keyasint"`
	May      string      `cbor:"5,keyasint,omitempty"` // what its owner permits; nothing for a draft
	By       Proposal    `cbor:"6,keyasint,omitzero"`  // zero where an owner brought it

	// Replaces names the import of which this draft is a newer version.
	Replaces string `cbor:"7,keyasint,omitempty"`

	*Bundle `cbor:"-"`
}

// Updates refuses an import that is no newer version of another: one by another author, of another
// name, or of a version that is not higher.
func (i *Import) Updates(other Import) error {
	switch {
	case i.Author != other.Author || other.By != (Proposal{}):
		return fmt.Errorf(
			"%s is by another author, and so another agent: import this one with another name, --as", other.Name,
		)
	case i.Bundle.Name != other.Bundle.Name || i.Kind != other.Kind:
		return fmt.Errorf("%s came as the %s %s of this author, and this is the %s %s: import it with another name, --as",
			other.Name, other.Kind, other.Bundle.Name, i.Kind, i.Bundle.Name)
	case i.Version <= other.Version:
		return fmt.Errorf(
			"%s has version %d, and this is version %d, which is not newer", other.Name, other.Version, i.Version,
		)
	}
	return nil
}

// Supersede removes the import that the k-th one, a newer version of it, replaces. It returns the
// new index of that.
func (s *Imports) Supersede(k int) (int, error) {
	next := s.All[k]
	old := s.Find(next.Replaces)
	if old < 0 {
		return k, fmt.Errorf("the import %s, of which this is a newer version, is here no more: remove this draft, and "+
			"import it anew", next.Replaces)
	}
	if err := next.Updates(s.All[old]); err != nil { // it may have been replaced since
		return k, err
	}
	s.Remove(old)
	return s.Find(next.Name), nil
}

// Proposal says which agent of the site wrote a draft, and for whom. The site's key signed it.
type Proposal struct {
	Agent string `cbor:"1,keyasint"`
	Asker string `cbor:"2,keyasint"`
}

// WrittenBy returns the did:key of an import's author, or the agent of the site that wrote it.
func (i *Import) WrittenBy() string {
	if i.By == (Proposal{}) {
		return i.Author.String()
	}
	return i.By.Agent + ", asked by " + cmp.Or(i.By.Asker, "nobody")
}

// Room refuses an import where no more of its kind are kept: an owner's and those that are accepted,
// or drafts by an agent of the site.
func (s *Imports) Room(by Proposal) error {
	owners, proposed, own := 0, 0, 0
	for _, i := range s.All {
		switch {
		case i.By == (Proposal{}) || i.Accepted:
			owners++
		default:
			proposed++
			if i.By.Agent == by.Agent {
				own++
			}
		}
	}
	switch {
	case by == (Proposal{}) && owners >= maxImports:
		return fmt.Errorf("this site has %d imports, and keeps no more; remove one: agentsite agents remove NAME", owners)
	case by != (Proposal{}) && (own >= maxProposedByAgent || proposed >= maxProposed):
		return fmt.Errorf("%d drafts by agents of this site wait here, %d of them by %s, and no more are kept: an owner has to accept or remove some", proposed, own, by.Agent)
	}
	return nil
}

// Binding is the point that an owner chose for a need.
type Binding struct {
	Need  string `json:"need"`
	Point string `json:"point"`
}

// BoundNeed is a Binding as it is stored.
type BoundNeed struct {
	Need  string `cbor:"1,keyasint"`
	Point string `cbor:"2,keyasint"`
}

// Find returns the index of an import, -1 for none.
func (s *Imports) Find(name string) int {
	return slices.IndexFunc(s.All, func(i Import) bool { return i.Name == name })
}

// Add adds a draft. It refuses a second one of its name, and more than a site keeps. again is
// for a bundle that was removed.
func (s *Imports) Add(i Import, again bool) error {
	k := slices.Index(s.Removed, i.ID)
	switch {
	case s.Find(i.Name) >= 0:
		return fmt.Errorf("an import %q is here already; choose another name with --as, or remove that one first: agentsite agents remove %s", i.Name, i.Name)
	case s.Room(i.By) != nil:
		return s.Room(i.By)
	case k >= 0 && !again:
		return errors.New("this bundle was removed from this site; if you want it back, import it with --again")
	case k >= 0:
		s.Removed = slices.Delete(slices.Clone(s.Removed), k, k+1)
	}
	s.All = append(slices.Clip(s.All), i)
	return nil
}

// Remove removes an import, and remembers its bundle.
func (s *Imports) Remove(k int) {
	s.Removed = append(slices.Clip(s.Removed), s.All[k].ID)
	s.Removed = s.Removed[max(0, len(s.Removed)-maxRemoved):]
	s.All = slices.Delete(slices.Clone(s.All), k, k+1)
}

// Encode returns the file of a site's imports.
func (s *Imports) Encode() ([]byte, error) {
	s.Version = version
	b, err := importCodec.Encode(s)
	if err == nil && len(b) > MaxImports {
		err = fmt.Errorf("all imports together take %d kB, and may take %d; remove one: agentsite agents remove NAME", len(b)>>10, MaxImports>>10)
	}
	return b, err
}

// DecodeImports decodes the result of Encode; nil is no imports. Each bundle is verified again.
func DecodeImports(b []byte) (*Imports, error) {
	s := new(Imports)
	if b == nil {
		return s, nil
	}
	if len(b) > MaxImports {
		return nil, errors.New("the file of the imports is too large")
	}
	if v := versionOf(b); v > version {
		return nil, fmt.Errorf("the imports have version %d, and need a newer agentsite", v)
	}
	if err := importCodec.Decode(b, s); err != nil {
		return nil, fmt.Errorf("the imports cannot be read: %w", err)
	}
	if len(s.All) > maxImports+maxProposed || len(s.Removed) > maxRemoved {
		return nil, errors.New("the imports are more than a site keeps")
	}
	for k := range s.All {
		if err := s.All[k].verify(); err != nil {
			return nil, fmt.Errorf("the import %.40q: %w", s.All[k].Name, err)
		}
		if s.Find(s.All[k].Name) != k {
			return nil, fmt.Errorf("two imports have the name %s", s.All[k].Name)
		}
	}
	return s, nil
}

func (i *Import) verify() (err error) {
	if err := device.CheckName(i.Name); err != nil {
		return err
	}
	if i.Replaces != "" && (i.Accepted || device.CheckName(i.Replaces) != nil) {
		return errors.New("it replaces another, and is no draft")
	}
	if i.Bundle, err = Open(i.File); err != nil {
		return err
	}
	if len(i.Bound) != len(i.Needs) {
		return errors.New("not all of its needs are bound")
	}
	for k, b := range i.Bound {
		if b.Need != i.Needs[k].Name {
			return errors.New("its needs are bound in another order")
		}
	}
	return nil
}
