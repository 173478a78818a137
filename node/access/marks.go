package access

import (
	"cmp"
	"slices"
)

// mark outlives a grant that replaced others or was withdrawn. The site refuses grants that the same keys
// passed on before, and all that descend from these, whether it saw them or not and also after a restart.
// It accepts those that an owner stored on it.
type mark struct {
	Keys   Hash    `cbor:"1,keyasint"` // of the issuer and the audiences
	Issued int64   `cbor:"2,keyasint"` // the oldest that counts
	Path   []short `cbor:"3,keyasint"` // the keys up to each block
}

// short is the beginning of a Hash.
type short [8]byte

// maxMarks bounds the marks. When they are full, the oldest mark of the owners' grantee with the most marks is
// dropped, and below that grantee the same way. So a holder that passes its grant on many times drops neither
// its own mark nor another holder's.
const maxMarks = 128

var errReplaced = denied("your permission was replaced by a newer one of the same issuer: use that, or ask for another")

// mark records that grants older than issued along the keys of g are replaced, and reports whether
// that is new. The caller holds the lock.
func (s *Store) mark(g *Grant, issued int64) bool {
	last := len(g.Blocks) - 1
	m := mark{Keys: g.keys[last], Issued: issued}
	for _, keys := range g.keys {
		m.Path = append(m.Path, short(keys[:]))
	}
	if g.Blocks[last].Issued == 0 || s.markOf(m.Keys) >= issued {
		return false
	}
	s.marks = slices.DeleteFunc(slices.Clone(s.marks), func(have mark) bool { return have.Keys == m.Keys })
	if len(s.marks) >= maxMarks {
		s.dropMark()
	}
	s.marks = append(s.marks, m)
	return true
}

// dropMark drops the mark that maxMarks says. The caller holds the lock.
func (s *Store) dropMark() {
	below := make(map[short]int) // the number of marks by each beginning of their keys
	for _, m := range s.marks {
		for _, keys := range m.Path {
			below[keys]++
		}
	}
	counts := func(m mark) (all []int) {
		for _, keys := range m.Path {
			all = append(all, below[keys])
		}
		return all
	}
	most := slices.MaxFunc(s.marks, func(a, b mark) int {
		return cmp.Or(slices.Compare(counts(a), counts(b)), cmp.Compare(b.Issued, a.Issued))
	})
	s.marks = slices.DeleteFunc(s.marks, func(m mark) bool { return m.Keys == most.Keys })
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
