package access

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"time"

	"agentsite/device"
)

// rateCounter counts calls against rates, by the site's uptime over all its runs. Uptime stands
// still while the site is off and does not depend on the time of day. It is never ahead of real
// time, so that no period of real time has more calls than a rate allows.
//
// The rate of a grant's root is shared by all delegates; a narrower rate of a block counts in
// addition.
type rateCounter struct {
	before time.Duration // uptime of earlier runs
	since  time.Duration // earlier counts are unknown; 0 if they are known
	uses   map[use]*usage
}

// use is the part of a block that calls are counted for.
type use struct {
	root, block Hash
	part        uint8
}

type usage struct {
	per time.Duration
	at  []time.Duration // ascending, within per of the last
}

// charge is a use and the rate that limits it.
type charge struct {
	use
	rate Rate
}

// maxChildren limits the uses below one root, because a grant may be delegated any number of times.
const maxChildren = 16

// check refuses charges that exceed their rates, and says how long to wait; now is the
// process's uptime.
func (m *rateCounter) check(now time.Duration, charges []charge) error {
	now += m.before
	var wait time.Duration
	for _, c := range charges {
		if m.since > 0 {
			wait = max(wait, m.since+c.rate.Per.Duration()-now)
		}
		u := m.uses[c.use]
		if u == nil {
			if c.block != c.root && m.children(now, c.root) >= maxChildren {
				return denied("%d narrower rates are counted below this grant already, which is the maximum: wait until one is free, or ask for a permission without one", maxChildren)
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
		return device.Faultf(device.Busy, "your rate is used up: again in %v", Seconds((wait+unit-1).Truncate(unit)/time.Second))
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

// take counts one call against charges that check accepted.
func (m *rateCounter) take(now time.Duration, charges []charge) {
	now += m.before
	for _, c := range charges {
		u := m.uses[c.use]
		if u == nil {
			u = &usage{}
			m.uses[c.use] = u
		}
		u.per = c.rate.Per.Duration()
		old := 0
		for old < len(u.at) && u.at[old]+u.per <= now {
			old++
		}
		u.at = append(u.at[old:], now)
	}
}

// countsFile is the stored form of a rateCounter, a clock and the marks.
type countsFile struct {
	Version uint          `cbor:"1,keyasint"`
	Uptime  time.Duration `cbor:"2,keyasint"`
	Time    int64         `cbor:"3,keyasint"` // seconds since 1970, a lower bound
	Uses    []usageFile   `cbor:"4,keyasint"`
	Since   time.Duration `cbor:"5,keyasint,omitempty"`
	Known   bool          `cbor:"6,keyasint,omitempty"` // the time was known, then or before
	Marks   []mark        `cbor:"7,keyasint,omitempty"`
}

type usageFile struct {
	Root  Hash            `cbor:"1,keyasint"`
	Block Hash            `cbor:"2,keyasint"`
	Part  uint8           `cbor:"3,keyasint"`
	Per   time.Duration   `cbor:"4,keyasint"`
	At    []time.Duration `cbor:"5,keyasint"`
}

// encode returns the form to store, without uses whose calls no longer count.
func (m *rateCounter) encode(now time.Duration, marks []mark, least time.Time, known bool) ([]byte, error) {
	f := countsFile{Version: version, Uptime: m.before + now, Time: least.Unix(),
		Since: m.since, Known: known, Marks: marks}
	for k, u := range m.uses {
		if u.at[len(u.at)-1]+u.per > f.Uptime {
			f.Uses = append(f.Uses, usageFile{k.root, k.block, k.part, u.per, u.at})
		}
	}
	slices.SortFunc(f.Uses, func(a, b usageFile) int {
		return cmp.Or(bytes.Compare(a.Root[:], b.Root[:]), bytes.Compare(a.Block[:], b.Block[:]), cmp.Compare(a.Part, b.Part))
	})
	return codec.Encode(f)
}

var errCounts = errors.New("the counts of calls are damaged")

// RestoreCounts converts the counts of a backup, nil for none, for the site that is restored
// from it. Calls since the backup are unknown, so each rate counts as used up until the site
// has run for that rate's time. The backup's age is unknown too, so no bound of the clock
// counts from its time.
func RestoreCounts(counts []byte) ([]byte, error) {
	m, marks, least, _, err := decodeCounts(counts)
	if err != nil {
		return nil, err
	}
	m.since = m.before + 1 // 0 is for a site that was never restored
	return m.encode(0, marks, least, false)
}

// decodeCounts reverses encode; nil is a site that never ran.
func decodeCounts(b []byte) (m rateCounter, marks []mark, least time.Time, known bool, err error) {
	m.uses = make(map[use]*usage)
	if len(b) == 0 {
		return m, nil, least, known, nil
	}
	var f countsFile
	if err := decodeFile("the counts of calls", b, &f); err != nil {
		return m, nil, least, known, err
	}
	if f.Since < 0 || f.Since > f.Uptime+1 {
		return m, nil, least, known, errCounts
	}
	m.before, m.since = f.Uptime, f.Since
	for _, u := range f.Uses {
		if len(u.At) == 0 || !slices.IsSorted(u.At) || u.At[len(u.At)-1] > f.Uptime || u.Per <= 0 {
			return m, nil, least, known, errCounts
		}
		m.uses[use{u.Root, u.Block, u.Part}] = &usage{u.Per, u.At}
	}
	return m, f.Marks, time.Unix(f.Time, 0), f.Known, nil
}
