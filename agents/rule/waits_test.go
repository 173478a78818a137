package rule_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/agents/agent"
	"agentsite/agents/rule"
	"agentsite/device"
)

// TestWaits: a step after a wait is made only where all is still as it was to be by then.
func TestWaits(t *testing.T) {
	heater := doHeater(10 * time.Minute)
	lamp := rule.Step{Set: map[string]device.Value{"a/lamp": device.Number(40)}, For: time.Minute}
	r := ruleKeys{On: "a/button", Do: slices.Concat(heater, []rule.Step{{Wait: 5 * time.Second}, lamp})}
	cold := r
	cold.If = "a/t < 5 Cel"
	toggle := r
	toggle.Toggle = true
	daily := r
	daily.On, daily.At = "", "7:30"
	brief, late := r, r
	brief.Do = slices.Concat(doHeater(0), []rule.Step{{Wait: 5 * time.Second}, lamp})
	late.Do = slices.Concat(doHeater(0), []rule.Step{{Wait: 2 * time.Minute}, lamp})
	first := ruleKeys{On: "a/button", Do: []rule.Step{{Wait: 5 * time.Second}, {Wait: time.Second}, lamp}}
	for _, tt := range []struct {
		name         string
		rule         ruleKeys
		script, want string
	}{
		{"one after the other", r, "nothing, press, wait 10s", "0s heater on for 5m0s, 5s lamp 40 for 1m0s"},
		{"waits add up", first, "nothing, press, wait 1h", "6s lamp 40 for 1m0s, 46s lamp 40 for 20s held"},
		{"if: is false by then", cold, "nothing, t 4, press, wait 2s, t 6, wait 10s", "0s heater on for 5m0s"},
		{"if: is unknown by then", cold, "nothing, t 4, press, wait 2s, t ?, wait 10s", "0s heater on for 5m0s"},
		{"if: was false in between only", cold, "nothing, t 4, press, wait 2s, t 6, t 4, wait 10s", "0s heater on for 5m0s, 5s lamp 40 for 1m0s"},
		{"a person took over", r, "nothing, press, wait 2s, take ann, wait 10m", "0s heater on for 5m0s"},
		{"a person released", r, "nothing, press, wait 2s, release, wait 10m", "0s heater on for 5m0s"},
		{"a person released what has no length", brief, "nothing, press, wait 2s, release, wait 10m", "0s heater on"},
		{"a person took that over", brief, "nothing, press, wait 2s, take ann, wait 10m", "0s heater on"},
		{"its lease was over", late, "nothing, press, wait 10m", "0s heater on, 2m0s lamp 40 for 1m0s, 2m40s lamp 40 for 20s held"},
		{"a stop ended the first", r, "nothing, press, wait 2s, refuse unsafe, end everything was sent to safe, wait 4s, refuse, wait 2s", "0s heater on for 5m0s, 2s heater on for 5m0s unsafe, 7s heater on for 5m0s"},
		{"the first is refused", r, "nothing, refuse unsafe, press, wait 4s, refuse, wait 2s", "0s heater on for 5m0s unsafe, 5s heater on for 5m0s"},
		{"an event meanwhile begins anew", r, "nothing, press, wait 3s, press, wait 4s, t 1, wait 2s", "0s heater on for 5m0s, 3s heater on for 5m0s held, 8s lamp 40 for 1m0s"},
		{"a toggle ends the wait", toggle, "nothing, press, wait 3s, press, wait 1h", "0s heater on for 5m0s, 3s heater - held"},
		{"each has a key", daily, "clock 2026-11-23 07:29:59, wait 7s", "1s heater on for 5m0s 2026-11-23T07:30/0, 6s lamp 40 for 1m0s 2026-11-23T07:30/1"},
	} {
		if got := script(t, tt.rule, tt.script); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.name, got, tt.want)
		}
	}
	s := newSim(t, first)
	for _, line := range []string{"nothing", "press", "wait 1s"} {
		s.do(line)
	}
	if got := s.m.Report(s.now); got.State != agent.Waiting {
		t.Errorf("in a wait it is %v", got)
	}
	for _, wrong := range [][]rule.Step{
		{lamp, {Wait: time.Second}}, {{Wait: time.Second}}, {{Wait: time.Second, Set: heater[0].Set}}, {{Wait: time.Second, For: time.Second}, lamp},
		{{Wait: 24 * time.Hour}, {Wait: time.Second}, lamp}, {{Wait: -time.Second}, lamp},
	} {
		if _, err := (ruleKeys{On: "a/button", Do: wrong}).rule().Define(); err == nil {
			t.Errorf("%+v is accepted", wrong)
		}
	}
}

// TestWaitsAfterARestart: an output that an earlier run moved, and that is safe since, has no step follow.
// Steps that were made are not made again.
func TestWaitsAfterARestart(t *testing.T) {
	lamp := rule.Step{Set: map[string]device.Value{"a/lamp": device.Number(40)}, For: time.Minute}
	for _, length := range []time.Duration{10 * time.Minute, 0} {
		r := ruleKeys{At: "7:30", Missed: "run", Do: slices.Concat(doHeater(length), []rule.Step{{Wait: 5 * time.Second}, lamp})}
		for _, told := range []string{"told", "end its lease was over", "release", "wait 1s"} {
			s := newSim(t, r)
			s.do("clock 2026-11-23 07:29:59")
			s.do("wait 3s")
			s.restart(r)
			moved := len(s.acts)
			s.decide()
			s.do(told)
			s.do("wait 1h")
			for _, a := range s.acts[moved:] {
				if strings.Contains(a, "lamp") {
					t.Errorf("for %v, %q: %s", length, told, a)
				}
			}
		}
	}
}

// TestWaitsOfWhatIsHeldAlready: a step follows a move that finds the output held by the one before,
// with states and without.
func TestWaitsOfWhatIsHeldAlready(t *testing.T) {
	lamp := rule.Step{Set: map[string]device.Value{"a/lamp": device.Number(40)}}
	for _, state := range []int64{2, 0} {
		s := newSim(t, ruleKeys{At: "* * * * *", Do: slices.Concat(doHeater(0), []rule.Step{{Wait: 5 * time.Second}, lamp})})
		s.now.Wall, s.now.Sure = time.Date(2026, 11, 23, 7, 29, 59, 0, berlin(t)), true
		s.m.Output(s.now, s.now.Now, 0, rule.Lease{Known: true, State: state / 2})
		s.m.Step(s.now)
		moved := 0
		for range 2 * 60 {
			s.now.Now += time.Second
			s.now.Wall = s.now.Wall.Add(time.Second)
			acts, _ := s.m.Step(s.now)
			for _, a := range slices.Clone(acts) {
				if s.m.Outputs()[a.Output] == "a/lamp" {
					moved++
				}
				s.m.Done(s.now, a, 90*time.Second, state, nil)
				if s.now.Now < time.Minute { // and nothing changes later
					s.m.Output(s.now, s.now.Now, a.Output, rule.Lease{Holder: selfID, Known: true, State: state})
				}
			}
		}
		if moved != 2 {
			t.Errorf("state %d: the step after the wait was made %d times in two minutes", state, moved)
		}
	}
}
