package rule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/rule/calendar"
	"agentsite/agents/rule/expr"
	"agentsite/device"
	"agentsite/device/alarm"
)

// KindName is the name of the kind of agent, and so the beginning of a rule's principal.
const KindName = "rule"

// maxTargets bounds the outputs of a rule, and maxPriority its priority.
const (
	maxTargets  = 16
	maxPriority = 100
	maxLength   = 24 * time.Hour // of the lengths of time in a rule
)

// World is what rules know of the site beside its points.
type World struct {
	// Now returns the time; sure is false while the clock is not set.
	Now func() (t time.Time, sure bool)
	// AfterFunc makes the timer of due times; nil for Go's.
	AfterFunc alarm.AfterFunc
	// Place is where the site is; nil if that is not configured.
	Place *calendar.Place
	// Ask asks an agent of the site for a task, with a key that makes it once, "" for none. It does not
	// wait for its end. nil where no agent can be asked.
	Ask func(ctx context.Context, p agents.Principal, agent, text, key string) error
	// Holidays are the owner's; nil if that is not configured.
	Holidays calendar.Holidays
	// Points are those that are known before the site runs, and Open the devices whose points
	// and the other sites whose points are not. Without Points, nil, nothing is known, and any name
	// is accepted until then.
	Points []agents.Point
	Open   []string
	// Untested leaves out the rules' own tests, which may take seconds.
	Untested bool
}

// Kind returns the entry of the list of kinds.
func Kind(w World) agent.Kind {
	known := w.Known(nil)
	w.Points, w.Open = nil, nil
	if w.AfterFunc == nil {
		w.AfterFunc = alarm.Go
	}
	r := &runner{world: w}
	return agent.Kind{Name: KindName, Doc: "holds outputs while a condition is true, or moves them at an event or a time", New: func() agent.Agent {
		made := &Rule{runner: r, order: int(r.made.Add(1))}
		made.known.Store(&known)
		return made
	}}
}

// Rule is a rule as its owner wrote it. It either holds outputs while a condition is true
// (when, hold), or moves them when something happens (on, at or every, do).
type Rule struct {
	When   string                  `json:"when,omitempty" jsonschema:"the condition under which the outputs are held, such as climate/temperature < 5 Cel"`
	For    time.Duration           `json:"for,omitempty" jsonschema:"how long the condition has to be true before the outputs are held; 0 when not written"`
	Until  string                  `json:"until,omitempty" jsonschema:"the condition that ends the hold, such as climate/temperature > 7 Cel; when the first condition is false when not written"`
	Hold   map[string]device.Value `json:"hold,omitempty" jsonschema:"the outputs with the values that they are held at, such as house/heater: on"`
	Follow map[string]string       `json:"follow,omitempty" jsonschema:"levels that follow a formula while they are held, such as fan/level: clamp((climate/temperature - 20 Cel) / 10 Cel * 100, 20, 100)"`

	On     string        `json:"on,omitempty" jsonschema:"the point whose event starts the steps: a button, or a state that becomes on"`
	At     string        `json:"at,omitempty" jsonschema:"the times of day that start the steps, with commas between them: 7:30, sunset - 20m; or five fields as of cron: */10 8-18 * * mon-fri"`
	Every  time.Duration `json:"every,omitempty" jsonschema:"how often the steps start, 1s or more"`
	If     string        `json:"if,omitempty" jsonschema:"the condition under which the steps are made when they are started; always when not written"`
	Do     []Step        `json:"do,omitempty" jsonschema:"the steps"`
	Toggle bool          `json:"toggle,omitempty" jsonschema:"on: only: what comes while the outputs are held releases them"`
	Missed string        `json:"missed,omitempty" jsonschema:"run makes the steps of at: up to an hour late, when the site was off; without it they are left out"`

	Resume   time.Duration `json:"resume,omitempty" jsonschema:"how long after somebody else moved an output the rule may hold it again although the condition was true all the time; never when not written"`
	Priority int           `json:"priority,omitempty" jsonschema:"of several rules that move one output the one with the higher number wins: 0 to 100"`
	Tests    []Test        `json:"tests,omitempty" jsonschema:"what the rule has to do under what readings; agentsite check tries it"`

	*runner
	known   atomic.Pointer[Points] // before the rule runs; nil afterwards, when the site is asked
	order   int                    // among the rules of the runner
	running atomic.Pointer[live]
}

// Step is a step of Do.
type Step struct {
	Set    map[string]device.Value `json:"set,omitempty" jsonschema:"the outputs with their values, such as lamp/level: 40"`
	Follow map[string]string       `json:"follow,omitempty" jsonschema:"levels with formulas that they follow while they are held"`
	For    time.Duration           `json:"for,omitempty" jsonschema:"how long they are held there; as long as the output has it when not written"`
	Show   map[string]string       `json:"show,omitempty" jsonschema:"the displays with their texts"`
	Ask    string                  `json:"ask,omitempty" jsonschema:"an agent of this site that is asked for a task"`
	Text   string                  `json:"text,omitempty" jsonschema:"what is asked of it, if it reads"`
	Wait   time.Duration           `json:"wait,omitempty" jsonschema:"how long the steps after this one wait"`
}

// The expressions of a rule, as indices.
const (
	whenProgram = iota
	untilProgram
	ifProgram
	programs
)

// programKeys are their keys in YAML.
var programKeys = [programs]string{"when", "until", "if"}

// compiled is a rule that was checked against the points that there are.
type compiled struct {
	programs [programs]*expr.Program
	uses     expr.Uses // of all programs, and the point of on:
	points   []used    // of uses.Points
	steady   bool      // all programs are
	clock    bool      // the time of day is used
	missed   bool
	toggle   bool
	on       int // in points; -1 for none
	targets  []target
	notes    []note
	hold     time.Duration // for:

	schedule calendar.List // at:; nil for none
	place    *calendar.Place
	period   time.Duration // every:
	resume   time.Duration
}

// used is how a rule uses a point.
type used struct {
	expr.Sense      // in all programs
	event      bool // its kind
	plain      bool // it has no window and starts nothing
}

// Points returns the addresses of the points that the rule reads, in the order in which a
// Machine counts them.
func (c *compiled) Points() []string { return c.uses.Points }

// Outputs returns the addresses of the outputs that the rule moves, in the order in which a
// Machine counts them.
func (c *compiled) Outputs() []string {
	all := make([]string, len(c.targets))
	for i, t := range c.targets {
		all[i] = t.address
	}
	return all
}

// mistake is a mistake in the rule, at the line of a key.
func mistake(key, format string, args ...any) error {
	return &agent.Mistake{Key: key, Err: fmt.Errorf(format, args...)}
}

// Define checks the rule as far as that is possible without the site's points, also while it runs.
func (r *Rule) Define() (agent.Definition, error) {
	known := Points{any: true}
	if before := r.known.Load(); before != nil {
		known = *before
	}
	c, err := r.compile(known)
	if err != nil {
		return agent.Definition{}, err
	}
	d := agent.Definition{Moves: c.Outputs(), Rank: 2 + r.Priority}
	for _, address := range slices.Concat(c.uses.Points, d.Moves) {
		if !slices.Contains(d.Reads, address) {
			d.Reads = append(d.Reads, address)
		}
	}
	for _, n := range c.notes {
		if n.Display != "" && !slices.Contains(d.Reads, n.Display) {
			d.Reads = append(d.Reads, n.Display)
		}
	}
	d.Calls, d.Doubts = c.calls(), r.doubts(c, known)
	if r.world.Untested {
		return d, nil
	}
	return d, r.checkTests(c)
}

// NewMachine checks the rule against the points of a site, and returns its machine. self is
// the rule's principal, and away are other sites whose points are not known yet.
func (r *Rule) NewMachine(self string, points []agents.Point, away ...string) (*Machine, error) {
	if points == nil {
		points = []agents.Point{}
	}
	c, err := r.compile(r.world.Known(points, away...))
	if err != nil {
		return nil, err
	}
	return newMachine(c, self), nil
}

// compile checks the rule against the points that are known.
func (r *Rule) compile(known Points) (*compiled, error) {
	if err := r.checkKeys(); err != nil {
		return nil, err
	}
	c := &compiled{on: -1, place: r.world.Place, hold: r.For, missed: r.Missed != "",
		toggle: r.Toggle, period: r.Every, resume: r.Resume}
	for which, text := range [programs]string{r.When, r.Until, r.If} {
		if text == "" {
			continue
		}
		program, err := known.Compile(text, &c.uses)
		if err != nil {
			return nil, &agent.Mistake{Key: programKeys[which], Err: err}
		}
		c.programs[which] = program
	}
	if r.At != "" {
		s, err := calendar.ParseList(r.At)
		if err != nil {
			return nil, &agent.Mistake{Key: "at", Err: err}
		}
		if s.UsesSun() && c.place == nil {
			return nil, &agent.Mistake{Key: "at", Err: errNoPlace}
		}
		c.schedule = s
	}
	if r.On != "" {
		p, ok := known.find(r.On)
		if !ok {
			return nil, mistake("on", "there is no point %.60q%s", r.On, device.Suggest(r.On, known.names(), "point"))
		}
		if p != nil && p.Kind != device.KindEvent && p.Kind != device.KindSwitch && !(p.Kind == device.KindState && p.Values == nil) {
			return nil, mistake("on", "%s is a %s; on: takes an event, or what is on or off. For a number write when:, or every: with if:", r.On, p.Kind)
		}
		c.on = c.uses.Add(r.On)
	}
	if err := r.addTargets(c, known); err != nil {
		return nil, err
	}
	c.look(known)
	return c, nil
}

// look finds out what the results of the programs depend on.
func (c *compiled) look(known Points) {
	c.steady, c.clock = c.schedule == nil, c.schedule != nil
	c.points = make([]used, len(c.uses.Points))
	all := c.programs[:]
	for _, t := range c.targets {
		if t.formula != nil {
			all = append(all[:len(all):len(all)], t.formula.program)
		}
	}
	for _, p := range all {
		if p == nil {
			continue
		}
		c.steady, c.clock = c.steady && p.Steady(), c.clock || p.UsesClock()
		for i := range c.points {
			s, all := p.Sense(i), &c.points[i]
			all.Time, all.Age, all.Value, all.Bounds = all.Time || s.Time, all.Age || s.Age, all.Value || s.Value, append(all.Bounds, s.Bounds...)
		}
	}
	for i, address := range c.uses.Points {
		p, _ := known.find(address)
		u := &c.points[i]
		u.event = p != nil && p.Kind == device.KindEvent
		u.plain = !u.Time && i != c.on && !u.event
	}
}

// UsesClock reports whether the rule goes by the time of day.
func (c *compiled) UsesClock() bool { return c.clock }

// addTargets adds the outputs, in the order of their names within each step.
func (r *Rule) addTargets(c *compiled, known Points) error {
	steps, key := r.Do, "do"
	if r.When != "" {
		steps, key = []Step{{Set: r.Hold, Follow: r.Follow}}, "hold"
	}
	delay := time.Duration(0)
	for i, s := range steps {
		if r.When == "" {
			key = "do[" + strconv.Itoa(i) + "]"
		}
		if some, err := r.addNotes(c, key, s, delay, known); err != nil {
			return err
		} else if some {
			continue
		}
		if s.Wait != 0 {
			var err error
			if delay, err = r.addWait(key, s, delay, i == len(steps)-1); err != nil {
				return err
			}
			continue
		}
		if len(s.Set)+len(s.Follow) == 0 {
			return mistake(key, "name an output with its value, such as house/heater: on")
		}
		if r.Toggle && s.For == 0 {
			return mistake(key, "toggle: needs for: in each step, after which the outputs are released in any case, as in do: [{ set: { lamp/level: 40 }, for: 2h }]")
		}
		if s.For < 0 || s.For > maxLength {
			return mistake(key, "for takes a time up to %v", device.FormatDuration(maxLength))
		}
		for _, address := range slices.Sorted(maps.Keys(s.Set)) {
			v := s.Set[address]
			p, err := known.Output(address, v)
			if err != nil {
				return &agent.Mistake{Key: key, Err: err}
			}
			t := target{address: address, value: v, length: s.For, delay: delay}
			if p != nil {
				if err := holds(p, v); err != nil {
					return &agent.Mistake{Key: key, Err: err}
				}
				t.longest = agent.Seconds(p.MaxSeconds)
			}
			if err := c.addTarget(key, t); err != nil {
				return err
			}
		}
		if err := r.addFollowed(c, cmp.Or(keyIfSet("follow", r.When), key), s, delay, known); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiled) addTarget(key string, t target) error {
	switch {
	case slices.ContainsFunc(c.targets, func(other target) bool { return other.address == t.address }):
		return mistake(key, "%s comes twice; a rule gives an output one value", t.address)
	case len(c.targets) == maxTargets:
		return mistake(key, "a rule moves at most %d outputs", maxTargets)
	}
	t.key = key
	c.targets = append(c.targets, t)
	return nil
}

// holds refuses a value at which no rule can hold an output.
func holds(p *agents.Point, v device.Value) error {
	switch {
	case p.Confirm != "":
		return fmt.Errorf("each move of %s takes its owner's approval, so that no rule can hold it; remove \"confirm: owner\" from it", p.Point)
	case v == p.Safe:
		return fmt.Errorf("%v is the safe value of %s, which it returns to by itself", v, p.Point)
	}
	return nil
}

// checkKeys checks which keys stand together.
func (r *Rule) checkKeys() error {
	starts := 0
	for _, written := range []bool{r.On != "", r.At != "", r.Every != 0} {
		if written {
			starts++
		}
	}
	level := r.When != ""
	switch {
	case !level && starts == 0:
		return mistake("kind", "a rule needs when: with hold:, or one of on:, at: and every: with do:")
	case level && starts > 0 || starts > 1:
		return mistake(cmp.Or(keyIfSet("at", r.At), keyIfSet("on", r.On), "every"), "a rule has one of when:, on:, at: and every:; write another rule for the other")
	case level && r.Hold == nil && r.Follow == nil:
		return mistake("when", "hold: is missing; name the outputs that are held while this is true, such as hold: { house/heater: on }")
	case level && (r.Do != nil || r.If != ""):
		return mistake(cmp.Or(keyIfSet("if", r.If), "do"), "do: and if: belong to on:, at: and every:; with when: write hold:")
	case !level && r.Follow != nil:
		return mistake("follow", "follow: belongs to when:; with on:, at: and every: it stands in a step, as in do: [{ follow: { fan/level: climate/temperature / 1 Cel }, for: 1h }]")
	case !level && (r.Hold != nil || r.Until != ""):
		return mistake(cmp.Or(keyIfSet("until", r.Until), "hold"), "hold: and until: belong to when:; with on:, at: and every: write do:")
	case !level && r.For != 0:
		return mistake("for", "for: belongs to when:; how long a step holds its outputs stands in the step, as in do: [{ set: { lamp/level: 40 }, for: 2h }]")
	case !level && r.Do == nil:
		return mistake("kind", "do: is missing; write the steps, such as do: [{ set: { lamp/level: 40 }, for: 2h }]")
	case !level && r.Resume != 0:
		return mistake("resume", "belongs to when:; with on:, at: and every: the next start moves the outputs again")
	case r.Toggle && r.On == "":
		return mistake("toggle", "toggle: belongs to on:, such as on: bell/button")
	case r.Missed != "" && r.Missed != "run":
		return mistake("missed", "missed: takes run, or is left out")
	case r.Missed != "" && r.At == "":
		return mistake("missed", "missed: belongs to at:")
	case r.Priority < 0 || r.Priority > maxPriority:
		return mistake("priority", "takes a number from 0 to %d", maxPriority)
	case r.Every != 0 && (r.Every < time.Second || r.Every > maxLength):
		return mistake("every", "takes a time from 1s to %v", device.FormatDuration(maxLength))
	case r.For < 0 || r.For > maxLength:
		return mistake("for", "takes a time up to %v", device.FormatDuration(maxLength))
	case r.Resume < 0 || r.Resume > maxLength:
		return mistake("resume", "takes a time up to %v", device.FormatDuration(maxLength))
	}
	return nil
}

func keyIfSet(key, text string) string {
	if text == "" {
		return ""
	}
	return key
}

// Run follows the rule until ctx ends, or returns why it cannot.
func (r *Rule) Run(ctx context.Context, self agents.Principal, site agents.Site) error {
	ended := make(chan error, 1)
	r.Begin(ctx, self, site, func(err error) { ended <- err })
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		r.End()
		return <-ended
	}
}

// Begin is Run that does not block, as agent.Resting says.
func (r *Rule) Begin(ctx context.Context, self agents.Principal, site agents.Site, ended func(error)) {
	r.known.Store(nil)
	l := &live{site: site, self: self, rule: r, began: time.Now(), mu: device.NewMutex()}
	l.entry = runnerEntry{order: r.order, turn: func(leave func()) { l.turn(ctx, leave) }}
	end := func(err error) {
		l.end(ctx)
		r.running.CompareAndSwap(l, nil)
		if !errors.Is(err, errPointsChanged) {
			ended(err)
			return
		}
		select { // what changes often is taken up once a second
		case <-ctx.Done():
			ended(ctx.Err())
		case <-time.After(time.Second):
			r.Begin(ctx, self, site, ended)
		}
	}
	l.fail = func(err error) {
		if l.over.CompareAndSwap(false, true) {
			go end(err)
		}
	}
	r.join(&l.entry)
	if r.running.Store(l); ctx.Err() != nil { // End may have come before
		l.fail(ctx.Err())
	}
	r.wake(&l.entry)
}

// End ends what Begin began, after its ctx has ended.
func (r *Rule) End() {
	if l := r.running.Load(); l != nil {
		l.fail(context.Canceled)
	}
}
