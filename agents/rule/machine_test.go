package rule_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // whatever the machine has

	"agentsite/agents"
	"agentsite/agents/rule"
	"agentsite/agents/rule/calendar"
	"agentsite/device"
)

// The points of the tests, as rules name them.
var machinePoints = func() []agents.Point {
	low, high := 0.0, 100.0
	return []agents.Point{
		{Point: "a/t", Kind: device.KindMeasurement, Unit: "Cel"}, {Point: "a/door", Kind: device.KindState}, {Point: "a/button", Kind: device.KindEvent},
		{Point: "a/heater", Kind: device.KindSwitch, Safe: off}, {Point: "a/lamp", Kind: device.KindLevel, Min: &low, Max: &high, Safe: device.Number(0), MaxSeconds: 120},
	}
}()

// sim is a Machine with outputs that hold leases as a guard does, in a time of its own.
type sim struct {
	t       *testing.T
	m       *rule.Machine
	now     rule.Moment
	due     time.Duration // 0 for none
	outputs []simOutput
	keys    map[string]bool // that acted
	acts    []string
	log     func(any) // is told what the Machine is told; nil for nobody
	late    bool      // what changes at outputs is not told by itself
	steps   int
}

type simOutput struct {
	holder, ended string
	end           time.Duration
	limit         time.Duration // no lease ends after it; 0 for no limit
	rest          time.Duration // no lease begins before it
	unread        bool          // its value is not known
	refuse        device.FaultKind
	longest       time.Duration // a longer lease is denied; 0 for no limit
}

// ruleKeys are the keys of a rule. Unlike a Rule they can be copied.
type ruleKeys struct {
	When, Until, On, At, If, Missed string
	For, Every, Resume              time.Duration
	Toggle                          bool
	Follow                          map[string]string
	Hold                            map[string]device.Value
	Do                              []rule.Step
}

// rule returns the rule at a place.
func (k ruleKeys) rule() *rule.Rule {
	return k.of(rule.World{Place: &calendar.Place{Lat: 52.5, Lon: 13.4}})
}

func (k ruleKeys) of(w rule.World) *rule.Rule {
	r := rule.Kind(w).New().(*rule.Rule)
	r.When, r.For, r.Until, r.Hold = k.When, k.For, k.Until, k.Hold
	r.On, r.At, r.Every, r.If, r.Do, r.Missed, r.Resume, r.Toggle, r.Follow = k.On, k.At, k.Every, k.If, k.Do, k.Missed, k.Resume, k.Toggle, k.Follow
	return r
}

const selfID = "rule:test"

func newSim(t *testing.T, r ruleKeys) *sim {
	t.Helper()
	s := &sim{t: t, keys: make(map[string]bool)}
	s.now.Now = time.Second
	s.restart(r)
	return s
}

// restart replaces the Machine by a new one of r; the outputs have no leases then.
func (s *sim) restart(r ruleKeys) {
	s.t.Helper()
	made := r.rule()
	_, err := made.Define()
	if err == nil {
		s.m, err = made.NewMachine(selfID, machinePoints)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.outputs, s.due = make([]simOutput, len(s.m.Outputs())), 0
	for i := range s.outputs {
		s.tellOutput(i, 0)
	}
}

// tell tells a reading; the zero Value is unknown.
func (s *sim) tell(point string, v device.Value, age time.Duration) {
	i := slices.Index(s.m.Points(), point)
	if i < 0 {
		return
	}
	r := rule.Reading{Value: v, Age: age, Known: !v.IsZero() || point == "a/button"}
	if s.log != nil {
		s.log(simTold{i, r})
	}
	s.m.Tell(s.now.Now, i, &r)
}

type (
	simTold struct {
		i int
		r rule.Reading
	}
	simOutputTold struct {
		i    int
		seen time.Duration
		l    rule.Lease
	}
	simDone struct {
		act  rule.Act
		left time.Duration
		err  error
	}
)

// tellOutput tells how an output was a time ago.
func (s *sim) tellOutput(i int, age time.Duration) {
	s.tellLease(i, s.outputs[i], s.now.Now-age)
}

func (s *sim) tellLease(i int, o simOutput, seen time.Duration) {
	l := rule.Lease{Holder: o.holder, Why: o.ended, Rest: max(0, o.rest-s.now.Now), Known: !o.unread}
	if s.log != nil {
		s.log(simOutputTold{i, seen, l})
	}
	s.m.Output(s.now, seen, i, l)
}

// decide has the Machine step until it moves nothing, as live does.
func (s *sim) decide() {
	s.t.Helper()
	for range 4 {
		acts, next := s.m.Step(s.now)
		s.steps++
		if s.log != nil {
			s.log(acts)
		}
		s.due = 0
		if next > 0 {
			s.due = s.now.Now + next
		}
		if len(acts) == 0 {
			return
		}
		for _, a := range slices.Clone(acts) {
			before := s.outputs[a.Output]
			left, err := s.move(a)
			text := fmt.Sprint(s.now.Now-time.Second, " ", strings.TrimPrefix(s.m.Outputs()[a.Output], "a/"), " ", a.Value)
			if a.For > 0 {
				text += fmt.Sprint(" for ", a.For)
			}
			if a.Held {
				text += " held"
			}
			if a.Key != "" {
				text += " " + a.Key
			}
			if err != nil {
				text += " " + string(device.AsFault(err).Kind)
			}
			s.acts = append(s.acts, text)
			if s.log != nil {
				s.log(simDone{a, left, err})
			}
			s.m.Done(s.now, a, left, 0, err)
			if s.outputs[a.Output] != before && !s.late {
				s.tellOutput(a.Output, 0)
			}
		}
	}
	s.due = s.now.Now + time.Second
}

// move is a guard that makes an act.
func (s *sim) move(a rule.Act) (left time.Duration, err error) {
	o := &s.outputs[a.Output]
	switch {
	case a.Held && o.holder != selfID:
		return 0, device.Faultf(device.Expired, "not held any more")
	case a.Value.IsZero():
		o.holder, o.ended = "", ""
		return 0, nil
	case a.Key != "" && s.keys[a.Key]:
		return time.Minute, nil
	case o.refuse != "":
		return 0, device.Faultf(o.refuse, "refused as %s", o.refuse)
	case o.longest > 0 && a.For > o.longest:
		return 0, device.Faultf(device.Denied, "too long")
	case o.holder != "" && o.holder != selfID:
		return 0, device.Faultf(device.Busy, "held by %s", o.holder)
	case s.now.Now < o.rest:
		return 0, device.Faultf(device.Unsafe, "it rests")
	}
	if a.Key != "" {
		s.keys[a.Key] = true
	}
	o.holder, o.ended, o.end = selfID, "", s.now.Now+a.For
	if a.For == 0 {
		o.end = s.now.Now + time.Minute
		if o.longest > 0 {
			o.end = s.now.Now + min(time.Minute, o.longest)
		}
	}
	if o.limit > 0 {
		o.end = min(o.end, o.limit)
	}
	return o.end - s.now.Now, nil
}

// pass has time pass; the Machine steps when it asked for it, and is told when leases end. It
// also steps each time that every has passed, where that is above 0.
func (s *sim) pass(d, every time.Duration) {
	s.t.Helper()
	for end := s.now.Now + d; ; {
		next := end
		if s.due > 0 {
			next = min(next, s.due)
		}
		if every > 0 {
			next = min(next, s.now.Now+every)
		}
		for _, o := range s.outputs {
			if o.holder != "" {
				next = min(next, max(o.end, s.now.Now))
			}
		}
		s.now.Wall = s.now.Wall.Add(next - s.now.Now)
		s.now.Now = next
		over := false
		for i := range s.outputs {
			if o := &s.outputs[i]; o.holder != "" && o.end <= s.now.Now {
				o.holder, o.ended, over = "", "its lease was over", true
				if o.limit > 0 && o.limit == o.end {
					o.ended, o.limit, o.rest = "its max_on was spent", 0, s.now.Now+10*time.Second
				}
				if !s.late {
					s.tellOutput(i, 0)
				}
			}
		}
		if over || every > 0 || s.due > 0 && s.now.Now >= s.due {
			s.decide()
		}
		if s.now.Now >= end {
			return
		}
	}
}

// do does what a line of a script says; what has changed is told, and the Machine steps.
func (s *sim) do(line string) {
	s.t.Helper()
	word, rest, _ := strings.Cut(line, " ")
	o := &s.outputs[0]
	length, _ := time.ParseDuration(rest)
	switch word {
	case "wait":
		s.pass(length, 0)
		return
	case "t":
		var n float64
		if _, err := fmt.Sscan(rest, &n); err != nil {
			s.tell("a/t", device.Value{}, 0)
		} else {
			s.tell("a/t", device.Number(n), 0)
		}
	case "door":
		s.tell("a/door", map[string]device.Value{"on": on, "off": off}[rest], 0)
	case "nothing":
		s.tell("a/button", device.Value{}, 0)
	case "press":
		s.tell("a/button", device.Text("pressed"), length)
	case "button": // as a line that is on while it is pressed
		s.tell("a/button", map[string]device.Value{"on": on, "off": off}[rest], 0)
	case "clock":
		s.now.Wall, s.now.Sure = time.Time{}, false
		if rest != "" {
			wall, err := time.ParseInLocation("2006-01-02 15:04:05", rest, berlin(s.t))
			if err != nil {
				s.t.Fatal(err)
			}
			s.now.Wall, s.now.Sure = wall, true
		}
	case "take": // over
		o.holder, o.ended, o.end = rest, "", s.now.Now+time.Minute
		s.tellOutput(0, 0)
	case "release":
		o.holder, o.ended = "", ""
		s.tellOutput(0, 0)
	case "end":
		o.holder, o.ended = "", rest
		s.tellOutput(0, 0)
	case "steal": // as take, and the Machine is not told yet
		o.holder, o.ended, o.end = rest, "", s.now.Now+time.Minute
		return
	case "drop": // as release
		o.holder, o.ended = "", ""
		return
	case "told":
		s.tellOutput(0, 0)
	case "refuse":
		o.refuse = device.FaultKind(rest)
		return
	case "longest":
		o.longest = length
		return
	case "limit":
		o.limit = s.now.Now + length
		return
	case "rest":
		o.rest = s.now.Now + length
		s.tellOutput(0, 0)
	default:
		s.t.Fatalf("no such line: %s", line)
	}
	s.decide()
}

func berlin(t testing.TB) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func holdHeater(when string) ruleKeys {
	return ruleKeys{When: when, Hold: map[string]device.Value{"a/heater": on}}
}

func doHeater(length time.Duration) []rule.Step {
	return []rule.Step{{Set: map[string]device.Value{"a/heater": on}, For: length}}
}
