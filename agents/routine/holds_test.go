package routine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"

	"github.com/go-json-experiment/json"
)

// lease is an output of a bench.
type lease struct {
	agents.OutputDetail
	until time.Time
}

func detail(of agents.OutputState) agents.OutputDetail { return agents.OutputDetail{OutputState: of} }

// end ends the lease of an output; "" ends all, as a restart does.
func (b *bench) end(output, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for o, l := range b.leases {
		if l.Holder != "" && (o == output || output == "") {
			b.lease(o, lease{OutputDetail: detail(agents.OutputState{Why: why})})
		}
	}
}

func (b *bench) lease(output string, l lease) {
	if b.leases == nil {
		b.leases = make(map[string]lease)
	}
	b.state++
	l.State = b.state
	b.leases[output] = l
	if b.told != nil {
		close(b.told)
		b.told = nil
	}
}

func (b *bench) Watch(ctx context.Context, _ agents.Principal, r agents.WatchRequest, emit func(agents.Update) error) error {
	for {
		b.mu.Lock()
		if b.told == nil {
			b.told = make(chan struct{})
		}
		var u agents.Update
		for _, o := range r.Points {
			u.Readings = append(u.Readings, agents.Reading{Point: o, Detail: new(b.leases[o].OutputDetail)})
		}
		told := b.told
		b.mu.Unlock()
		if err := emit(u); err != nil {
			return err
		}
		select {
		case <-told:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// TestGoesOn: wherever a restart cuts it off, each step is made once, a wait is as long as without one,
// and the step after a hold comes when the output has returned. The result says so.
func TestGoesOn(t *testing.T) {
	for cut := time.Second; cut < 11*time.Minute; cut += 11 * time.Second {
		synctest.Test(t, func(t *testing.T) {
			b := &bench{moisture: 30, quality: device.Good, answer: "yes"}
			second := 5*time.Minute + 10*time.Second // when the second valve opens
			took, cuts := 2*second-10*time.Second, -1
			switch {
			case cut < 5*time.Minute:
				took, cuts = cut+time.Minute+second, 0
			case cut < second:
				took = cut + time.Minute + 5*time.Minute
			case cut < took:
				took, cuts = cut+time.Minute, 1
			}
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), cut)
			defer cancel()
			text, err := beds().Work(ctx, self, b, b)
			if err != nil {
				b.end("", "the process that drives it was started")
				time.Sleep(time.Minute)
				b.moisture = 90 // a condition that was looked at stays as it was
				if !slices.ContainsFunc(b.task.Steps, func(s task.Step) bool { return strings.HasPrefix(s.Does, "if") }) {
					b.moisture = 30
				}
				if text, err = beds().Work(t.Context(), self, b, b); err != nil {
					t.Fatalf("cut at %v: %v", cut, err)
				}
			}
			if got := strings.Join(b.done, ", "); got != "valve1/valve 5m, valve2/valve 5m, watered" || time.Since(began) != took {
				t.Errorf("cut at %v: %s in %v, want %v", cut, got, time.Since(began), took)
			}
			var res Result
			if err := json.Unmarshal(text, &res); err != nil || len(res.Moved) != 2 {
				t.Fatalf("%s: %v", text, err)
			}
			for i, m := range res.Moved {
				if known := i != cuts; known != (m.Seconds == 300) || known != (m.Ended == "") || m.Left != 0 {
					t.Errorf("cut at %v: %s", cut, text)
				}
			}
		})
	}
}

// TestReceipt: the result has how long each output was really held, and what ended that early. After a
// limit the next step comes then, and as planned after somebody's release.
func TestReceipt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r, began := &bench{}, beds(), time.Now()
		r.Steps = []Step{
			{Set: on("valve1/valve"), For: 5 * time.Minute, Wait: "true"},
			{Set: on("valve2/valve"), For: 2 * time.Minute, Wait: "true"},
			{Set: on("valve1/valve"), For: 5 * time.Minute}, {Wait: "30s"},
		}
		time.AfterFunc(4*time.Second, func() { b.end("valve1/valve", "its max_on was spent") })
		time.AfterFunc(14*time.Second, func() { b.end("valve2/valve", "") })
		text, err := r.Work(t.Context(), self, b, b)
		var res Result
		if err := errors.Join(err, json.Unmarshal(text, &res)); err != nil || len(res.Moved) != 3 {
			t.Fatal(err, string(text))
		}
		if took := time.Since(began); took != 4*time.Second+2*time.Minute+30*time.Second {
			t.Errorf("it took %v", took)
		}
		for i, m := range res.Moved {
			if want := []Moved{{Seconds: 4}, {Seconds: 10}, {Seconds: 30, Left: 270}}[i]; m.Seconds != want.Seconds || m.Left != want.Left || (m.Ended == "") != (i == 2) {
				t.Errorf("%d: %+v", i, m)
			}
		}
	})
}

// resting is a bench whose outputs a limit refuses until a time.
type resting struct {
	*bench
	until time.Time
}

func (b resting) Try(context.Context, agents.Principal, agents.MoveRequest) error {
	if wait := time.Until(b.until); wait > 0 {
		return device.Faultf(device.Unsafe, "it rests").In(wait)
	}
	return nil
}

// TestRest: a step waits for a limit that refuses it for a short time, and no longer.
func TestRest(t *testing.T) {
	for rest, waits := range map[time.Duration]bool{0: false, 5 * time.Second: true, maxRest - time.Second: true, maxRest + time.Second: false} {
		synctest.Test(t, func(t *testing.T) {
			r, b, began := beds(), &bench{}, time.Now()
			r.Steps = []Step{{Set: on("valve1/valve"), For: time.Minute}}
			if _, err := r.Work(t.Context(), self, resting{b, began.Add(rest)}, b); err != nil || len(b.done) != 1 {
				t.Fatalf("%v: %q", err, b.done)
			}
			if took := time.Since(began); waits != (took >= rest && took > 0) || took > rest+restSlack {
				t.Errorf("it waited %v of %v", took, rest)
			}
		})
	}
}

// drying is a resting site whose soil is wet once the rest is over.
type drying struct{ resting }

func (d drying) Try(ctx context.Context, p agents.Principal, r agents.MoveRequest) error {
	err := d.resting.Try(ctx, p, r)
	if err == nil {
		d.moisture = 80
	}
	return err
}

// TestRestThenIf: the condition of a step that has waited for a limit is that of the time of its move.
func TestRestThenIf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, b := beds(), &bench{moisture: 10, quality: device.Good}
		r.Steps = []Step{{If: "soil/moisture < 30 %", Set: on("valve1/valve"), For: time.Minute}}
		if _, err := r.Work(t.Context(), self, drying{resting{b, time.Now().Add(5 * time.Second)}}, b); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(b.done, func(s string) bool { return strings.Contains(s, "valve1") }) {
			t.Errorf("it moved: %q", b.done)
		}
	})
}

// TestCutNote: a restart while the end of a hold is noted loses how long the hold was, and not the rest
// of the routine.
func TestCutNote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, b := beds(), &bench{}
		r.Steps = []Step{{Set: on("valve1/valve"), For: time.Minute, Wait: "true"}, {Wait: "10s"}, {Set: on("valve2/valve"), For: time.Minute, Wait: "true"}}
		if _, err := r.Work(t.Context(), self, b, b); err != nil || len(b.task.Steps) != 4 {
			t.Fatal(err, b.task.Steps)
		}
		b.task.Steps = b.task.Steps[:2]
		b.task.Steps[1].Outcome, b.task.Steps[1].Result = string(device.UnknownOutcome), nil // as tasks note it
		began := time.Now()
		text, err := r.Work(t.Context(), self, b, b)
		var res Result
		if err := errors.Join(err, json.Unmarshal(text, &res)); err != nil || len(res.Moved) != 2 {
			t.Fatal(err, string(text))
		}
		if first, took := res.Moved[0], time.Since(began); first.Seconds != 0 || first.Ended == "" || took != 70*time.Second {
			t.Errorf("%+v, after %v", first, took)
		}
	})
}
