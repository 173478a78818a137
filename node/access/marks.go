package access

import (
	"cmp"
	"slices"
)

// mark is what outlives a grant that replaced others or was withdrawn: grants that the same keys
// passed on before, and what descends from these, are refused, whether the site saw them or not and
// also after a restart. What an owner stored on the site counts nevertheless.
type mark struct {
	Keys   Hash  `cbor:"1,keyasint"` // of the issuer and the audiences
	Issued int64 `cbor:"2,keyasint"` // the oldest that counts
	Blocks uint8 `cbor:"3,keyasint"`
	Root   Hash  `cbor:"4,keyasint"` // the keys of the first block
}

// Limits of the marks. Beyond them, the mark of the grant that was passed on most often is dropped,
// and of several the oldest: no holder drops its own mark by passing its grant on.
const (
	maxMarks        = 128
	maxMarksPerRoot = 16
)

var errReplaced = denied("your permission was replaced by a newer one of the same issuer: use that, or ask for another")

// mark records that grants older than issued along the keys of g are replaced, and reports whether
// that is new. The caller holds the lock.
func (s *Store) mark(g *Grant, issued int64) bool {
	last := len(g.Blocks) - 1
	m := mark{g.keys[last], issued, uint8(len(g.Blocks)), g.keys[0]}
	if g.Blocks[last].Issued == 0 || s.markOf(m.Keys) >= issued {
		return false
	}
	all := slices.DeleteFunc(slices.Clone(s.marks), func(have mark) bool { return have.Keys == m.Keys })
	slices.SortFunc(all, func(a, b mark) int { return cmp.Or(cmp.Compare(b.Blocks, a.Blocks), cmp.Compare(a.Issued, b.Issued)) })
	ofRoot := func(have mark) bool { return have.Root == m.Root }
	if n := len(slices.DeleteFunc(slices.Clone(all), func(have mark) bool { return !ofRoot(have) })); n >= maxMarksPerRoot {
		i := slices.IndexFunc(all, ofRoot)
		all = slices.Delete(all, i, i+1)
	} else if len(all) >= maxMarks {
		all = all[1:]
	}
	s.marks = append(all, m)
	return true
}

// markOf returns the mark along keys, 0 for none. The caller holds the lock.
func (s *Store) markOf(keys Hash) int64 {
	for _, m := range s.marks {
		if m.Keys == keys {
			return m.Issued
		}
	}
	return 0
}

// checkMarks refuses a grant that was replaced, or that descends from one. The caller holds the lock.
func (s *Store) checkMarks(g *Grant) error {
	if s.blocks[g.ID()] {
		return nil
	}
	for i, b := range g.Blocks {
		if b.Issued < s.markOf(g.keys[i]) && !s.blocks[g.ids[i]] {
			return errReplaced
		}
	}
	return nil
}
