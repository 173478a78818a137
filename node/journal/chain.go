package journal

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"agentsite/device"
)

// Chain is consecutive entries as they are hashed, the oldest first.
type Chain struct {
	After []byte `json:"after"` // the hash that the first is chained to; 32 zeros before entry 1
	// Entries are in CBOR. The hash of each is the SHA-256 of the hash before it and its bytes.
	Entries [][]byte `json:"entries"`
}

// maxPages is more pages than the chain of any journal has.
const maxPages = 4 * (maxSegments + 1)

// Verify hashes all entries of somebody else's journal here, page by page from its end, and returns the
// numbers and the hash that they have. Of the filter it takes the entry that was noted; ask asks for a page.
// An error wraps ErrDamaged where the entries are not one chain, and ErrOther where the one that was noted is
// not in it.
func Verify(noted Filter, ask func(Filter) (Page, error)) (Page, error) {
	known, err := noted.known()
	if err != nil {
		return Page{}, err
	}
	next := Filter{Chain: true, Limit: MaxChain}
	all, err := ask(next)
	if err != nil || all.Last == 0 && noted.Known == 0 {
		return all, err
	}
	if all.Last < noted.Known {
		return all, fmt.Errorf("%w: it ends with entry %d", ErrOther, all.Last)
	}
	end := anchor{seq: all.Last}
	if copy(end.hash[:], all.Hash) != len(all.Hash) || len(all.Hash) != sha256.Size {
		return all, damaged("the site does not say the hash of its last entry")
	}
	for page, n := all, 1; ; n++ {
		if end, err = page.Chain.verify(end, known); err != nil {
			return all, err
		}
		if end.seq < page.First || end.seq == 0 {
			all.First = end.seq + 1
			break
		}
		if n == maxPages {
			return all, damaged("it has more entries than a site keeps")
		}
		next.Before = end.seq + 1
		if page, err = ask(next); err != nil {
			return all, err
		}
		if end.seq < page.First { // its oldest entries were removed meanwhile
			all.First = end.seq + 1
			break
		}
	}
	if known.seq != 0 && known.seq < all.First {
		return all, device.Faultf(device.Invalid,
			"entry %d is not kept: the journal has %d to %d", known.seq, all.First, all.Last)
	}
	return all, nil
}

// verify hashes entries of which the last has to be end, and returns the one before the first.
func (c *Chain) verify(end, known anchor) (before anchor, err error) {
	if c == nil || len(c.Entries) == 0 || uint64(len(c.Entries)) > end.seq || len(c.After) != sha256.Size {
		return end, damaged("the site does not give entry %d as it is hashed", end.seq)
	}
	before = anchor{end.seq - uint64(len(c.Entries)), hash(c.After)}
	if before.seq == 0 && before.hash != (hash{}) {
		return end, damaged("entry 1 is chained to one before it")
	}
	at, other := before, false
	for _, b := range c.Entries {
		at = anchor{at.seq + 1, chain(at.hash, b)}
		var e Entry
		if err := codec.DecodeAny(b, &e); err != nil {
			return end, damaged("entry %d cannot be read: %v; a newer program may have written it", at.seq, err)
		}
		if e.Seq != at.seq {
			return end, damaged("entry %d stands where %d should", e.Seq, at.seq)
		}
		other = other || at.seq == known.seq && at.hash != known.hash
	}
	switch {
	case at != end:
		return end, damaged("the entries %d to %d are not those that the next is chained to", before.seq+1, end.seq)
	case other:
		return end, fmt.Errorf("%w: entry %d or one before it was changed", ErrOther, known.seq)
	}
	return before, nil
}

// known returns the entry that somebody noted.
func (f *Filter) known() (noted anchor, err error) {
	noted.seq = f.Known
	if copy(noted.hash[:], f.KnownHash); f.Known != 0 && len(f.KnownHash) != len(noted.hash) {
		err = device.Faultf(device.Invalid, "known_hash: takes the %d bytes of an entry's hash", len(noted.hash))
	}
	return noted, err
}

// links collects the last entries of a chain, at most most and within maxPageBytes.
type links struct {
	most    int
	entries [][]byte
	before  []hash
	size    int
	dropped bool // older ones

	first, begun uint64 // the first entries of the journal and of the segment where the reading begins
}

// chainSegments is the number of segments that hold maxPageBytes, of which the first and the last are in part.
const chainSegments = maxPageBytes/segmentSize + 2

// from returns the first segment that has some of the entries before a number; 0 for the last entries.
func (l *links) from(files []string, before uint64) int {
	if len(files) == 0 {
		return 0
	}
	last := len(files) - 1
	for last > 0 && before != 0 && firstOf(files[last]) >= before {
		last--
	}
	at := last
	for at > 0 && last-at < chainSegments-1 && (last == len(files)-1 || before-firstOf(files[at]) < uint64(l.most)) {
		at--
	}
	l.first, l.begun = firstOf(files[0]), firstOf(files[at])
	return at
}

func (l *links) add(f frame) {
	l.entries, l.before = append(l.entries, bytes.Clone(f.payload)), append(l.before, f.before)
	for l.size += len(f.payload); len(l.entries) > 1 && (len(l.entries) > l.most || l.size > maxPageBytes); {
		l.size -= len(l.entries[0])
		l.entries[0] = nil
		l.entries, l.before, l.dropped = l.entries[1:], l.before[1:], true
	}
}

func (l *links) chain() *Chain {
	c := &Chain{After: make([]byte, sha256.Size), Entries: l.entries}
	if len(l.before) > 0 {
		copy(c.After, l.before[0][:])
	}
	return c
}
