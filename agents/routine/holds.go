package routine

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/device"

	"github.com/go-json-experiment/json"
)

const (
	// toldWithin limits the wait for a return to safe after the planned end of a hold.
	toldWithin = 2 * time.Second
	// early is the least difference from the length asked for at which a hold counts as cut short.
	early = time.Second
	// interrupted is the reason of a hold whose end this run of the routine did not see.
	interrupted = "the site or the agent ended meanwhile; it is not known when"
)

// follower follows the outputs that a routine moved, to tell what became of them.
type follower struct {
	self string

	mu      sync.Mutex
	begun   []*hold          // in this run
	open    map[string]*hold // by output; those that have not ended, as far as is known
	told    map[string]agents.OutputDetail
	blind   bool          // nothing is told any more
	changed chan struct{} // closed when any of this has changed
}

// hold is a move away from safe.
type hold struct {
	moved    *Moved
	from     time.Time     // when the move was answered
	left     time.Duration // of its lease, then
	asked    time.Duration // 0 where the output chose
	state    int64         // as agents.OutputDetail has it
	replayed bool          // the move was made before a restart, and the output was not seen to be held since
	over     bool          // it has ended, as far as is known
	cut      bool          // by somebody, not by a limit or a start
}

func newFollower(self string) *follower {
	return &follower{
		self: self, open: make(map[string]*hold), told: make(map[string]agents.OutputDetail), changed: make(chan struct{}),
	}
}

// follow has the site tell what the outputs do, until ctx ends. Where it does not, waits are as planned.
func (f *follower) follow(ctx context.Context, self agents.Principal, site agents.Site, outputs []string) {
	site.Watch(ctx, self, agents.WatchRequest{Points: outputs}, func(u agents.Update) error {
		f.change(func() {
			for _, r := range u.Readings {
				if r.Detail != nil && slices.Contains(outputs, r.Point) {
					f.told[r.Point] = *r.Detail
					f.look(r.Point)
				}
			}
		})
		return nil
	})
	f.change(func() { f.blind = true })
}

func (f *follower) change(by func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	by()
	close(f.changed)
	f.changed = make(chan struct{})
}

// begin notes a move. It ends an earlier hold of the output.
func (f *follower) begin(o *hold) {
	f.change(func() {
		output := o.moved.Output
		if before := f.open[output]; before != nil {
			before.end("")
		}
		f.open[output], f.begun = o, append(f.begun, o)
		if d := f.told[output]; o.replayed || d.State>>32 == o.state>>32 && d.State > o.state { // it has ended already
			f.look(output)
		}
	})
}

// look ends the open hold of an output that the routine does not hold any more. The lock is held.
func (f *follower) look(output string) {
	o, d := f.open[output], f.told[output]
	_, told := f.told[output]
	switch {
	case o == nil || !told || d.State>>32 == o.state>>32 && d.State < o.state:
	case d.Holder == f.self:
		o.replayed, o.moved.Effect = false, d.Effect
	default:
		if d.Holder == "" {
			o.moved.Effect = d.Effect
		}
		why := cmp.Or(d.Why, "it was returned to safe")
		if d.Holder != "" {
			why = "somebody else took it over"
		}
		o.cut = !o.replayed && (d.Why == "" || d.Holder != "")
		o.end(why)
		delete(f.open, output)
	}
}

// end notes how long a hold was, and why if that is shorter than was asked.
func (o *hold) end(why string) {
	o.over = true
	if o.replayed {
		o.moved.Ended = interrupted
		return
	}
	away := time.Since(o.from)
	if o.moved.Seconds = tenths(away); away < max(o.left, o.asked)-early {
		o.moved.Ended = why
	}
}

// finish notes how long the holds that have not ended were so far, and will be.
func (f *follower) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.open {
		away := time.Since(o.from)
		switch {
		case o.replayed:
			o.moved.Ended = interrupted
		case !f.blind:
			o.moved.Seconds, o.moved.Left = tenths(away), tenths(max(0, o.left-away))
		}
	}
	clear(f.open)
}

// cuts holds the lengths and ends of the holds of runs that a pause cut short, by hold.state.
type cuts struct {
	mu  sync.Mutex
	all map[int64]ended
}

// maxCuts bounds them: those of canceled tasks are never asked for.
const maxCuts = 64

// add adds the holds of a run. The outputs of those that have not ended return to safe with it.
func (c *cuts) add(f *follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || len(c.all) > maxCuts {
		c.all = make(map[int64]ended)
	}
	for _, o := range f.begun {
		switch {
		case o.state == 0 || o.replayed:
		case o.over:
			c.all[o.state] = ended{o.moved.Seconds, o.moved.Ended}
		default:
			c.all[o.state] = ended{tenths(time.Since(o.from)), "the agent was paused"}
		}
	}
}

// take returns how a hold went, once.
func (c *cuts) take(state int64) (e ended, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok = c.all[state]
	delete(c.all, state)
	return e, ok
}

// tenths returns a length in seconds, to a tenth.
func tenths(d time.Duration) float64 { return math.Round(d.Seconds()*10) / 10 }

// ended is the result of the step after a hold: how it was, so that a restart does not forget it.
type ended struct {
	Seconds float64 `json:"seconds,omitzero"`
	Ended   string  `json:"ended,omitzero"`
}

// hold waits until the outputs of a step have returned to safe, and notes that as a step. An output that
// somebody returned earlier has the next step come no earlier.
func (r *run) hold(ctx context.Context, length time.Duration, held []*hold) error {
	if at := r.next; at < len(r.made) {
		all := make([]ended, len(held))
		if r.made[at].Outcome == string(device.UnknownOutcome) { // what was cut off is only a note
			r.next, r.from = at+1, time.Now()
			for i := range all {
				all[i].Ended = interrupted
			}
		} else if err := r.once(nil); err != nil {
			return err
		} else if err := json.Unmarshal(r.made[at].Result, &all); err != nil || len(all) != len(held) {
			return device.Faultf(device.Internal, "step %d of the task: how long its outputs were held cannot be read", at+1)
		}
		r.outputs.change(func() {
			for i, o := range held {
				o.moved.Seconds, o.moved.Ended = all[i].Seconds, all[i].Ended
				delete(r.outputs.open, o.moved.Output)
			}
		})
		return nil
	}
	if err := r.untilSafe(ctx, length, held); err != nil {
		return err
	}
	all, says := make([]ended, len(held)), make([]string, len(held))
	r.outputs.change(func() {
		for i, o := range held {
			if !o.over && o.replayed { // of another one that goes on, nothing is known
				o.end("")
			}
			delete(r.outputs.open, o.moved.Output)
			all[i], says[i] = ended{o.moved.Seconds, o.moved.Ended}, o.says()
		}
	})
	return r.once(func() error {
		note := func(context.Context, string) (any, error) { return all, nil }
		_, err := r.work.Step(ctx, strings.Join(says, "; "), note)
		return err
	})
}

// says tells how a hold went. The lock is held.
func (o *hold) says() string {
	text := "held " + o.moved.Output
	if o.moved.Seconds > 0 {
		away := agent.Seconds(o.moved.Seconds)
		text += " for " + device.FormatDuration(away.Round(time.Second/10))
	}
	if o.moved.Ended != "" {
		text += ", until " + o.moved.Ended
	}
	if o.moved.Effect != "" {
		text += ", effect " + o.moved.Effect
	}
	return text
}

// untilSafe waits until holds have ended, or for so long.
func (r *run) untilSafe(ctx context.Context, length time.Duration, held []*hold) error {
	planned := r.from.Add(length)
	if left := time.Until(planned); left > 0 {
		r.work.Say("waits " + device.FormatDuration(left.Round(time.Second)))
		defer r.work.Say("")
	}
	for {
		left := time.Until(planned)
		r.outputs.mu.Lock()
		changed := r.outputs.changed
		open := slices.ContainsFunc(held, func(o *hold) bool { return !o.over })
		cut := slices.ContainsFunc(held, func(o *hold) bool { return o.cut })
		if open && !r.outputs.blind {
			left += toldWithin
		}
		r.outputs.mu.Unlock()
		if !open && !cut || left <= 0 {
			return nil
		}
		timer := time.NewTimer(left)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		if timer.Stop(); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}
