package journal

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/node"

	"github.com/go-json-experiment/json"
)

const (
	maxRecent      = 10       // calls about one output
	maxRecentBytes = 80 << 10 // of all, with maps and slices some 100 kB
	maxShortArgs   = 200      // longer arguments are left out
	maxShortSays   = 160
	recordedSize   = 250 // of a Recorded without its texts
)

// recent caches the last calls about each output and about the whole site, so that a reader does
// not wait for the disk. The zero value is empty.
type recent struct {
	mu    sync.Mutex // never held for the disk
	calls map[string][]*recorded
	open  map[uint64]*recorded // intents without a result, by Seq
	bytes int

	recalling bool // earlier runs
}

type recorded struct {
	node.Recorded
	about  string
	before bool // of an earlier run: its times are those of the site's clock then, and else Go's
}

func (r *recorded) size() int {
	n := recordedSize + len(r.Who) + len(r.Tool) + len(r.Args) + len(r.Says)
	for _, name := range r.Via {
		n += 16 + len(name)
	}
	return n
}

// same reports whether both calls were the same and succeeded.
func (r *recorded) same(o *recorded) bool {
	return r.before == o.before && r.Outcome == node.Done && o.Outcome == node.Done && r.Who == o.Who && r.Tool == o.Tool && bytes.Equal(r.Args, o.Args) && slices.Equal(r.Via, o.Via)
}

// subject returns the subject of a call: the output that its arguments name, or, without arguments,
// the site, under the tool's name. "" is for anything else.
func subject(c Call) string {
	var args struct {
		Output string `json:"output"`
		Name   string `json:"name"` // of an owner's method
	}
	if len(c.Args) == 0 || string(c.Args) == "{}" {
		return c.Tool
	}
	if len(c.Args) > maxArgs || json.Unmarshal(c.Args, &args) != nil {
		return ""
	}
	for _, address := range []string{args.Output, args.Name} {
		if d, p, ok := device.SplitAddress(address); ok && device.CheckName(d) == nil && device.CheckName(p) == nil {
			return address
		}
	}
	return ""
}

// put adds a call that begins. The lock is held.
func (all *recent) put(c Call, at time.Time) *recorded {
	about := subject(c)
	if about == "" {
		return nil
	}
	c.Key = ""
	if len(c.Args) > maxShortArgs {
		c.Args = nil
	}
	r := &recorded{Recorded: node.Recorded{Asked: c, Begun: at, Count: 1}, about: about, before: all.recalling}
	if all.calls == nil {
		all.calls, all.open = make(map[string][]*recorded), make(map[uint64]*recorded)
	}
	all.calls[about] = append(all.calls[about], r)
	all.bytes += r.size()
	return r
}

// complete sets the outcome of a call, and keeps the calls within their bounds. The lock is held.
func (all *recent) complete(r *recorded, o Outcome, at time.Time) {
	all.bytes -= r.size()
	r.Ended, r.Outcome, r.Says = at, node.Done, device.Clip(o.Says, maxShortSays)
	if o.Fault != "" {
		r.Outcome = o.Fault
	}
	all.bytes += r.size()
	calls := all.calls[r.about]
	if i := slices.Index(calls, r); i > 0 && calls[i-1].same(r) {
		calls[i-1].Count, calls[i-1].Ended = calls[i-1].Count+r.Count, r.Ended
		all.remove(r.about, i)
	}
	all.evict(r.about)
}

// evict drops the oldest calls of a subject with too many.
func (all *recent) evict(about string) {
	for len(all.calls[about]) > maxRecent {
		all.remove(about, 0)
	}
	for all.bytes > maxRecentBytes {
		most := about
		for of, calls := range all.calls {
			if len(calls) > len(all.calls[most]) {
				most = of
			}
		}
		all.remove(most, 0)
	}
}

func (all *recent) remove(about string, i int) {
	calls := all.calls[about]
	all.bytes -= calls[i].size()
	if calls = slices.Delete(calls, i, i+1); len(calls) == 0 {
		delete(all.calls, about)
	} else {
		all.calls[about] = calls
	}
}

// begin takes in an intent.
func (all *recent) begin(seq uint64, c Call, at time.Time) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if r := all.put(c, at); r != nil {
		all.open[seq] = r
		all.evict(r.about)
	}
}

// end takes in the outcome of an intent.
func (all *recent) end(seq uint64, o Outcome, at time.Time) {
	all.mu.Lock()
	defer all.mu.Unlock()
	r := all.open[seq]
	delete(all.open, seq)
	if r != nil && slices.Contains(all.calls[r.about], r) { // else it was evicted while it ran
		all.complete(r, o, at)
	}
}

// add takes in a call with its outcome, which was made so often.
func (all *recent) add(c Call, o Outcome, at time.Time, count int) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if r := all.put(c, at); r != nil {
		r.Count = count
		all.complete(r, o, at)
	}
}

// recall takes in an entry of an earlier run.
func (all *recent) recall(e Entry) {
	all.recalling = true
	defer func() { all.recalling = false }()
	c, o := Call{Who: e.Who, Tool: e.Tool, Args: e.Args, Via: e.Via}, Outcome{Fault: e.Fault, Says: e.Says}
	if e.Args == nil && e.Digest != nil && !bytes.Equal(digest(c), e.Digest) {
		return // its arguments were too long to be written
	}
	switch e.Kind {
	case Intent:
		all.begin(e.Seq, c, e.Time())
	case Result:
		all.end(e.Of, o, e.Time())
	case Done:
		all.add(c, o, e.Time(), max(1, e.Count))
	}
}

// recalled ends an earlier run: an intent without a result never gets one.
func (all *recent) recalled() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, r := range all.open {
		r.Outcome = string(device.UnknownOutcome) // of an evicted one, too, which nobody sees
	}
	clear(all.open)
}

// about returns copies of the calls, the oldest first, with times by the site's clock.
func (all *recent) about(about string, now time.Time) (out []node.Recorded) {
	all.mu.Lock()
	defer all.mu.Unlock()
	here := time.Now()
	for _, r := range all.calls[about] {
		c := r.Recorded
		if !r.before {
			for _, at := range []*time.Time{&c.Begun, &c.Ended} {
				if !at.IsZero() {
					*at = now.Add(at.Sub(here)).Round(0)
				}
			}
		}
		out = append(out, c)
	}
	return out
}
