package routine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/rule"
	"agentsite/agents/rule/calendar"
	"agentsite/agents/rule/expr"
	"agentsite/agents/task"
	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Result lists what a routine moved and asked.
type Result struct {
	Moved   []*Moved `json:"moved"`
	Asked   []Asked  `json:"asked,omitzero"`
	Stopped string   `json:"stopped,omitzero"` // why it did not come to its end
}

// Moved is a move of a routine, as it was observed.
type Moved struct {
	Output  string       `json:"output"`
	Value   device.Value `json:"value"`
	Time    string       `json:"time"`
	Seconds float64      `json:"seconds,omitzero"`      // how long it was held, so far; 0 where that is not known
	Left    float64      `json:"seconds_left,omitzero"` // how long it is still held, at the end of the routine
	Ended   string       `json:"ended,omitzero"`        // why it was not held for as long as it was to be
	Effect  string       `json:"effect,omitzero"`       // as in agents.Output, at the end of the hold or of the routine
}

// Asked is a task that an agent of another site completed for a routine. Its result is in the step
// only, for people: another site wrote it, and models read this.
type Asked struct {
	Agent string `json:"agent"`
	Task  string `json:"task"` // its ID there
}

// run is a routine at work. After a restart it goes through its steps once more, and makes those
// that were not begun before.
type run struct {
	*Routine
	self agents.Principal
	site agents.Site
	work task.Work

	made    []task.Step // before the restart
	next    int         // in made, and beyond
	asked   int         // the step whose question waited then; 0 for none
	from    time.Time   // when the last step was made: from then on a wait counts
	at      string      // and by the site's clock
	outputs *follower
	res     Result
}

// Work implements agent.Worker.
func (r *Routine) Work(ctx context.Context, self agents.Principal, site agents.Site, w task.Work) (jsontext.Value, error) {
	t := w.Task()
	r.working.Store(&t.ID)
	defer r.working.CompareAndSwap(&t.ID, nil)
	if t.Text != "" {
		return nil, device.Faultf(device.Invalid, "a routine makes the steps that its owner wrote, and reads no text; ask without one")
	}
	list, err := r.points(ctx, self, site)
	if err != nil {
		return nil, err
	}
	var away []string
	for _, missed := range list.Missed {
		away = append(away, missed.Site)
	}
	steps, err := r.compile(r.world.Known(list.Points, away...))
	if err != nil {
		var wrong *agent.Mistake
		if errors.As(err, &wrong) {
			err = device.Faultf(device.Invalid, "%s: %w", wrong.Key, wrong.Err)
		}
		return nil, err
	}
	run := &run{
		Routine: r, self: self, site: site, work: w, made: t.Steps, from: time.Now(),
		outputs: newFollower(self.ID), res: Result{Moved: []*Moved{}},
	}
	var outputs []string
	for _, s := range steps {
		for output := range s.Set {
			if !slices.Contains(outputs, output) {
				outputs = append(outputs, output)
			}
		}
	}
	if len(outputs) > 0 {
		var following sync.WaitGroup
		defer following.Wait()
		watching, end := context.WithCancel(ctx)
		defer end()
		following.Go(func() { run.outputs.follow(watching, self, site, outputs) })
	}
	if t.Question != nil {
		run.asked, _ = strconv.Atoi(t.Question.ID)
	}
	for i := range steps {
		if err := run.step(ctx, i, &steps[i]); err != nil {
			if ctx.Err() != nil { // it may go on, after a pause
				r.cut.add(run.outputs)
			}
			return nil, err
		}
		if run.res.Stopped != "" {
			break
		}
	}
	run.outputs.finish()
	return json.Marshal(run.res, json.Deterministic(true))
}

// points lists the points of the sites. A routine that names none needs no permission to see any.
func (r *Routine) points(ctx context.Context, self agents.Principal, site agents.Site) (list agents.PointList, err error) {
	d, err := r.Define()
	if err == nil && len(d.Reads) == 0 {
		return agents.PointList{Points: []agents.Point{}}, nil
	}
	list, err = site.Points(ctx, self, agents.SiteRequest{})
	if list.Points == nil {
		list.Points = []agents.Point{}
	}
	return list, err
}

// step makes one step.
func (r *run) step(ctx context.Context, i int, s *compiled) error {
	if s.program != nil {
		for _, address := range s.targets { // the condition is that of the time of the move
			if err := r.rest(ctx, s, address); err != nil {
				return err
			}
		}
		holds, err := r.holds(ctx, s.program)
		if err != nil {
			return err
		}
		if !holds {
			if s.Else != "" {
				r.res.Stopped = fmt.Sprintf("step %d: %s is not true", i+1, s.If)
			}
			return nil
		}
	}
	var held []*hold
	for _, address := range s.targets {
		if err := r.rest(ctx, s, address); err != nil {
			return err
		}
		var out agents.Output
		replayed := r.next < len(r.made)
		if replayed { // else nothing is known of it
			json.Unmarshal(r.made[r.next].Result, &out)
		}
		err := r.once(func() (err error) {
			if s.Show != nil {
				return r.site.Show(ctx, r.self, agents.ShowRequest{Display: address, Text: s.Show[address]})
			}
			if out, err = r.site.Move(ctx, r.self, s.move(address)); err == nil {
				r.held.Note(address, agent.Seconds(out.Left))
			}
			return err
		})
		if err != nil {
			return err
		}
		if s.Set != nil {
			m := &Moved{Output: address, Value: s.Set[address], Time: r.at}
			r.res.Moved = append(r.res.Moved, m)
			if out.Left > 0 {
				left := agent.Seconds(out.Left)
				o := &hold{moved: m, from: r.from, left: left, asked: s.For, state: out.State, replayed: replayed}
				if e, ok := r.cut.take(out.State); ok && replayed {
					m.Seconds, m.Ended, o.over = e.Seconds, e.Ended, true
				} else {
					r.outputs.begin(o)
				}
				held = append(held, o)
			}
		}
	}
	if s.Agent == notify {
		if err := r.once(func() error { return r.tell(ctx, s.Text) }); err != nil {
			return err
		}
	} else if s.Agent != "" {
		if err := r.askAgent(ctx, s); err != nil {
			return err
		}
	}
	if s.Ask != "" {
		answer, err := r.work.Input(ctx, task.Question{ID: strconv.Itoa(i + 1), Text: s.Ask, Options: s.Options})
		if err != nil {
			return err
		}
		if r.next >= len(r.made) {
			r.from = time.Now()
		}
		if s.Else != "" && answer != s.Options[0] {
			r.res.Stopped = fmt.Sprintf("step %d: the answer was %s", i+1, answer)
		}
	}
	if s.hold && held != nil {
		return r.hold(ctx, s.wait, held)
	}
	if r.next < len(r.made) || i+1 < r.asked { // it was over before the restart
		return nil
	}
	return r.wait(ctx, s.wait)
}

// move returns the move of an output of the step.
func (s *compiled) move(output string) agents.MoveRequest {
	m := agents.MoveRequest{Output: output, Value: s.Set[output]}
	if s.For > 0 {
		seconds := s.For.Seconds()
		m.For = &seconds
	}
	return m
}

// trying is a Site that tells why a move would be refused now, as node.Node is.
type trying interface {
	Try(ctx context.Context, p agents.Principal, r agents.MoveRequest) error
}

// rest waits while a limit refuses a move for a short time, such as the gap of an interlock after
// another task. Any other refusal, such as by a holder, is that of the move itself.
func (r *run) rest(ctx context.Context, s *compiled, output string) error {
	site, ok := r.site.(trying)
	if !ok || s.Set == nil || r.next < len(r.made) {
		return nil
	}
	m := s.move(output)
	defer r.work.Say("")
	for until := time.Now().Add(maxRest); ; {
		err := site.Try(ctx, r.self, m)
		if err == nil {
			return nil
		}
		f := device.AsFault(err)
		if f.After <= 0 || f.Kind == device.Busy || time.Now().Add(f.After).After(until) {
			return nil
		}
		r.work.Say("waits: " + f.Msg)
		if err := device.Sleep(ctx, f.After+restSlack); err != nil {
			return err
		}
	}
}

// askAgent has an agent of another site work. A step of before that was cut off while it waited goes
// on waiting.
func (r *run) askAgent(ctx context.Context, s *compiled) error {
	asked := Asked{Agent: s.Agent}
	if at := r.next; at < len(r.made) && (at+1 < len(r.made) || r.made[at].Outcome != "") {
		if err := r.once(nil); err != nil {
			return err
		}
		if err := json.Unmarshal(r.made[at].Result, &asked); err != nil {
			return device.Faultf(device.Internal, "step %d: what came of it cannot be read: %w", at+1, err)
		}
		r.res.Asked = append(r.res.Asked, asked)
		return nil
	}
	work, ok := r.work.(task.Asker)
	if !ok {
		return device.Faultf(device.Unavailable, "agents of other sites cannot be asked here")
	}
	r.next++
	t, err := work.Ask(ctx, task.Request{Agent: s.Agent, Skill: s.Skill, Text: s.Text, Seconds: new(s.Within.Seconds())})
	r.from = time.Now()
	asked.Task = t.ID
	r.res.Asked = append(r.res.Asked, asked)
	return err
}

// tell has the site's notifications tell a text, and does not wait for that.
func (r *run) tell(ctx context.Context, text string) error {
	if r.world.Ask == nil {
		return device.Faultf(device.Unavailable, "nobody can be told here")
	}
	_, err := r.work.Step(ctx, "tell "+text, func(ctx context.Context, key string) (any, error) {
		return nil, r.world.Ask(ctx, r.self, notify, text, key)
	})
	return err
}

// once makes a step of the task, if it was not made before. A step of before that failed
// fails again: it is not repeated.
func (r *run) once(do func() error) error {
	if at := r.next; at < len(r.made) {
		r.next++
		s := r.made[at]
		if s.Outcome != "done" {
			return device.Faultf(device.FaultKind(s.Outcome), "%s: %s", s.Does, s.Says)
		}
		if r.at = s.Time; !s.At.IsZero() {
			r.from = s.At
		}
		return nil
	}
	r.next++
	err := do()
	r.from = time.Now()
	now := r.from
	if r.world.Now != nil {
		now, _ = r.world.Now()
	}
	r.at = now.UTC().Format("2006-01-02T15:04:05.000Z")
	return err
}

// wait waits until a time has passed since the last step, by Step.At.
func (r *run) wait(ctx context.Context, length time.Duration) error {
	if length == 0 {
		return nil
	}
	until := r.from.Add(length)
	r.from = until
	left := time.Until(until)
	if left <= 0 {
		return nil
	}
	r.work.Say(fmt.Sprintf("waits %v", device.FormatDuration(left.Round(time.Second))))
	defer r.work.Say("")
	return device.Sleep(ctx, left)
}

// holds evaluates a condition as a step, so that its result survives a restart. An unknown
// condition does not hold.
func (r *run) holds(ctx context.Context, p *expr.Program) (holds bool, err error) {
	if at := r.next; at < len(r.made) {
		err = r.once(nil)
		return err == nil && string(r.made[at].Result) == "true", err
	}
	err = r.once(func() error {
		_, err := r.work.Step(ctx, "if "+p.String(), func(ctx context.Context, _ string) (any, error) {
			e := &env{points: p.Points(), place: r.world.Place}
			e.now, e.sure = r.world.Now()
			if len(e.points) > 0 {
				all, err := r.site.Read(ctx, r.self, agents.ReadRequest{Points: e.points})
				if err != nil {
					return nil, err
				}
				e.readings = all.Readings
			}
			truth, _ := p.Eval(e)
			holds = truth == expr.True
			return holds, nil
		})
		return err
	})
	return holds, err
}

// env holds the values that a condition is evaluated over.
type env struct {
	points   []string // of the condition
	readings []agents.Reading
	place    *calendar.Place
	now      time.Time
	sure     bool
}

func (e *env) Reading(i int) (v device.Value, age time.Duration, known bool) {
	k := slices.IndexFunc(e.readings, func(r agents.Reading) bool { return r.Point == e.points[i] })
	if k < 0 || e.readings[k].Time == "" {
		return v, -1, false
	}
	r := e.readings[k]
	return r.Value, agent.Seconds(r.Age), r.Quality == device.Good
}

func (e *env) Window(int) (float64, bool) { return 0, false }
func (e *env) Clock() (time.Time, bool)   { return rule.Local(e.now), e.sure }
func (e *env) Sun() (rise, set time.Time, known bool) {
	if !e.sure || e.place == nil {
		return rise, set, false
	}
	rise, set = e.place.Day(rule.Local(e.now))
	return rise, set, true
}
