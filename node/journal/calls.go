package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"agentsite/device"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrOther is wrapped by the errors of Calls for a journal that does not have the entry that somebody noted.
var ErrOther = errors.New("the journal is not the one that was noted")

// MaxPage is the largest number of items of a page, MaxChain of entries as they are hashed, and maxPageBytes
// of what is in them.
const (
	MaxPage      = 500
	MaxChain     = 10_000
	maxPageBytes = 1 << 20
)

// Filter chooses items of the journal.
type Filter struct {
	Output string    `json:"output,omitzero"` // about one output; "" for everything
	Who    string    `json:"who,omitzero"`    // by one principal; "" for all
	From   time.Time `json:"from,omitzero"`   // by the site's clock then
	To     time.Time `json:"to,omitzero"`
	Before uint64    `json:"before,omitzero"` // with a smaller number; 0 for all
	Limit  int       `json:"limit,omitzero"`  // the last so many
	// Known is an entry that somebody noted: its number, and its hash from Page. Calls fails with
	// ErrOther where the journal does not have it.
	Known     uint64 `json:"known,omitzero"`
	KnownHash []byte `json:"known_hash,omitzero"`
	// Chain asks for the entries as they are hashed, and for no items. It takes Before, Limit and Known.
	// Without Known, only these entries are read; the caller verifies their hashes.
	Chain bool `json:"chain,omitzero"`
}

// Page is items of the journal, the oldest first.
type Page struct {
	Items []Item `json:"entries"`
	Older bool   `json:"older,omitzero"` // there are items before these: ask again with Before
	// First and Last are the numbers of all entries, which were verified but for Chain, and Hash is the hash of
	// the last one, with which all before it are chained.
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	Hash  []byte `json:"hash,omitzero"`
	Chain *Chain `json:"chain,omitzero"` // where Filter has Chain
}

// Item is a call with its outcome, a group of refusals counted together, or an event.
type Item struct {
	Seq     uint64         `json:"seq"`
	Time    time.Time      `json:"time"` // by the site's clock then
	Who     string         `json:"who,omitzero"`
	Via     []string       `json:"via,omitzero"` // the agents through which Who asked
	Tool    string         `json:"tool,omitzero"`
	Args    jsontext.Value `json:"arguments,omitzero"`
	Key     string         `json:"key,omitzero"`
	Outcome string         `json:"outcome"` // done, refused, event, no result, or the kind of a fault
	Says    string         `json:"says,omitzero"`
	Result  jsontext.Value `json:"result,omitzero"`
	Count   int            `json:"count,omitzero"` // of refusals, or of repetitions of an earlier call
}

// noResult is the outcome of a call that has not ended, or during which the site ended.
const noResult = "no result"

// errChosen ends the reading of a journal of which the end is known.
var errChosen = errors.New("all that was chosen is read")

// Calls reads the journal in folder as Read does, and returns the last items that a filter chooses.
// now is the time; where the last entry shows that the site's clock is ahead of it, From is moved by
// as much. An error that wraps ErrDamaged comes with the items before the damage.
func Calls(folder string, f Filter, now time.Time) (Page, Report, error) {
	return calls(context.Background(), folder, f, now, anchor{})
}

// calls is Calls until ctx ends, with the last entry that was written, where its caller knows it.
func calls(ctx context.Context, folder string, f Filter, now time.Time, written anchor) (Page, Report, error) {
	page := Page{Items: []Item{}}
	noted, err := f.known()
	if err != nil {
		return page, Report{}, err
	}
	if !f.From.IsZero() {
		var latest time.Time
		read(folder, newest, func(e Entry, _ frame) error { latest = e.Time(); return nil }) // damage is told below
		f.From = f.From.Add(max(0, latest.Sub(now)))
	}
	var all []*Item
	var chosen int
	open := make(map[uint64]*Item) // calls without a result
	links := links{most: f.Limit}
	from := whole
	if f.Chain && noted.seq == 0 {
		from = func(files []string) int { return links.from(files, f.Before) }
	}
	_, report, err := read(folder, from, func(e Entry, fr frame) error {
		h := fr.after
		page.Hash = h[:]
		switch {
		case e.Seq == noted.seq && h != noted.hash:
			return fmt.Errorf("%w: entry %d or one before it was changed", ErrOther, e.Seq)
		case e.Seq == written.seq && h != written.hash:
			return damaged("entry %d is not the one that was there", e.Seq)
		}
		if f.Chain {
			if f.Before == 0 || e.Seq < f.Before {
				links.add(fr)
			} else if written.seq != 0 && noted.seq == 0 {
				return errChosen
			}
			return ctx.Err()
		}
		if e.Kind == Result {
			if r := open[e.Of]; r != nil {
				r.setOutcome(e)
				delete(open, e.Of)
			}
			return ctx.Err()
		}
		if !f.chooses(e) {
			return ctx.Err()
		}
		r := itemOf(e)
		if e.Kind == Intent {
			open[e.Seq] = r
		}
		chosen++
		if all = append(all, r); len(all)-f.Limit > f.Limit { // a call that is older has its result by now, or never
			for _, old := range all[:len(all)-f.Limit] {
				delete(open, old.Seq)
			}
			all = slices.Delete(all, 0, len(all)-f.Limit)
		}
		return ctx.Err()
	})
	page.First, page.Last = report.First, report.Last
	if report.First != 0 && report.First == links.begun { // otherwise those before were removed meanwhile
		page.First = links.first
	}
	switch {
	case err == errChosen:
		page.Last, page.Hash, err = written.seq, written.hash[:], nil
	case err != nil:
	case written.seq > report.Last:
		err = damaged("it ends with entry %d, and had %d: its end was cut off", report.Last, written.seq)
	case noted.seq > report.Last:
		err = fmt.Errorf("%w: it ends with entry %d", ErrOther, report.Last)
	case noted.seq != 0 && noted.seq < report.First:
		err = device.Faultf(device.Invalid,
			"entry %d is not kept: the journal has %d to %d", noted.seq, report.First, report.Last)
	}
	for _, r := range all[max(0, len(all)-f.Limit):] {
		page.Items = append(page.Items, *r)
	}
	page.Older = chosen > f.Limit
	if f.Chain {
		page.Chain = links.chain()
		page.Older = links.dropped || page.First < report.First
	}
	return page, report, err
}

// clip leaves the last items of a page that are within maxPageBytes, and at least one.
func (p *Page) clip() {
	size := 0
	for i, r := range slices.Backward(p.Items) {
		size += len(r.Args) + len(r.Result) + len(r.Says)
		if size > maxPageBytes && i < len(p.Items)-1 {
			p.Items, p.Older = slices.Clone(p.Items[i+1:]), true
			return
		}
	}
}

// chooses reports whether an entry that is no result is one of the filter's.
func (f *Filter) chooses(e Entry) bool {
	return (f.Before == 0 || e.Seq < f.Before) && (f.Who == "" || e.Who == f.Who) &&
		!e.Time().Before(f.From) && (f.To.IsZero() || e.Time().Before(f.To)) &&
		(f.Output == "" || subject(Call{Tool: e.Tool, Args: e.Args}) == f.Output)
}

func itemOf(e Entry) *Item {
	r := &Item{
		Seq: e.Seq, Time: e.Time().UTC(), Who: e.Who, Via: e.Via, Tool: e.Tool, Args: e.Args, Key: e.Key, Says: e.Says,
	}
	switch e.Kind {
	case Intent:
		r.Outcome = noResult
	case Done:
		r.setOutcome(e)
		r.Count = e.Count
	case Denied:
		r.Outcome, r.Says, r.Count = "refused", e.Fault, e.Count
	default:
		r.Outcome = string(e.Kind)
	}
	return r
}

func (r *Item) setOutcome(e Entry) {
	r.Outcome, r.Says, r.Result = "done", e.Says, e.Value
	if e.Fault != "" {
		r.Outcome = e.Fault
	}
}
