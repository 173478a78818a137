package routine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/rule"
	"agentsite/agents/rule/expr"
	"agentsite/agents/task"
	"agentsite/device"
)

const (
	// KindName is the name of the kind of agent, and so the beginning of a routine's principal.
	KindName = "routine"
	// rank is above those of rules: somebody asked for the steps just now.
	rank = 200
	// maxSteps bounds the steps, and maxDone their moves, texts and conditions.
	maxSteps, maxDone = 32, 60
	maxOutputs        = 16 // of a step
	maxOptions        = 8
	maxText           = 500
	maxLength         = 24 * time.Hour
	// maxRest limits a step's wait for a limit that refuses it. restSlack is added to the time that the
	// guard names, which has milliseconds.
	maxRest, restSlack = time.Minute, 50 * time.Millisecond
	// notify is the one agent of this site that a step asks: it tells a text, and asks nobody.
	notify = "notify"
	// askTime is how long the task of another site's agent may take by default.
	askTime = time.Hour
)

// Kind returns the entry of the list of kinds.
func Kind(w rule.World) agent.Kind {
	return agent.Kind{Name: KindName, Doc: "makes its steps once when somebody asks: moves outputs, waits, asks and shows", New: func() agent.Agent { return &Routine{world: w} }}
}

// Routine is a routine as its owner wrote it.
type Routine struct {
	Steps []Step `json:"steps" jsonschema:"what is done, one after the other"`

	world   rule.World
	working atomic.Pointer[string] // the task that it works on; nil for none

	held agent.Held
	cut  cuts
}

// Step is a step of a routine. It sets, asks, shows, waits, or has an agent of another site work.
type Step struct {
	If      string                  `json:"if,omitempty" jsonschema:"the condition under which the step is made; it is left out where that is false or unknown"`
	Set     map[string]device.Value `json:"set,omitempty" jsonschema:"the outputs with their values, such as valve1/valve: on"`
	For     time.Duration           `json:"for,omitempty" jsonschema:"how long they are held there; as long as the output has it when not written"`
	Wait    string                  `json:"wait,omitempty" jsonschema:"a time to wait, such as 10s; or true, with for: until that time has passed"`
	Ask     string                  `json:"ask,omitempty" jsonschema:"a question to the caller that asked for the routine"`
	Options []string                `json:"options,omitempty" jsonschema:"the answers that there are, the first one goes on"`
	Else    string                  `json:"else,omitempty" jsonschema:"stop ends the routine where the condition is not true, or another answer than the first is given"`
	Show    map[string]string       `json:"show,omitempty" jsonschema:"the displays with their texts"`
	Agent   string                  `json:"agent,omitempty" jsonschema:"an agent of another site, such as shed/tidy, that is asked for a task; the next step comes when that is completed. Or notify, which tells a text:"`
	Skill   string                  `json:"skill,omitempty" jsonschema:"which of its skills, if it has several"`
	Text    string                  `json:"text,omitempty" jsonschema:"what is asked of it, if it reads"`
	Within  time.Duration           `json:"within,omitempty" jsonschema:"how long that may take; 1h when not written"`
}

// compiled is a step that was checked.
type compiled struct {
	Step
	program *expr.Program // nil for none
	wait    time.Duration
	hold    bool     // the next step comes when the outputs have returned to safe
	targets []string // of Set and Show, sorted
}

// mistake is a mistake in a step, at the line of its key.
func mistake(step int, key, format string, args ...any) error {
	at := "steps[" + strconv.Itoa(step) + "]"
	if key != "" {
		at += "." + key
	}
	return &agent.Mistake{Key: at, Err: fmt.Errorf(format, args...)}
}

// Define implements agent.Defined. A routine moves outputs when it is asked only, so that it
// declares none: two of them may move the same.
func (r *Routine) Define() (agent.Definition, error) {
	steps, err := r.compile(r.world.Known(nil))
	if err != nil {
		return agent.Definition{}, err
	}
	d := agent.Definition{Rank: rank, Fixed: true}
	known := r.world.Known(nil)
	for i, s := range steps {
		d.Calls = append(d.Calls, s.calls(i, known)...)
		points := s.targets
		if s.program != nil {
			points = append(s.program.Points(), points...)
		}
		for _, address := range points {
			if !slices.Contains(d.Reads, address) {
				d.Reads = append(d.Reads, address)
			}
		}
	}
	return d, nil
}

// calls returns the calls of step i, without returns to safe.
func (s *compiled) calls(i int, known rule.Points) (all []agent.Call) {
	at := "steps[" + strconv.Itoa(i) + "]."
	if s.Agent != "" {
		all = append(all, agent.Call{Key: at + "agent", Ask: agents.Ask{Op: agents.OpAsk, Points: []string{s.Agent}}})
	}
	for _, address := range s.targets {
		c := agent.Call{Key: at + "show." + address, Ask: agents.Ask{Op: agents.OpShow, Points: []string{address}}}
		if s.Set == nil {
			all = append(all, c)
			continue
		}
		c.Key = at + "set." + address
		c.Ask.Op, c.Ask.Value, c.Ask.For = agents.OpMove, s.Set[address], s.For
		if p, _ := known.Output(address, s.Set[address]); p != nil {
			if c.Longest = agent.Seconds(p.MaxSeconds); p.Safe == c.Ask.Value {
				continue
			}
		}
		all = append(all, c)
	}
	return all
}

// compile checks the steps against the points that are known.
func (r *Routine) compile(known rule.Points) ([]compiled, error) {
	if len(r.Steps) == 0 || len(r.Steps) > maxSteps {
		return nil, &agent.Mistake{Key: "steps", Err: fmt.Errorf("takes 1 to %d steps, such as - { set: { valve1/valve: on }, for: 5m, wait: true }", maxSteps)}
	}
	all := make([]compiled, len(r.Steps))
	done, asks, long := 0, 0, time.Duration(0)
	for i, s := range r.Steps {
		c := compiled{Step: s}
		if err := c.checkKeys(i); err != nil {
			return nil, err
		}
		if s.If != "" {
			program, err := known.Compile(s.If, new(expr.Uses))
			if err != nil {
				return nil, &agent.Mistake{Key: "steps[" + strconv.Itoa(i) + "].if", Err: err}
			}
			if len(program.Windows()) > 0 {
				return nil, mistake(i, "if", "a routine looks once, so that it knows no mean, least, greatest, change and count; write a rule for them")
			}
			c.program = program
			done++
		}
		if c.hold {
			done++
		}
		for _, address := range slices.Sorted(maps.Keys(s.Set)) {
			if _, err := known.Output(address, s.Set[address]); err != nil {
				return nil, mistake(i, "set."+address, "%w", err)
			}
			c.targets = append(c.targets, address)
		}
		for _, address := range slices.Sorted(maps.Keys(s.Show)) {
			if err := known.Display(address); err != nil {
				return nil, mistake(i, "show."+address, "%w", err)
			}
			if text := s.Show[address]; text == "" || len(text) > maxText {
				return nil, mistake(i, "show."+address, "takes a text of at most %d characters", maxText)
			}
			c.targets = append(c.targets, address)
		}
		if s.Agent == notify {
			done++
		} else if s.Agent != "" {
			if site, _, _ := strings.Cut(s.Agent, "/"); !slices.Contains(r.world.Open, site) {
				return nil, mistake(i, "agent", "there is no site %.40q under agents: with kind: remote%s", site, device.Suggest(site, r.world.Open, "site"))
			}
			done++
		}
		if done += len(c.targets); done > maxDone {
			return nil, mistake(i, "", "the steps of a routine move, show, ask agents and look at most %d times", maxDone)
		}
		if s.Ask != "" {
			asks++
		}
		if asks > task.MaxAsks {
			return nil, mistake(i, "ask", "a routine asks its caller at most %d questions", task.MaxAsks)
		}
		if long += c.wait + c.Within; long > task.MaxTime {
			return nil, mistake(i, cmp.Or(key("within", s.Within != 0), key("agent", s.Agent != ""), "wait"), "the steps of a routine wait for %v in all at most, as a task ends then", device.FormatDuration(task.MaxTime))
		}
		all[i] = c
	}
	return all, nil
}

// checkKeys checks which keys stand together, and the values that need no points.
func (c *compiled) checkKeys(i int) error {
	whole := strings.ToLower(c.Wait) == "true" || strings.ToLower(c.Wait) == "on"
	if c.Wait != "" && !whole {
		var err error
		if c.wait, err = time.ParseDuration(c.Wait); err != nil || c.wait <= 0 || c.wait > maxLength {
			return mistake(i, "wait", "takes a time up to %v such as 10s, or true", device.FormatDuration(maxLength))
		}
	}
	kinds := 0
	for _, is := range []bool{c.Set != nil, c.Ask != "", c.Show != nil, c.Agent != "", c.wait > 0} {
		if is {
			kinds++
		}
	}
	switch {
	case kinds == 0 && !whole && c.If == "":
		return mistake(i, "", "a step sets, asks, shows, waits, or names an agent of another site, such as { set: { valve1/valve: on }, for: 5m, wait: true }")
	case kinds > 1:
		return mistake(i, cmp.Or(key("ask", c.Ask != ""), key("show", c.Show != nil), key("agent", c.Agent != ""), "wait"), "a step does one thing; write another step")
	case kinds == 0 && c.Else == "" && !whole:
		return mistake(i, "if", "the step does nothing where this is true; write set:, or else: stop")
	case c.Set != nil && (len(c.Set) == 0 || len(c.Set) > maxOutputs):
		return mistake(i, "set", "takes 1 to %d outputs with their values, such as valve1/valve: on", maxOutputs)
	case c.For != 0 && c.Set == nil:
		return mistake(i, "for", "for: belongs to set:")
	case c.For < 0 || c.For > maxLength:
		return mistake(i, "for", "takes a time up to %v", device.FormatDuration(maxLength))
	case whole && (c.Set == nil || c.For == 0):
		return mistake(i, "wait", "wait: true belongs to set: with for:; write a time, such as wait: 10s")
	case c.Options != nil && c.Ask == "":
		return mistake(i, "options", "options: belongs to ask:")
	case c.Options != nil && (len(c.Options) < 2 || len(c.Options) > maxOptions):
		return mistake(i, "options", "takes 2 to %d answers", maxOptions)
	case c.Else != "" && c.Else != "stop":
		return mistake(i, "else", "else: takes stop, or is left out")
	case c.Else != "" && (c.If == "") == (c.Ask == ""):
		return mistake(i, "else", "else: belongs to if: or to ask:, and to one of them in a step")
	case c.Else != "" && c.Ask != "" && c.Options == nil:
		return mistake(i, "else", "else: needs options:, of which the first goes on")
	case c.Show != nil && len(c.Show) == 0:
		return mistake(i, "show", "takes a display with its text, such as panel/text: watered")
	}
	if err := c.checkAgent(i); err != nil {
		return err
	}
	if c.Ask != "" && !plain(c.Ask, maxText) {
		return mistake(i, "ask", "takes a question of at most %d characters", maxText)
	}
	for k, option := range c.Options {
		if !plain(option, 40) || slices.Index(c.Options, option) < k {
			return mistake(i, "options", "takes different answers of 1 to 40 characters")
		}
	}
	if whole {
		c.wait, c.hold = c.For, true
	}
	return nil
}

// checkAgent checks the keys of a step that asks an agent of another site.
func (c *compiled) checkAgent(i int) error {
	site, name, _ := strings.Cut(c.Agent, "/")
	switch {
	case c.Agent == "" && (c.Skill != "" || c.Text != "" || c.Within != 0):
		return mistake(i, cmp.Or(key("skill", c.Skill != ""), key("text", c.Text != ""), "within"), "it belongs to agent:, with an agent of another site, such as agent: shed/tidy")
	case c.Agent == notify && (c.Skill != "" || c.Within != 0 || c.Text == ""):
		return mistake(i, "agent", "notify takes a text: and nothing else")
	case c.Agent == "":
		return nil
	case c.Agent != notify && (device.CheckName(site) != nil || device.CheckName(name) != nil):
		return mistake(i, "agent", "%.60q is no agent of another site; write the site's name here and the agent's name there, such as shed/tidy", c.Agent)
	case c.Skill != "" && device.CheckName(c.Skill) != nil:
		return mistake(i, "skill", "%.60q is no skill's name", c.Skill)
	case c.Text != "" && !plain(c.Text, maxText):
		return mistake(i, "text", "takes at most %d characters", maxText)
	case c.Within < 0 || c.Within > 0 && c.Within < time.Second || c.Within > maxLength:
		return mistake(i, "within", "takes a time from 1s to %v", device.FormatDuration(maxLength))
	}
	if c.Agent != notify {
		c.Within = cmp.Or(c.Within, askTime)
	}
	return nil
}

func key(name string, is bool) string {
	if is {
		return name
	}
	return ""
}

// plain reports whether a text has characters, not too many, and none that is not shown.
func plain(text string, most int) bool {
	return text != "" && len(text) <= most && !strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) })
}

// Run implements agent.Agent. A routine does nothing by itself. When it is paused or goes, leases
// that its tasks left are released.
func (r *Routine) Run(ctx context.Context, self agents.Principal, site agents.Site) error {
	<-ctx.Done()
	r.held.Release(ctx, self, site)
	return nil
}

// Report implements agent.Reporting.
func (r *Routine) Report(context.Context) agent.Report {
	if id := r.working.Load(); id != nil {
		return agent.Report{State: agent.Running, Says: "works on task " + *id}
	}
	return agent.Report{State: agent.Idle, Says: "waits to be asked"}
}

// Skills implements agent.Worker.
func (r *Routine) Skills() []task.Skill {
	var long time.Duration
	for i, s := range r.Steps {
		c := compiled{Step: s}
		if c.checkKeys(i) == nil {
			long += c.wait + c.Within
		}
	}
	return []task.Skill{{ID: "run", Description: "makes its steps once", Seconds: long.Seconds()}}
}
