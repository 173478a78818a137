package rule

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

// Test is one step of a rule's own tests: under these readings, after that time, the rule holds
// these outputs. The steps follow one another. Each point that the rule reads has the reading
// that was given last, and is unknown before.
type Test struct {
	Given map[string]string       `json:"given,omitempty" jsonschema:"readings from now on, with their units, such as climate/temperature: 4 Cel; unknown for one that cannot be read, and event for an event"`
	Clock string                  `json:"clock,omitempty" jsonschema:"the local time from now on, such as 2026-01-31 22:30; the clock is not set before one is given"`
	After time.Duration           `json:"after,omitempty" jsonschema:"how much time passes then"`
	Holds map[string]device.Value `json:"holds,omitempty" jsonschema:"the outputs that the rule holds then, with their values; none when not written"`
}

const (
	// testEvery is how often the readings of a test are read.
	testEvery = 10 * time.Second
	maxTests  = 64
	maxSteps  = 50_000 // of the machine, over all tests
	// eventWord and unknownWord are readings of a test.
	eventWord, unknownWord = "event", "unknown"
)

// given is a reading of a test.
type given struct {
	value device.Value
	unit  string
	kind  device.Kind
}

// parseGiven parses a reading: a number with its unit, on or off, event, unknown, or a word.
func parseGiven(text string) given {
	switch text = strings.TrimSpace(text); text {
	case "on", "true":
		return given{value: device.Bool(true), kind: device.KindState}
	case "off", "false":
		return given{value: device.Bool(false), kind: device.KindState}
	case eventWord:
		return given{value: device.Text(eventWord), kind: device.KindEvent}
	case unknownWord:
		return given{}
	}
	number, unit, _ := strings.Cut(text, " ")
	if n, err := strconv.ParseFloat(number, 64); err == nil && device.Number(n).Finite() {
		return given{device.Number(n), strings.TrimSpace(unit), device.KindMeasurement}
	}
	return given{value: device.Text(text), kind: device.KindState}
}

// checkTests makes the tests. c is the rule without the site's points, of which the tests say
// what they are.
func (r *Rule) checkTests(c *compiled) error {
	if len(r.Tests) == 0 {
		return nil
	}
	if len(r.Tests) > maxTests {
		return mistake("tests", "there are at most %d", maxTests)
	}
	known := Points{any: true}
	if before := r.known.Load(); before != nil {
		known = *before
	}
	points, err := r.testPoints(c, known)
	if err != nil {
		return err
	}
	m, err := r.NewMachine(KindName+":test", points)
	if err != nil { // without them it passed
		return mistake("tests", "the rule does not go by the readings that are given: %w", err)
	}
	p := proof{m: m, points: points, given: make(map[int]given), returns: make(map[int]time.Duration)}
	p.tell(false) // at first no event has happened
	for i, t := range r.Tests {
		if err := p.step(t); err != nil {
			return mistake("tests", "step %d: %w", i+1, err)
		}
	}
	return nil
}

// testPoints describes the points as the tests use them, and outputs as they are known.
func (r *Rule) testPoints(c *compiled, known Points) (points []agents.Point, err error) {
	add := func(p agents.Point) {
		if !slices.ContainsFunc(points, func(q agents.Point) bool { return q.Point == p.Point }) {
			points = append(points, p)
		}
	}
	for _, t := range c.targets {
		if p, _ := known.find(t.address); p != nil {
			add(*p)
			continue
		}
		if t.formula != nil {
			add(t.formula.point(t.address))
			continue
		}
		p := agents.Point{Point: t.address, Kind: device.KindSwitch, Safe: device.Bool(!t.value.Bool())}
		if t.value.Type() == device.TypeNumber {
			low, high := min(0, t.value.Number()-1), t.value.Number()+1
			p.Kind, p.Min, p.Max, p.Safe = device.KindLevel, &low, &high, device.Number(low)
			for _, test := range r.Tests {
				if g := parseGiven(test.Given[t.address]); g.kind == device.KindMeasurement {
					p.Unit = g.unit
				}
			}
		}
		add(p)
	}
	for _, n := range c.notes {
		if n.Display != "" {
			add(agents.Point{Point: n.Display, Kind: device.KindText})
		}
	}
	for i, t := range r.Tests {
		for _, address := range slices.Sorted(maps.Keys(t.Given)) {
			g := parseGiven(t.Given[address])
			if !slices.Contains(c.uses.Points, address) {
				return nil, mistake("tests", "step %d: the rule does not read %.60q%s", i+1, address, device.Suggest(address, c.uses.Points, "point"))
			}
			if g.kind == "" {
				continue
			}
			if k := slices.IndexFunc(points, func(p agents.Point) bool { return p.Point == address }); k >= 0 &&
				g.kind == device.KindMeasurement && points[k].Unit != g.unit {
				return nil, mistake("tests", "step %d: write %s: %s", i+1, address,
					strings.TrimSpace(g.value.String()+" "+points[k].Unit))
			}
			if q, _ := known.find(address); q != nil && g.kind == device.KindMeasurement &&
				q.Kind == g.kind && q.Unit != g.unit {
				return nil, mistake("tests", "step %d: write %s: %s", i+1, address, strings.TrimSpace(g.value.String()+" "+q.Unit))
			}
			p := agents.Point{Point: address, Kind: g.kind, Unit: g.unit}
			if g.value.Type() == device.TypeText && g.kind == device.KindState {
				for _, t := range r.Tests {
					if text, ok := t.Given[address]; ok && parseGiven(text).value.Type() == device.TypeText {
						p.Values = append(p.Values, text)
					}
				}
			}
			add(p)
		}
	}
	for _, address := range c.uses.Points {
		if !slices.ContainsFunc(points, func(p agents.Point) bool { return p.Point == address }) {
			return nil, mistake("tests", "no step gives a reading of %s; add it, or \"given: { %[1]s: unknown }\" beside one that does", address)
		}
	}
	return points, nil
}

// proof runs a Machine in a time of its own, on outputs that do what they are asked.
type proof struct {
	m       *Machine
	points  []agents.Point
	now     Moment
	given   map[int]given
	returns map[int]time.Duration // when points that the rule reads and moved return to safe; 0 for not by themselves
	steps   int
}

func (p *proof) step(t Test) error {
	if t.After < 0 || t.After > maxLength {
		return fmt.Errorf("after takes a time up to %v", device.FormatDuration(maxLength))
	}
	if t.Clock != "" {
		wall, err := time.ParseInLocation("2006-01-02 15:04", t.Clock, time.Local)
		if err != nil {
			return fmt.Errorf("clock takes a local time such as 2026-01-31 22:30, not %.40q", t.Clock)
		}
		p.now.Wall, p.now.Sure = wall, true
	}
	for address, text := range t.Given {
		i := slices.Index(p.m.uses.Points, address)
		p.given[i] = parseGiven(text)
		delete(p.returns, i)
	}
	p.tell(true)
	end := p.now.Now + t.After
	for {
		next := p.decide()
		wait := min(testEvery, end-p.now.Now)
		if next > 0 {
			wait = min(wait, next)
		}
		if wait <= 0 {
			break
		}
		if p.steps++; p.steps > maxSteps {
			return fmt.Errorf("the tests take too many steps: let less time pass")
		}
		p.now.Now += wait
		p.now.Wall = p.now.Wall.Add(wait)
		p.tell(false)
	}
	return p.compare(t.Holds)
}

// tell tells the readings that there are; events only when they come.
func (p *proof) tell(came bool) {
	for i, at := range p.returns {
		if at > 0 && p.now.Now >= at {
			p.moved(i, device.Value{}, 0)
		}
	}
	for i := range p.m.points {
		g := p.given[i]
		if g.kind == device.KindEvent && !came {
			continue
		}
		p.m.Tell(p.now.Now, i, &Reading{Value: g.value, Known: g.kind != "" || p.m.points[i].event})
		if g.kind == device.KindEvent {
			delete(p.given, i)
		}
	}
}

// decide makes what the machine wants, and returns when it is to be asked again.
func (p *proof) decide() (next time.Duration) {
	for range MaxRounds {
		acts, next := p.m.Step(p.now)
		if len(acts) == 0 {
			return next
		}
		for _, a := range acts {
			left := a.For
			if left == 0 {
				left = time.Minute
			}
			p.m.Done(p.now, a, left, 0, nil)
			if !a.Value.IsZero() { // and its state follows, as on a site
				p.m.Output(p.now, p.now.Now, a.Output, Lease{Holder: p.m.self, Known: true})
			}
			if i := slices.Index(p.m.uses.Points, p.m.outputs[a.Output].address); i >= 0 {
				p.moved(i, a.Value, left)
				p.tell(false)
			}
		}
	}
	return RoundsPause
}

// moved has point i read the value that the rule moved it to, for so long; without one its safe value.
func (p *proof) moved(i int, v device.Value, left time.Duration) {
	of := p.points[slices.IndexFunc(p.points, func(q agents.Point) bool { return q.Point == p.m.uses.Points[i] })]
	if p.returns[i] = p.now.Now + left; v.IsZero() {
		v, p.returns[i] = of.Safe, 0
	}
	p.given[i] = given{value: v, unit: of.Unit, kind: of.Kind}
}

// compare reports what the rule holds and should not, or the reverse.
func (p *proof) compare(holds map[string]device.Value) error {
	for address := range holds {
		if !slices.Contains(p.m.Outputs(), address) {
			return fmt.Errorf("holds: the rule does not move %.60q%s", address, device.Suggest(address, p.m.Outputs(), "output"))
		}
	}
	for i := range p.m.outputs {
		o := &p.m.outputs[i]
		want, wanted := holds[o.address]
		why := p.m.Report(p.now)
		switch {
		case wanted && !o.held:
			return fmt.Errorf("the rule does not hold %s at %v: %s: %s", o.address, want, why.State, why.Says)
		case wanted && want != o.value:
			return fmt.Errorf("the rule holds %s at %v, not at %v", o.address, o.value, want)
		case !wanted && o.held:
			return fmt.Errorf("the rule holds %s at %v", o.address, o.value)
		}
	}
	return nil
}
