package discovery

import "sync"

// Sequence numbers a site's records. It is safe for concurrent use.
type Sequence struct {
	keep func(uint64) error

	mu   sync.Mutex
	last uint64
}

// NewSequence continues after the last stored number, which may be older than the last used one:
// its store may have been restored, or read-only. keep stores each new number.
func NewSequence(last uint64, keep func(uint64) error) *Sequence {
	return &Sequence{keep: keep, last: last}
}

// Next returns a number that is greater than all known ones, and at least least. It is valid
// even if keep returns an error.
func (s *Sequence) Next(least uint64) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last+1, least, 1)
	return s.last, s.keep(s.last)
}

// Advance makes the next number greater than n, that of a record known to others, and reports
// whether that changed anything.
func (s *Sequence) Advance(n uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n <= s.last {
		return false
	}
	s.last = n
	return true
}

// Last returns the greatest known number.
func (s *Sequence) Last() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}
