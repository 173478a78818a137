package trial

import (
	"strings"
	"time"

	"agentsite/device"
)

const (
	maxMoves   = 500 // of a result, and of what happened to all outputs
	maxReasons = 20  // for which an output refuses a rule; more are counted with the last one
)

// Result compares the moves that rules would have made with those that happened.
type Result struct {
	From      time.Time      `json:"from"`
	To        time.Time      `json:"to"`
	Readings  int            `json:"readings"` // that were stored
	Rules     []RuleResult   `json:"rules"`
	Outputs   []OutputResult `json:"outputs"`
	Moves     []Move         `json:"moves"` // those that the rules would have made, and returns to safe
	MoreMoves int            `json:"more_moves,omitzero"`
	// Unproven are the outputs whose expect was not tried: what was recorded is no effect of a move that was not made.
	Unproven []string `json:"effect_not_tried,omitzero"`
}

// RuleResult has the moves that one rule would have made.
type RuleResult struct {
	Rule    string    `json:"rule"`
	Mistake string    `json:"mistake,omitzero"` // why it was not tried
	Outputs []RuleUse `json:"outputs,omitzero"`
}

// RuleUse counts the moves of an output that a rule would have made.
type RuleUse struct {
	Output string `json:"output"`
	Use
	Refused []RefusedMoves `json:"refused,omitzero"`
}

// Use says how an output was used.
type Use struct {
	Moves   int     `json:"moves"`        // to a value that is not the safe one
	Seconds float64 `json:"seconds_away"` // from its safe value
}

// RefusedMoves counts the moves that the guard would have refused for one reason. A rule asks again.
type RefusedMoves struct {
	Reason string    `json:"reason"`
	Count  int       `json:"count"`
	First  time.Time `json:"first"`
}

// OutputResult is an output that the rules move.
type OutputResult struct {
	Output string       `json:"output"`
	Safe   device.Value `json:"safe"`
	Would  Use          `json:"would"`
	Was    Past         `json:"was"`
}

// Past counts the moves of an output that happened, whoever made them.
type Past struct {
	Use
	Unknown float64 `json:"seconds_unknown,omitzero"` // for so long nothing is stored
	Changes []Was   `json:"changes,omitzero"`
	More    int     `json:"more_changes,omitzero"`
}

// Was is a value that an output had from a time on; none where that is not known.
type Was struct {
	Time  time.Time    `json:"time"`
	Value device.Value `json:"value"`
}

// Move is a move that a rule would have made, or the end of one.
type Move struct {
	Time   time.Time    `json:"time"`
	Output string       `json:"output"`
	Value  device.Value `json:"value"`
	Rule   string       `json:"rule"`
	Cause  string       `json:"cause,omitzero"` // why the output returned to safe, if no rule released it
}

// past collects what happened to an output.
type past struct {
	value   device.Value
	seen    bool
	since   time.Duration
	total   Use
	unknown time.Duration
	changes []change
	more    int // that are not in changes
}

type change struct {
	at    time.Duration
	value device.Value
}

func (p *past) take(at time.Duration, v, safe device.Value) {
	p.account(at, safe)
	if p.seen && v == p.value {
		return // somebody else holds it
	}
	if at > 0 && !v.IsZero() && v != safe {
		p.total.Moves++
	}
	p.value, p.seen = v, true
	if len(p.changes) < maxMoves {
		p.changes = append(p.changes, change{at, v})
	} else {
		p.more++
	}
}

func (p *past) account(at time.Duration, safe device.Value) {
	switch passed := max(0, at-p.since); {
	case p.value.IsZero():
		p.unknown += passed
	case p.value != safe:
		p.total.Seconds += passed.Seconds()
	}
	p.since = max(p.since, at)
}

func (r *run) result() Result {
	out := Result{From: r.From.UTC(), To: r.To.UTC(), Readings: r.count, Rules: []RuleResult{}, Outputs: []OutputResult{}, Moves: r.outputs.moves, MoreMoves: r.outputs.more}
	if out.Moves == nil {
		out.Moves = []Move{}
	}
	room := maxMoves
	for i := range r.outputs.all {
		o := &r.outputs.all[i]
		if !o.tried {
			continue
		}
		r.outputs.account(i)
		o.was.account(r.now, o.safe)
		was := Past{Use: o.was.total.rounded(), Unknown: rounded(o.was.unknown.Seconds()), More: o.was.more}
		for _, c := range o.was.changes {
			if room == 0 {
				was.More++
				continue
			}
			room--
			was.Changes = append(was.Changes, Was{r.From.Add(c.at).UTC(), c.value})
		}
		out.Outputs = append(out.Outputs, OutputResult{Output: o.address, Safe: o.safe, Would: o.would.rounded(), Was: was})
	}
	for i := range out.Moves {
		out.Moves[i].Time = out.Moves[i].Time.UTC()
	}
	for _, d := range r.rules {
		of := RuleResult{Rule: d.Name, Mistake: d.mistake}
		for _, u := range d.uses {
			of.Outputs = append(of.Outputs, RuleUse{Output: r.outputs.all[u.output].address, Use: u.total.rounded(), Refused: u.refused})
		}
		out.Rules = append(out.Rules, of)
	}
	return out
}

func (u Use) rounded() Use { return Use{u.Moves, rounded(u.Seconds)} }

func rounded(seconds float64) float64 { return device.Tidy(float64(int64(seconds*1000+0.5)) / 1000) }

// reasonOf returns why a move was refused, without what differs from one time to the next.
func reasonOf(f *device.Fault) string {
	reason := f.Msg
	for _, varying := range []string{"; ", " for another ", ", and it was ", ", and it had ", " for no more than "} {
		reason, _, _ = strings.Cut(reason, varying)
	}
	return reason
}
