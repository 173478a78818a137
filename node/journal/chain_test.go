package journal

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentsite/device"
)

// TestVerify: a reader hashes a site's journal itself. It finds an entry that the site altered, removed, moved or
// inserted, and an end that was cut off after somebody noted it.
func TestVerify(t *testing.T) {
	folder := t.TempDir()
	j := open(t, folder)
	for i := range 20 {
		if err := j.Note(strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	verify := func(noted Filter, tamper func(Page) Page) (all Page, err error) {
		return Verify(noted, func(f Filter) (Page, error) {
			f.Limit = 6
			p, _, err := Calls(folder, f, time.Now())
			return tamper(p), err
		})
	}
	as := func(p Page) Page { return p }
	head, err := verify(Filter{}, as)
	if err != nil || head.First != 1 || head.Last != 20 {
		t.Fatalf("%+v %v", head, err)
	}
	noted := Filter{Known: head.Last, KnownHash: head.Hash}
	if _, err := verify(noted, as); err != nil {
		t.Error(err)
	}
	// within is about the page that has entry 9.
	within := func(do func(c *Chain)) func(Page) Page {
		return func(p Page) Page {
			if e := p.Chain.Entries; len(e) == 6 && bytes.Contains(e[0], []byte{1, 9}) {
				do(p.Chain)
			}
			return p
		}
	}
	if _, err := verify(noted, within(func(*Chain) { t.Log("it is tampered with") })); err != nil {
		t.Error(err)
	}
	reHashed := func(p Page) Page { // a journal that was made anew
		p.Hash = bytes.Repeat([]byte{7}, 32)
		return p
	}
	for name, tamper := range map[string]func(Page) Page{
		"altered":      within(func(c *Chain) { c.Entries[3][len(c.Entries[3])-1] ^= 1 }),
		"removed":      within(func(c *Chain) { c.Entries = slices.Delete(c.Entries, 2, 3) }),
		"removed last": within(func(c *Chain) { c.Entries = c.Entries[:5] }),
		"reordered":    within(func(c *Chain) { c.Entries[1], c.Entries[2] = c.Entries[2], c.Entries[1] }),
		"inserted":     within(func(c *Chain) { c.Entries = slices.Insert(c.Entries, 1, c.Entries[0]) }),
		"unchained":    within(func(c *Chain) { c.After[0] ^= 1 }),
		"none":         within(func(c *Chain) { c.Entries = nil }),
		"unreadable":   within(func(c *Chain) { c.Entries[0] = []byte{0xff} }),
		"not given":    func(p Page) Page { p.Chain = nil; return p },
		"other head":   reHashed,
		"no head":      func(p Page) Page { p.Hash = nil; return p },
	} {
		if _, err := verify(Filter{}, tamper); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}

	cut := t.TempDir()
	j = open(t, cut)
	for i := range 15 {
		if err := j.Note(strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	anew := func(f Filter) (Page, error) {
		p, _, err := Calls(cut, f, time.Now())
		return p, err
	}
	if _, err := Verify(Filter{}, anew); err != nil {
		t.Error(err) // nothing was noted
	}
	for _, known := range []Filter{noted, {Known: 15, KnownHash: head.Hash}} {
		if _, err := Verify(known, anew); !errors.Is(err, ErrOther) {
			t.Errorf("%d: %v", known.Known, err)
		}
	}
	gone := func(p Page) Page { p.First = p.Last - uint64(len(p.Chain.Entries)) + 1; return p }
	all, err := verify(Filter{Known: 2, KnownHash: head.Hash}, gone)
	if device.AsFault(err).Kind != device.Invalid || all.First != 15 {
		t.Errorf("%+v %v", all, err)
	}
	if all, err := Verify(Filter{}, func(Filter) (Page, error) { return Page{}, nil }); err != nil || all.Last != 0 {
		t.Errorf("%+v %v", all, err) // an empty journal
	}
}

// TestVerifyEnds: a site that gives one entry at a time does not have a reader ask for ever.
func TestVerifyEnds(t *testing.T) {
	const first = 1000
	all, before := []*Chain{}, hash{}
	for i := range 2 * maxPages {
		payload, err := codec.Encode(Entry{Seq: uint64(first + i), Kind: Event})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &Chain{After: bytes.Clone(before[:]), Entries: [][]byte{payload}})
		before = chain(before, payload)
	}
	asked := 0
	_, err := Verify(Filter{}, func(f Filter) (Page, error) {
		asked++
		return Page{First: 1, Last: first + uint64(len(all)) - 1, Hash: before[:], Chain: all[len(all)-asked]}, nil
	})
	if !errors.Is(err, ErrDamaged) || asked != maxPages {
		t.Errorf("asked %d times: %v", asked, err)
	}
}

// TestChainReads: the pages of a whole journal are read from the segments that have them, while a site writes and
// removes segments beside it.
func TestChainReads(t *testing.T) {
	folder := t.TempDir()
	j := open(t, folder)
	fill := func(n int) {
		for range n {
			if _, err := j.write(Entry{Kind: Event, Says: strings.Repeat("x", 30<<10)}, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill((maxSegments + 2) * 35)
	files, err := segments(folder)
	if err != nil || len(files) != maxSegments {
		t.Fatal(len(files), err)
	}
	read, pages, removing := int64(0), 0, false
	ask := func(f Filter) (Page, error) {
		if pages++; removing && pages == 8 {
			fill(5 * 35) // the site removes segments that this has not asked for
		}
		p, report, err := calls(t.Context(), folder, f, time.Now(), anchor{j.seq, j.before})
		read += report.bytes
		return p, err
	}
	kept := int64(maxSegments * segmentSize)
	head, err := Verify(Filter{}, ask)
	if err != nil || head.First != firstOf(files[0]) || head.Last != j.seq || read > 4*kept || pages < maxSegments {
		t.Errorf("%d to %d of %d in %d pages, %d bytes read of %d: %v", head.First, head.Last, j.seq, pages, read, kept, err)
	}
	read = 0
	p, err := ask(Filter{Chain: true, Limit: 10, Before: head.Last - 200})
	if n := len(p.Chain.Entries); err != nil || n != 10 || !p.Older || p.First != head.First || read > 3*segmentSize {
		t.Errorf("%d entries, %d bytes read: %v", n, read, err)
	}
	for _, before := range []uint64{0, head.Last + 1, 10 * head.Last} {
		p, err := ask(Filter{Chain: true, Limit: 10, Before: before})
		if n := len(p.Chain.Entries); err != nil || n != 10 || p.Last != head.Last {
			t.Errorf("before %d: %d entries up to %d: %v", before, n, p.Last, err)
		}
	}
	removing, pages = true, 0
	all, err := Verify(Filter{Known: head.Last, KnownHash: head.Hash}, ask)
	if err != nil || all.First <= head.First {
		t.Errorf("%d to %d: %v", all.First, all.Last, err)
	}
}
