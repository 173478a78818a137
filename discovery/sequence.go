package discovery

import "sync"

// Sequence numbers a site's records. It is safe for concurrent use.
type Sequence struct {
	keep func(uint64) error

	mu   sync.Mutex
	last uint64
}

// NewSequence goes on from the last number that was kept, which may be older than the one
// that the site had last: what holds it may have been restored, or not been written. keep
// is called with each new one.
func NewSequence(last uint64, keep func(uint64) error) *Sequence {
	return &Sequence{keep: keep, last: last}
}

// Next is a number that is greater than all that are known, and at least as great as said.
// It may be used although an error says that it could not be kept.
func (s *Sequence) Next(least uint64) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last+1, least, 1)
	return s.last, s.keep(s.last)
}

// Beyond has the next number be greater than that of a record of the site, which others
// know, and reports whether it would not have been.
func (s *Sequence) Advance(n uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n <= s.last {
		return false
	}
	s.last = n
	return true
}

// Last is the greatest number that is known.
func (s *Sequence) Last() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}
