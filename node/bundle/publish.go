package bundle

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// HubWord is the capability of sites that publish bundles, and the kind of those with a word.
const HubWord = "hub"

// maxHubWords bounds the words of all published bundles of a site: its card has 64 in all.
const maxHubWords = 24

// IsWord reports whether a text can be searched for: a-z, 0-9, - and _, at most 24 characters.
func IsWord(text string) bool {
	return text != "" && len(text) <= 24 && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// Words returns the words by which a published bundle is searched: its name, the parts of that, its
// kind and its tags. They are at most 12.
func (c Content) Words() []string {
	all := append([]string{c.Name}, strings.FieldsFunc(c.Name, func(r rune) bool { return r == '-' || r == '_' })...)
	all = slices.Concat(all, []string{c.Kind}, c.Tags)
	var words []string
	for _, w := range all {
		if len(words) < maxWords && IsWord(w) && !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	return words
}

// Matches reports whether the bundle has all words; it does where there are none.
func (c Content) Matches(words []string) bool {
	all := c.Words()
	return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(all, w) })
}

// Publication returns that of a file; ok is false where it is not published.
func (s *Shared) Publication(id FileID) (p Publication, ok bool) {
	k := slices.IndexFunc(s.Published, func(p Publication) bool { return p.ID == id })
	if k < 0 {
		return p, false
	}
	return s.Published[k], true
}

// Publish returns them with a file that is published, in place of older versions by its author. It
// refuses a version that is not newer.
func (s *Shared) Publish(file []byte, public bool) (*Shared, error) {
	b, err := Open(file)
	if err != nil {
		return nil, err
	}
	id := IDOf(file)
	next := s
	for k := len(next.Files) - 1; k >= 0; k-- {
		other := next.all[k]
		_, published := next.Publication(IDOf(next.Files[k]))
		if !published || IDOf(next.Files[k]) == id || other.Author != b.Author || other.Name != b.Name {
			continue
		}
		if other.Version >= b.Version {
			return nil, fmt.Errorf("version %d of %s is published already, and this is version %d: give it a higher one with "+
				"--version",
				other.Version, b.Name, b.Version)
		}
		next = next.Without(k)
	}
	if next, err = next.With(file); err != nil {
		return nil, err
	}
	published := slices.DeleteFunc(slices.Clone(next.Published), func(p Publication) bool { return p.ID == id })
	next = &Shared{Files: next.Files, Published: append(published, Publication{id, public}), all: next.all}
	words := make(map[string]bool)
	for _, p := range next.Published {
		if k := next.Find(p.ID); k >= 0 {
			for _, w := range next.all[k].Words() {
				words[w] = true
			}
		}
	}
	if len(words) > maxHubWords {
		return nil, fmt.Errorf("what this site publishes has %d words, and may have %d: give the agents fewer tags, or end "+
			"one with agentsite agents unpublish NAME",
			len(words), maxHubWords)
	}
	return next, nil
}

// EncodeCatalog returns the list of published files, as a site sends it.
func EncodeCatalog(ids []FileID) (b []byte) {
	for _, id := range ids {
		b = append(b, id[:]...)
	}
	return b
}

// DecodeCatalog decodes a list of another site. It returns the first 16 files.
func DecodeCatalog(b []byte) (ids []FileID, err error) {
	if len(b)%sha256.Size != 0 {
		return nil, errors.New("its list of published bundles is not whole")
	}
	for id := range slices.Chunk(b, sha256.Size) {
		if len(ids) == maxShared {
			break
		}
		if !slices.Contains(ids, FileID(id)) {
			ids = append(ids, FileID(id))
		}
	}
	return ids, nil
}
