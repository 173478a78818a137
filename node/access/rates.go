package access

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// rateCounter counts calls against rates, by the time that the site has run. That time
// stands still while the site is off and knows no time of day: whatever happens to
// the clock and however often the site starts, it is never ahead of real time, and so
// no stretch of real time sees more calls than a rate allows.
//
// A grant's root counts for all to whom it was passed on; a narrower rate of a block
// besides that.
type rateCounter struct {
	began time.Duration // of what it had run before, when this process began
	since time.Duration // what was counted before then is not known; 0 where it is
	uses  map[use]*used
}

// use is what is counted: a part of a block.
type use struct {
	root, block Hash
	part        uint8
}

type used struct {
	per time.Duration
	at  []time.Duration // ascending, within per of the last
}

// charge is a use and the rate that it stands under.
type charge struct {
	use
	rate Rate
}

// maxChildren bounds what is counted below one root: whoever may pass a grant on may
// do so without end.
const maxChildren = 16

// fits reports why not all of the charges fit, and when they will; now is since the
// process began.
func (m *rateCounter) fits(now time.Duration, charges []charge) error {
	now += m.began
	var wait time.Duration
	for _, c := range charges {
		if m.since > 0 {
			wait = max(wait, m.since+c.rate.Per.Duration()-now)
		}
		u := m.uses[c.use]
		if u == nil {
			if c.block != c.root && m.children(now, c.root) >= maxChildren {
				return denied("%d narrower rates are counted below this grant already, which is as many as can be: wait until one is free, or ask for a permission without one", maxChildren)
			}
			continue
		}
		if over := len(u.at) - int(c.rate.Calls); over >= 0 {
			wait = max(wait, u.at[over]+c.rate.Per.Duration()-now)
		}
	}
	if wait > 0 {
		unit := time.Second
		if wait > 2*time.Minute {
			unit = time.Minute
		}
		return &Denied{fmt.Sprintf("your rate is used up: again in %v", Seconds((wait+unit-1).Truncate(unit)/time.Second)), wait}
	}
	return nil
}

func (m *rateCounter) children(now time.Duration, root Hash) (n int) {
	for k, u := range m.uses {
		if k.root == root && k.block != root {
			if u.at[len(u.at)-1]+u.per <= now {
				delete(m.uses, k)
				continue
			}
			n++
		}
	}
	return n
}

// take counts one call against the charges, which fit.
func (m *rateCounter) take(now time.Duration, charges []charge) {
	now += m.began
	for _, c := range charges {
		u := m.uses[c.use]
		if u == nil {
			u = &used{}
			m.uses[c.use] = u
		}
		u.per = c.rate.Per.Duration()
		gone := 0
		for gone < len(u.at) && u.at[gone]+u.per <= now {
			gone++
		}
		u.at = append(u.at[gone:], now)
	}
}

// meterFile is what is kept of a Meter and of a Clock.
type meterFile struct {
	Version uint          `cbor:"1,keyasint"`
	Ran     time.Duration `cbor:"2,keyasint"`
	Time    int64         `cbor:"3,keyasint"` // seconds since 1970: it is not earlier
	Uses    []usedFile    `cbor:"4,keyasint"`
	Since   time.Duration `cbor:"5,keyasint,omitempty"`
	Known   bool          `cbor:"6,keyasint,omitempty"` // the time was known, then or before
}

type usedFile struct {
	Root  Hash            `cbor:"1,keyasint"`
	Block Hash            `cbor:"2,keyasint"`
	Part  uint8           `cbor:"3,keyasint"`
	Per   time.Duration   `cbor:"4,keyasint"`
	At    []time.Duration `cbor:"5,keyasint"`
}

// encode is what outlives the process, without what no longer counts.
func (m *rateCounter) encode(now time.Duration, least time.Time, known bool) ([]byte, error) {
	f := meterFile{Version: version, Ran: m.began + now, Time: least.Unix(), Since: m.since, Known: known}
	for k, u := range m.uses {
		if u.at[len(u.at)-1]+u.per > f.Ran {
			f.Uses = append(f.Uses, usedFile{k.root, k.block, k.part, u.per, u.at})
		}
	}
	slices.SortFunc(f.Uses, func(a, b usedFile) int {
		return cmp.Or(bytes.Compare(a.Root[:], b.Root[:]), bytes.Compare(a.Block[:], b.Block[:]), cmp.Compare(a.Part, b.Part))
	})
	return form.Encode(f)
}

var errMeter = errors.New("what was counted is damaged")

// RestoreCounts is what a Book keeps of what was counted, nil for nothing, as a site has to
// take it up that is restored from a copy: what was counted since the copy was made is
// lost. So each rate counts as used up until the site has run for that rate's stretch of
// time. How old the copy is nobody knows, so that no bound counts from its time.
func RestoreCounts(kept []byte) ([]byte, error) {
	m, least, _, err := decodeMeter(kept)
	if err != nil {
		return nil, err
	}
	m.since = m.began + 1 // 0 is for a site that was never restored
	return m.encode(0, least, false)
}

// decodeMeter reads what encode wrote; nothing is the beginning.
func decodeMeter(b []byte) (m rateCounter, least time.Time, known bool, err error) {
	m.uses = make(map[use]*used)
	if len(b) == 0 {
		return m, least, known, nil
	}
	var f meterFile
	if err := readKept("what was counted", b, &f); err != nil {
		return m, least, known, err
	}
	if f.Since < 0 || f.Since > f.Ran+1 {
		return m, least, known, errMeter
	}
	m.began, m.since = f.Ran, f.Since
	for _, u := range f.Uses {
		if len(u.At) == 0 || !slices.IsSorted(u.At) || u.At[len(u.At)-1] > f.Ran || u.Per <= 0 {
			return m, least, known, errMeter
		}
		m.uses[use{u.Root, u.Block, u.Part}] = &used{u.Per, u.At}
	}
	return m, time.Unix(f.Time, 0), f.Known, nil
}
