package routine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/rule"
	"agentsite/agents/task"
	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

var garden = []agents.Point{
	{Point: "valve1/valve", Kind: device.KindSwitch, Safe: device.Bool(false)},
	{Point: "valve2/valve", Kind: device.KindSwitch, Safe: device.Bool(false)},
	{Point: "soil/moisture", Kind: device.KindMeasurement, Unit: "%"},
	{Point: "panel/text", Kind: device.KindText},
}

func on(address string) map[string]device.Value {
	return map[string]device.Value{address: device.Bool(true)}
}

// beds is the routine of the documentation.
func beds() *Routine {
	return &Routine{
		world: rule.World{Now: func() (time.Time, bool) { return time.Now(), true }, Points: garden},
		Steps: []Step{
			{Set: on("valve1/valve"), For: 5 * time.Minute, Wait: "true"},
			{Wait: "10s"},
			{If: "soil/moisture < 40 %", Set: on("valve2/valve"), For: 5 * time.Minute, Wait: "true"},
			{Ask: "Is the tank full?", Options: []string{"yes", "no"}, Else: "stop"},
			{Show: map[string]string{"panel/text": "watered"}},
		},
	}
}

// bench is a site and a task for one run of a routine. Each call that acts is a step, as in tasks.
type bench struct {
	agents.Site
	task     task.Task
	moisture float64
	quality  device.Quality
	answer   string // "" for none: then Input waits
	done     []string
	fails    error // of the next move

	mu     sync.Mutex
	leases map[string]lease
	state  int64
	told   chan struct{} // closed when a lease has changed
}

var errEnd = errors.New("the site ends")

func (b *bench) Points(context.Context, agents.Principal, agents.SiteRequest) (agents.PointList, error) {
	return agents.PointList{Points: garden}, nil
}

func (b *bench) Read(_ context.Context, _ agents.Principal, r agents.ReadRequest) (all agents.Readings, err error) {
	for _, p := range r.Points {
		all.Readings = append(all.Readings, agents.Reading{Point: p, Value: device.Number(b.moisture), Unit: "%", Time: "x", Quality: b.quality})
	}
	return all, nil
}

func (b *bench) Task() task.Task { t := b.task; t.Steps = slices.Clone(t.Steps); return t }
func (b *bench) Say(string)      {}

func (b *bench) Step(ctx context.Context, does string, do func(context.Context, string) (any, error)) (jsontext.Value, error) {
	if ctx.Err() != nil {
		return nil, errEnd
	}
	b.task.Steps = append(b.task.Steps, task.Step{Does: does, Time: time.Now().UTC().Format(time.RFC3339), At: time.Now()})
	s := &b.task.Steps[len(b.task.Steps)-1]
	v, err := do(ctx, "")
	if s.Outcome = "done"; err != nil {
		s.Outcome = string(device.AsFault(err).Kind)
	}
	s.Result, _ = json.Marshal(v)
	return s.Result, err
}

func (b *bench) Input(ctx context.Context, q task.Question) (string, error) {
	if b.answer == "" {
		b.task.Question = &q
		<-ctx.Done()
		return "", errEnd
	}
	return b.answer, nil
}

func (b *bench) Move(ctx context.Context, p agents.Principal, r agents.MoveRequest) (agents.Output, error) {
	if r.Value.IsZero() {
		if r.Held && ctx.Err() == nil {
			b.done = append(b.done, r.Output+" released")
		}
		return agents.Output{}, nil
	}
	var out agents.Output
	_, err := b.Step(ctx, "set "+r.Output, func(context.Context, string) (any, error) {
		if b.fails != nil {
			return nil, b.fails
		}
		b.done = append(b.done, r.Output+" "+device.FormatDuration(time.Duration(*r.For*1e9)))
		b.mu.Lock()
		defer b.mu.Unlock()
		length := time.Duration(*r.For * 1e9)
		b.lease(r.Output, lease{detail(agents.OutputState{Holder: p.ID}), time.Now().Add(length)})
		out = agents.Output{Left: *r.For, State: b.state}
		time.AfterFunc(length, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.leases[r.Output].State == out.State {
				b.lease(r.Output, lease{OutputDetail: detail(agents.OutputState{Why: "its lease was over"})})
			}
		})
		return out, nil
	})
	return out, err
}

func (b *bench) Show(ctx context.Context, _ agents.Principal, r agents.ShowRequest) error {
	_, err := b.Step(ctx, "show", func(context.Context, string) (any, error) {
		b.done = append(b.done, r.Text)
		return nil, nil
	})
	return err
}

// TestBeds: the steps are made in order, with their times, and what they did is the result.
func TestBeds(t *testing.T) {
	for name, tt := range map[string]struct {
		b       *bench
		done    string
		length  time.Duration
		stopped bool
	}{
		"dry":     {&bench{moisture: 30, quality: device.Good, answer: "yes"}, "valve1/valve 5m, valve2/valve 5m, watered", 10*time.Minute + 10*time.Second, false},
		"wet":     {&bench{moisture: 50, quality: device.Good, answer: "yes"}, "valve1/valve 5m, watered", 5*time.Minute + 10*time.Second, false},
		"unknown": {&bench{moisture: 30, quality: device.Stale, answer: "yes"}, "valve1/valve 5m, watered", 5*time.Minute + 10*time.Second, false},
		"no":      {&bench{moisture: 50, quality: device.Good, answer: "no"}, "valve1/valve 5m", 5*time.Minute + 10*time.Second, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, r := time.Now(), beds()
			tt.b.task.ID = "x"
			time.AfterFunc(time.Minute, func() {
				if got := r.Report(t.Context()); got.State != agent.Running || got.Says != "works on task x" {
					t.Errorf("%+v", got)
				}
			})
			text, err := r.Work(t.Context(), self, tt.b, tt.b)
			if got := r.Report(t.Context()); got.State != agent.Idle {
				t.Errorf("%+v", got)
			}
			var res Result
			if err := errors.Join(err, json.Unmarshal(text, &res)); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(tt.b.done, ", "); got != tt.done || time.Since(began) != tt.length || (res.Stopped != "") != tt.stopped {
				t.Errorf("%s: %s in %v: %s", name, got, time.Since(began), text)
			}
			if res.Moved[0].Output != "valve1/valve" || res.Moved[0].Time != began.UTC().Format("2006-01-02T15:04:05.000Z") || res.Moved[0].Seconds != 300 {
				t.Errorf("%s: %s", name, text)
			}
		})
	}
}

var self = agents.Principal{ID: "routine:beds"}

// TestClockSet: a wait over a restart or a pause counts from when its step was made, whatever the clock
// showed then; where that is not known, from the restart.
func TestClockSet(t *testing.T) {
	for _, known := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ahead := time.Duration(0)
			r := beds()
			r.world.Now = func() (time.Time, bool) { return time.Now().Add(ahead), true }
			r.Steps = []Step{{Set: on("valve1/valve"), For: time.Minute}, {Wait: "30m"}, {Set: on("valve2/valve"), For: time.Minute}}
			b := &bench{}
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := r.Work(ctx, self, b, b); err == nil {
				t.Fatal("it does not wait")
			}
			if !known {
				b.task.Steps[0].At = time.Time{}
				began = time.Now()
			}
			ahead = 6 * 24 * time.Hour
			if _, err := r.Work(t.Context(), self, b, b); err != nil || time.Since(began) != 30*time.Minute {
				t.Errorf("it waited for %v: %v", time.Since(began), err)
			}
		})
	}
}

// Ask completes the agent's task after a minute; an interrupted step goes on.
func (b *bench) Ask(ctx context.Context, r task.Request) (t task.Task, err error) {
	n := len(b.task.Steps)
	if n == 0 || b.task.Steps[n-1].Outcome != "" {
		b.task.Steps = append(b.task.Steps, task.Step{Does: "ask", Time: time.Now().UTC().Format(time.RFC3339), At: time.Now()})
		b.done = append(b.done, r.Agent+" "+r.Skill+" "+r.Text+" "+device.FormatDuration(time.Duration(*r.Seconds*1e9)))
		n++
	}
	s := &b.task.Steps[n-1]
	if device.Sleep(ctx, time.Minute) != nil {
		return t, errEnd
	}
	if s.Outcome = "done"; b.fails != nil {
		s.Outcome = string(device.AsFault(b.fails).Kind)
		return t, b.fails
	}
	s.Result = jsontext.Value(`{"task":"T1","result":"for people"}`)
	return task.Task{ID: "T1", Result: jsontext.Value(`"for people"`)}, nil
}

// TestAgent: a step that asks an agent of another site waits for its task, over restarts too, and
// the next steps follow. Its result is not in the routine's.
func TestAgent(t *testing.T) {
	for cut := time.Second; cut < 4*time.Minute; cut += 13 * time.Second {
		synctest.Test(t, func(t *testing.T) {
			r := beds()
			r.world.Open = []string{"shed"}
			r.Steps = []Step{
				{Set: on("valve1/valve"), For: time.Minute, Wait: "true"}, {Agent: "shed/tidy", Skill: "sweep", Text: "the floor", Within: 5 * time.Minute},
				{Wait: "1m"}, {Agent: "shed/lock"}, {Set: on("valve2/valve"), For: time.Minute},
			}
			if s := r.Skills(); s[0].Seconds != 120+300+3600 {
				t.Errorf("%+v", s)
			}
			b := &bench{}
			ctx, cancel := context.WithTimeout(t.Context(), cut)
			defer cancel()
			text, err := r.Work(ctx, self, b, b)
			if err != nil {
				text, err = r.Work(t.Context(), self, b, b)
			}
			if got := strings.Join(b.done, ", "); err != nil || got != "valve1/valve 1m, shed/tidy sweep the floor 5m, shed/lock   1h, valve2/valve 1m" {
				t.Errorf("cut at %v: %s %v", cut, got, err)
			}
			var res Result
			if err := json.Unmarshal(text, &res); err != nil || !slices.Equal(res.Asked, []Asked{{"shed/tidy", "T1"}, {"shed/lock", "T1"}}) || strings.Contains(string(text), "people") {
				t.Errorf("%s %v", text, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		r := beds()
		r.world.Open, r.Steps = []string{"shed"}, []Step{{Agent: "shed/tidy"}, {Set: on("valve2/valve")}}
		b := &bench{fails: device.Faultf(device.Expired, "it has not ended in time")}
		for range 2 { // it is not asked again
			if _, err := r.Work(t.Context(), self, b, b); err == nil || device.AsFault(err).Kind != device.Expired || len(b.done) != 1 {
				t.Errorf("%v %q", err, b.done)
			}
		}
	})
}

// TestUnknown: a step that failed, or of which nobody knows what came, is not made again.
func TestUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{task: task.Task{Steps: []task.Step{{Does: "set valve1/valve", Outcome: "unknown_outcome"}}}}
		if _, err := beds().Work(t.Context(), self, b, b); err == nil || device.AsFault(err).Kind != device.UnknownOutcome || b.done != nil {
			t.Errorf("%v: %q", err, b.done)
		}
		b = &bench{fails: device.Faultf(device.Unsafe, "the tank is empty")}
		if _, err := beds().Work(t.Context(), self, b, b); err == nil || device.AsFault(err).Kind != device.Unsafe || len(b.task.Steps) != 1 {
			t.Errorf("%v: %+v", err, b.task.Steps)
		}
		b = &bench{task: task.Task{Text: "do not water"}}
		if _, err := beds().Work(t.Context(), self, b, b); err == nil || device.AsFault(err).Kind != device.Invalid || b.done != nil {
			t.Errorf("%v: %q", err, b.done)
		}
	})
}

// TestMistakes: each is found where it stands.
func TestMistakes(t *testing.T) {
	set := on("valve1/valve")
	for name, tt := range map[string]struct {
		step Step
		key  string
	}{
		"nothing":              {Step{}, "steps[1]"},
		"two things":           {Step{Set: set, Show: map[string]string{"panel/text": "x"}}, "steps[1].show"},
		"set and wait a time":  {Step{Set: set, Wait: "10s"}, "steps[1].wait"},
		"set nothing":          {Step{Set: map[string]device.Value{}}, "steps[1].set"},
		"no output":            {Step{Set: on("soil/moisture")}, "steps[1].set.soil/moisture"},
		"no such output":       {Step{Set: on("valve3/valve")}, "steps[1].set.valve3/valve"},
		"a wrong value":        {Step{Set: map[string]device.Value{"valve1/valve": device.Number(3)}}, "steps[1].set.valve1/valve"},
		"no display":           {Step{Show: map[string]string{"soil/moisture": "x"}}, "steps[1].show.soil/moisture"},
		"no text":              {Step{Show: map[string]string{"panel/text": ""}}, "steps[1].show.panel/text"},
		"a long hold":          {Step{Set: set, For: 25 * time.Hour}, "steps[1].for"},
		"for of nothing":       {Step{Wait: "1s", For: time.Second}, "steps[1].for"},
		"a wrong wait":         {Step{Wait: "soon"}, "steps[1].wait"},
		"a negative wait":      {Step{Wait: "-1s"}, "steps[1].wait"},
		"wait for nothing":     {Step{Set: set, Wait: "true"}, "steps[1].wait"},
		"a wrong condition":    {Step{If: "soil/moisture < 40 Cel", Set: set}, "steps[1].if"},
		"a window":             {Step{If: "mean(soil/moisture, 10m) < 40 %", Set: set}, "steps[1].if"},
		"the sun, no place":    {Step{If: "now > sunset", Set: set}, "steps[1].if"},
		"a condition alone":    {Step{If: "soil/moisture < 40 %"}, "steps[1].if"},
		"one option":           {Step{Ask: "well?", Options: []string{"yes"}}, "steps[1].options"},
		"an option twice":      {Step{Ask: "well?", Options: []string{"yes", "yes"}}, "steps[1].options"},
		"options of nothing":   {Step{Set: set, Options: []string{"yes", "no"}}, "steps[1].options"},
		"else go":              {Step{If: "soil/moisture < 40 %", Set: set, Else: "go"}, "steps[1].else"},
		"else of nothing":      {Step{Set: set, Else: "stop"}, "steps[1].else"},
		"else of two":          {Step{If: "soil/moisture < 40 %", Ask: "well?", Options: []string{"yes", "no"}, Else: "stop"}, "steps[1].else"},
		"else without options": {Step{Ask: "well?", Else: "stop"}, "steps[1].else"},
		"a control character":  {Step{Ask: "well?\x1b[2J"}, "steps[1].ask"},
		"an agent here":        {Step{Agent: "tidy"}, "steps[1].agent"},
		"no such site":         {Step{Agent: "shet/tidy"}, "steps[1].agent"},
		"a point":              {Step{Agent: "shed/tidy/x"}, "steps[1].agent"},
		"agent and wait":       {Step{Agent: "shed/tidy", Wait: "1s"}, "steps[1].agent"},
		"within of nothing":    {Step{Set: set, Within: time.Minute}, "steps[1].within"},
		"text of nothing":      {Step{Set: set, Text: "x"}, "steps[1].text"},
		"a long text":          {Step{Agent: "shed/tidy", Text: strings.Repeat("x", 501)}, "steps[1].text"},
		"a long task":          {Step{Agent: "shed/tidy", Within: 25 * time.Hour}, "steps[1].within"},
		"notify with a skill":  {Step{Agent: "notify", Text: "x", Skill: "test"}, "steps[1].agent"},
		"notify with no text":  {Step{Agent: "notify"}, "steps[1].agent"},
		"notify and wait":      {Step{Agent: "notify", Text: "x", Wait: "1s"}, "steps[1].agent"},
		"a wrong skill":        {Step{Agent: "shed/tidy", Skill: "Run!"}, "steps[1].skill"},
	} {
		r := beds()
		r.world.Open = []string{"shed"}
		r.Steps = []Step{{Wait: "1s"}, tt.step}
		_, err := r.Define()
		var wrong *agent.Mistake
		if !errors.As(err, &wrong) || wrong.Key != tt.key {
			t.Errorf("%s: %v, want it at %s", name, err, tt.key)
		}
	}
	r := beds()
	d, err := r.Define()
	if err != nil || d.Rank != rank || d.Moves != nil || !slices.Equal(d.Reads, []string{"valve1/valve", "soil/moisture", "valve2/valve", "panel/text"}) {
		t.Errorf("%+v %v", d, err)
	}
	if s := r.Skills(); len(s) != 1 || s[0].Seconds != 610 {
		t.Errorf("%+v", s)
	}
	for r.Steps = nil; len(r.Steps) <= maxSteps; r.Steps = append(r.Steps, Step{Wait: "1s"}) {
		if _, err := r.Define(); (err == nil) != (len(r.Steps) > 0) {
			t.Errorf("%d steps: %v", len(r.Steps), err)
		}
	}
	if _, err := r.Define(); err == nil {
		t.Errorf("%d steps are accepted", len(r.Steps))
	}
}

// TestTaskLimits: a routine whose task could not end by itself is refused where it is too much.
func TestTaskLimits(t *testing.T) {
	ask, half := Step{Ask: "well?"}, Step{Wait: (task.MaxTime / 2).String()}
	hold := Step{Set: on("valve1/valve"), For: time.Second, Wait: "true"}
	for name, tt := range map[string]struct {
		steps []Step
		key   string // "" where they are accepted
	}{
		"questions":          {slices.Repeat([]Step{ask}, task.MaxAsks), ""},
		"one more":           {slices.Repeat([]Step{ask}, task.MaxAsks+1), "steps[16].ask"},
		"a day":              {[]Step{half, half, ask}, ""},
		"a day and a second": {[]Step{half, ask, half, {Wait: "1s"}}, "steps[3].wait"},
		"and a hold":         {[]Step{half, half, hold}, "steps[2].wait"},
		"and a task":         {[]Step{half, half, {Agent: "shed/tidy", Within: time.Second}}, "steps[2].within"},
		"and any task":       {[]Step{half, half, {Agent: "shed/tidy"}}, "steps[2].agent"},
	} {
		r := beds()
		r.world.Open = []string{"shed"}
		r.Steps = tt.steps
		_, err := r.Define()
		var wrong *agent.Mistake
		if errors.As(err, &wrong); (err == nil) != (tt.key == "") || wrong != nil && wrong.Key != tt.key {
			t.Errorf("%s: %v, want it at %s", name, err, tt.key)
		}
	}
}

// TestPause: a routine that is paused, or goes, releases what a task that was completed has left
// at work, and nothing that has ended since.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := &bench{}, &Routine{
			world: rule.World{Now: func() (time.Time, bool) { return time.Now(), true }, Points: garden},
			Steps: []Step{{Set: on("valve1/valve"), For: 5 * time.Minute}, {Set: on("valve2/valve"), For: time.Minute}},
		}
		for _, want := range []string{"valve1/valve 5m, valve2/valve 1m, valve1/valve released", ""} {
			if b.done = nil; want != "" {
				if _, err := r.Work(t.Context(), self, b, b); err != nil {
					t.Fatal(err)
				}
			}
			ctx, pause := context.WithTimeout(t.Context(), 2*time.Minute)
			defer pause()
			if err := r.Run(ctx, agents.Principal{}, b); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(b.done, ", "); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	})
}
