package journal

import (
	"time"

	"github.com/go-json-experiment/json"
)

// clockTool is the Tool of the events that say how the site's clock was set. Its Value is a clockSet.
const clockTool = "clock"

// clockStep is the largest difference of the clock from the assumed one that makes no event.
const clockStep = 2 * time.Second

// clockSet is the value of an event: what the clock showed, had it not been set, and whether the times
// from there on are known.
type clockSet struct {
	Was   string `json:"was,omitzero"`
	Known bool   `json:"known"`
}

// clock is the site's clock as the entries say.
type clock struct {
	known bool
	at    time.Time // when it was read last in this run; zero before
	wall  time.Time // what it showed then, or in the last entry of an earlier run
}

// recall takes in an entry of an earlier run.
func (c *clock) recall(e Entry) {
	c.wall = e.Time()
	var set clockSet
	if e.Kind == Event && e.Tool == clockTool && json.Unmarshal(e.Value, &set) == nil {
		c.known = set.Known
	}
}

// check returns the event that has to come before an entry that is written now, if the clock was set
// or has become known since the last one.
func (c *clock) check(now time.Time, known bool) (e Entry, set bool) {
	at, was := time.Now(), c.wall
	if !c.at.IsZero() {
		was = was.Add(at.Sub(c.at))
	}
	stepped := was.Sub(now) > clockStep || now.Sub(was) > clockStep && !c.at.IsZero() // the site may have been off
	same := known == c.known && !stepped
	c.at, c.wall, c.known = at, now.Round(0), known
	if same {
		return e, false
	}
	value := clockSet{Known: known}
	e = Entry{Kind: Event, Tool: clockTool, Says: "the clock is not set: the times from here on are a guess"}
	if known {
		e.Says = "the clock is set"
	}
	if stepped {
		value.Was = was.UTC().Format(time.RFC3339)
		e.Says += "; it showed " + value.Was
	}
	e.Value, _ = json.Marshal(value)
	return e, true
}

// retry has the next check return an event once more, which could not be written.
func (c *clock) retry() { c.known = !c.known }
