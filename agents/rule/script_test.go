package rule_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/agents/rule"
	"agentsite/device"
)

// TestMachine is what rules do, as scripts: what happens, and the moves that come of it.
func TestMachine(t *testing.T) {
	frost := holdHeater("a/t < 5 Cel")
	frost.Until = "a/t > 7 Cel"
	slow := holdHeater("a/t < 5 Cel")
	slow.For = 30 * time.Second
	resume := holdHeater("a/t < 5 Cel")
	resume.Resume = 10 * time.Minute
	button := ruleKeys{On: "a/button", Do: doHeater(2 * time.Minute)}
	once := ruleKeys{On: "a/button", Do: doHeater(0)}
	daily := ruleKeys{At: "7:30", Do: doHeater(time.Minute)}
	missed := daily
	missed.Missed = "run"
	often := ruleKeys{At: "*/10 * * * *", Do: doHeater(time.Minute)}
	oftenMissed := often
	oftenMissed.Missed = "run"
	night := ruleKeys{At: "2:30", Do: doHeater(time.Minute)}

	for _, test := range []struct {
		name   string
		rule   ruleKeys
		script string
		want   string
	}{
		{"held while it is true, renewed at two thirds", holdHeater("a/t < 5 Cel"), "t 4, wait 4m, t 6", "0s heater on for 5m0s, 3m20s heater on for 5m0s held, 4m0s heater - held"},
		{"unknown starts nothing", holdHeater("a/t < 5 Cel"), "wait 1m, t ?, wait 1h", ""},
		{"unknown ends a hold", holdHeater("a/t < 5 Cel"), "t 4, t ?, wait 1h", "0s heater on for 5m0s, 0s heater - held"},
		{"until: is what ends it", frost, "t 4, t 6, wait 1m, t 8, t 6, wait 1m, t 4", "0s heater on for 5m0s, 1m0s heater - held, 2m0s heater on for 5m0s"},
		{"unknown until: ends it", frost, "t 4, t ?, t 6", "0s heater on for 5m0s, 0s heater - held"},
		{"both conditions are true", func() ruleKeys { r := frost; r.Until = "a/t > 3 Cel"; return r }(), "t 4, wait 1h, t 2", "1h0m0s heater on for 5m0s"},
		{"for: counts from when it is true without a break", slow, "t 4, wait 29s, t 6, wait 10s, t 4, wait 29s, t ?, t 4, wait 31s", "1m38s heater on for 5m0s"},
		{"for: begins anew after each hold", slow, "t 4, wait 30s, t 6, t 4, wait 29s, t 6", "30s heater on for 5m0s, 30s heater - held"},

		{"a person takes over: until the lease ended and the condition was false", holdHeater("a/t < 5 Cel"), "t 4, take ann, t 6, t 4, wait 2m, t 6, t 4",
			"0s heater on for 5m0s, 1m0s heater on for 5m0s, 2m0s heater - held, 2m0s heater on for 5m0s"},
		{"a person takes over, and the condition stays true", holdHeater("a/t < 5 Cel"), "t 4, take ann, wait 3h", "0s heater on for 5m0s"},
		{"a person releases", holdHeater("a/t < 5 Cel"), "t 4, release, wait 1h, t 6, wait 1m, t 4", "0s heater on for 5m0s, 1h1m0s heater on for 5m0s"},
		{"a person releases, and the rule resumes", resume, "t 4, release, wait 10m", "0s heater on for 5m0s, 10m0s heater on for 5m0s"},
		{"resume: waits for the other's lease", resume, "t 4, take ann, wait 9m30s, take ann, wait 5m", "0s heater on for 5m0s, 10m30s heater on for 5m0s, 13m50s heater on for 5m0s held"},
		{"a person releases between both limits", frost, "t 4, release, t 6, wait 1h, t 8, t 6, t 4", "0s heater on for 5m0s, 1h0m0s heater on for 5m0s"},
		{"a person holds it already", holdHeater("a/t < 5 Cel"), "take ann, t 4, wait 2m, t 6, t 4", "0s heater on for 5m0s busy, 2m0s heater on for 5m0s"},
		{"a person took over, which is told after the renewal", holdHeater("a/t < 5 Cel"), "t 4, wait 3m19s, steal ann, wait 2s, told, wait 3h", "0s heater on for 5m0s, 3m20s heater on for 5m0s held expired"},
		{"a person released, which is told after the renewal", holdHeater("a/t < 5 Cel"), "t 4, wait 3m19s, drop, wait 2s, told, wait 3h", "0s heater on for 5m0s, 3m20s heater on for 5m0s held expired"},
		{"another rule takes over: it waits, and does not yield", holdHeater("a/t < 5 Cel"), "t 4, take rule:high, wait 61s", "0s heater on for 5m0s, 0s heater on for 5m0s busy, 5s heater on for 5m0s busy, 15s heater on for 5m0s busy, 35s heater on for 5m0s busy, 1m0s heater on for 5m0s"},
		{"a stop is no release", holdHeater("a/t < 5 Cel"), "t 4, refuse unsafe, end everything was sent to safe, wait 16s, refuse, wait 30s",
			"0s heater on for 5m0s, 0s heater on for 5m0s unsafe, 5s heater on for 5m0s unsafe, 15s heater on for 5m0s unsafe, 35s heater on for 5m0s"},
		{"max_on ends the lease", holdHeater("a/t < 5 Cel"), "limit 6m, t 4, wait 6m30s",
			"0s heater on for 5m0s, 3m20s heater on for 5m0s held, 5m6.666666666s heater on for 5m0s held, 6m10.05s heater on for 5m0s"},
		{"back-off doubles up to a minute", holdHeater("a/t < 5 Cel"), "refuse offline, t 4, wait 5m",
			"0s heater on for 5m0s offline, 5s heater on for 5m0s offline, 15s heater on for 5m0s offline, 35s heater on for 5m0s offline, 1m15s heater on for 5m0s offline, 2m15s heater on for 5m0s offline, 3m15s heater on for 5m0s offline, 4m15s heater on for 5m0s offline"},
		{"a permission with a shorter length", holdHeater("a/t < 5 Cel"), "longest 90s, t 4, wait 41s", "0s heater on for 5m0s denied, 0s heater on, 40s heater on held"},
		{"denied for good", holdHeater("a/t < 5 Cel"), "refuse denied, t 4, wait 20s", "0s heater on for 5m0s denied, 0s heater on denied, 5s heater on denied, 15s heater on denied"},
		{"an output that rests", holdHeater("a/t < 5 Cel"), "rest 10m, t 4, wait 11m", "0s heater on for 5m0s unsafe, 10m0.05s heater on for 5m0s"},
		{"an old rest delays no retry", holdHeater("a/t < 5 Cel"), "rest 10m, wait 1h, refuse unsafe, t 4, wait 6s", "1h0m0s heater on for 5m0s unsafe, 1h0m5s heater on for 5m0s unsafe"},

		{"the first event", button, "nothing, press, wait 1m, press, wait 3m", "0s heater on for 2m0s, 1m0s heater on for 2m0s held, 2m20s heater on for 40s held"},
		{"an event from before", button, "press 1h, wait 1m, press 1h1m", ""},
		{"an event whose age is rounded", button, "nothing, press, wait 10m, press 9m59.985s, press 10m0.015s, press 9m59.985s", "0s heater on for 2m0s, 1m20s heater on for 40s held"},
		{"an event twice in a second", ruleKeys{On: "a/button", Do: doHeater(time.Hour)}, "nothing, press, wait 500ms, press, wait 5m",
			"0s heater on for 5m0s, 500ms heater on for 5m0s held, 3m20.5s heater on for 5m0s held"},
		{"an event that did not happen has no age", holdHeater("age(a/button) < 2m"), "nothing, wait 1h, press, wait 3m", "1h0m0s heater on for 5m0s, 1h2m0s heater - held"},
		{"a count of events is known where the last one is old", holdHeater("count(a/button, 10m) < 2"), "press 1h, press, wait 1s, press", "0s heater on for 5m0s, 1s heater - held"},
		{"a step without for: is one lease", once, "nothing, press, wait 1h", "0s heater on"},
		{"a step without for: is given up after a minute", once, "nothing, refuse unsafe, press, wait 1h", "0s heater on unsafe, 5s heater on unsafe, 15s heater on unsafe, 35s heater on unsafe"},
		{"a step without for: that may have moved is not made again", once, "nothing, refuse offline, press, wait 1h", "0s heater on offline"},
		{"a step without for: of which nothing is known is not made again", once, "nothing, refuse unknown_outcome, press, wait 1h", "0s heater on unknown_outcome"},
		{"a person took a step's output over", button, "nothing, press, take ann, wait 1h", "0s heater on for 2m0s"},
		{"a state that becomes on", ruleKeys{On: "a/door", Do: doHeater(0)}, "door on, door on, door off, door ?, door on, door off, wait 1s, door on", "1s heater on"},
		{"every: with if:", ruleKeys{Every: 10 * time.Second, If: "a/t < 5 Cel", Do: doHeater(0)}, "door on, wait 10s, t 4, wait 10s, t 6, wait 10s, t 4, wait 10s", "20s heater on, 40s heater on"},

		{"at:", daily, "clock 2026-11-23 07:29:00, wait 25h", "1m0s heater on for 1m0s 2026-11-23T07:30/0, 1m40s heater on for 20s held, 24h1m0s heater on for 1m0s 2026-11-24T07:30/0, 24h1m40s heater on for 20s held"},
		{"at: several times", ruleKeys{At: "19:00, 7:30", Do: doHeater(time.Minute)}, "clock 2026-11-23 07:29:00, wait 12h, clock 2026-11-24 06:00:00, wait 2h",
			"1m0s heater on for 1m0s 2026-11-23T07:30/0, 1m40s heater on for 20s held, 11h31m0s heater on for 1m0s 2026-11-23T19:00/0, 11h31m40s heater on for 20s held, 13h30m0s heater on for 1m0s 2026-11-24T07:30/0, 13h30m40s heater on for 20s held"},
		{"at: with a clock that is not set", daily, "clock, wait 25h", ""},
		{"at: is left out when the clock comes late", daily, "clock, wait 1h, clock 2026-11-23 07:31:02, wait 1h", ""},
		{"at: in the minute in which the clock comes", daily, "clock, wait 1h, clock 2026-11-23 07:30:01, wait 30s", "1h0m0s heater on for 1m0s 2026-11-23T07:30/0"},
		{"missed: run", missed, "clock, wait 1h, clock 2026-11-23 08:20:00, wait 30s", "1h0m0s heater on for 1m0s 2026-11-23T07:30/0"},
		{"missed: run, an hour at most", missed, "clock, wait 1h, clock 2026-11-23 08:30:01, wait 30s", ""},
		{"missed: run, after the clock was lost", missed, "clock 2026-11-23 07:00:00, clock, wait 1h, clock 2026-11-23 08:00:00, wait 30s", "1h0m0s heater on for 1m0s 2026-11-23T07:30/0"},
		{"a clock that is set forward over it", daily, "clock 2026-11-23 07:29:00, clock 2026-11-23 07:32:00, wait 1h", ""},
		{"a clock that is set forward by a little", daily, "clock 2026-11-23 07:29:50, clock 2026-11-23 07:30:50, wait 30s", "0s heater on for 1m0s 2026-11-23T07:30/0"},
		{"a clock that is set forward over several", often, "clock 2026-11-23 07:29:50, clock 2026-11-23 08:00:30, wait 30s", "0s heater on for 1m0s 2026-11-23T08:00/0"},
		{"a clock that is set forward by hours", oftenMissed, "clock 2026-11-23 07:29:50, clock 2026-11-23 12:05:00, wait 30s", "0s heater on for 1m0s 2026-11-23T07:20/0, 0s heater on for 1m0s held"},
		{"a clock that is set back over what ran", daily, "clock 2026-11-23 07:29:59, wait 1s, clock 2026-11-23 07:29:00, wait 59s", "1s heater on for 1m0s 2026-11-23T07:30/0, 41s heater on for 20s held"},
		{"a clock that is set back before what did not run", often, "clock 2026-11-23 07:55:00, clock 2026-11-23 07:05:00, wait 5m30s", "5m0s heater on for 1m0s 2026-11-23T07:10/0"},
		{"a clock that was a day ahead for a while", daily, "clock 2026-11-23 07:00:00, clock 2026-11-24 06:00:00, clock 2026-11-23 07:00:00, wait 30m30s", "30m0s heater on for 1m0s 2026-11-23T07:30/0"},
		{"a minute that summer time skips", night, "clock 2026-03-29 01:30:00, wait 31m", "30m0s heater on for 1m0s 2026-03-29T02:30/0, 30m40s heater on for 20s held"},
		{"a minute that comes twice", night, "clock 2026-10-25 01:30:00, wait 1h30s, wait 12h", "1h0m0s heater on for 1m0s 2026-10-25T02:30/0, 1h0m40s heater on for 20s held"},

		{"a mean counts how long a value lasts", holdHeater("mean(a/t, 1m) < 10 Cel"), "t 4, wait 54s, t 34, wait 5s, t 4, wait 2s", "1m0s heater on for 5m0s"},
		{"a mean of a value that does not change", holdHeater("mean(a/t, 1m) < 5 Cel"), "t 4, wait 1h, t ?, wait 62s", "1m0s heater on for 5m0s, 4m20s heater on for 5m0s held, 7m40s heater on for 5m0s held"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSim(t, test.rule)
			s.decide()
			for line := range strings.SplitSeq(test.script, ",") {
				s.do(strings.TrimSpace(line))
			}
			got := strings.Join(s.acts, ", ")
			if strings.HasPrefix(test.name, "a mean of a value that") { // it is renewed for an hour
				got = strings.Join(s.acts[:3], ", ")
				if n := len(s.acts); n < 18 || !strings.HasSuffix(s.acts[n-1], "- held") {
					t.Error(s.acts)
				}
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestReplay: an occurrence whose key has acted moves nothing again, in whatever way the new
// Machine hears of it.
func TestReplay(t *testing.T) {
	r := ruleKeys{At: "7:30", Missed: "run", Do: doHeater(2 * time.Hour)}
	for _, told := range []string{"", "told", "end its lease was over", "release"} {
		s := newSim(t, r)
		s.do("clock 2026-11-23 07:29:59")
		s.do("wait 10m")
		s.restart(r)
		moved := len(s.acts)
		s.decide()
		if len(s.acts) != moved+1 || !strings.HasSuffix(s.acts[moved], "for 5m0s 2026-11-23T07:30/0") {
			t.Fatal(s.acts)
		}
		if told != "" {
			s.do(told)
		}
		s.do("wait 3h")
		for _, a := range s.acts[moved+1:] {
			if !strings.HasSuffix(a, "held expired") {
				t.Errorf("%q: %s", told, a)
			}
		}
	}
}

// TestSettled: a rule to which nothing happens costs no memory and no wake-ups.
func TestSettled(t *testing.T) {
	frost := holdHeater("mean(a/t, 10m) < 5 Cel and not (a/door is on) or count(a/button, 1h) > 3")
	frost.Until, frost.For = "a/t > 7 Cel", 10*time.Second
	for _, r := range []ruleKeys{
		frost, holdHeater("a/t < 5 Cel and age(a/t) < 48h and now between 0:00..23:59"),
		{On: "a/button", If: "a/t < 5 Cel", Do: doHeater(24 * time.Hour)}, {At: "7:30", If: "a/t < 5 Cel", Do: doHeater(0)},
		{At: "sunset", If: "a/t < 5 Cel", Do: doHeater(0)}, {Every: time.Hour, If: "a/t < 5 Cel", Do: doHeater(0)},
	} {
		s := newSim(t, r)
		for _, line := range []string{"clock 2026-11-23 12:00:00", "nothing", "door off", "t 4", "wait 11m", "press", "t 4"} {
			s.do(line)
		}
		points := s.m.Points()
		values := map[string]device.Value{"a/t": device.Number(4), "a/door": off, "a/button": {}}
		n := testing.AllocsPerRun(1000, func() {
			s.now.Now += time.Millisecond
			s.now.Wall = s.now.Wall.Add(time.Millisecond)
			for i, p := range points {
				s.m.Tell(s.now.Now, i, &rule.Reading{Value: values[p], Known: true})
			}
			if acts, _ := s.m.Step(s.now); len(acts) > 0 {
				t.Error(acts)
			}
		})
		if n != 0 {
			t.Errorf("%+v allocates %v times", r, n)
		}
		s.steps = 0
		s.decide()
		s.do("wait 1h")
		if s.steps > 500 { // a window of 10m is looked at 360 times in an hour
			t.Errorf("%+v took %d steps in an hour", r, s.steps)
		}
	}
}

// TestReplayOfAnotherGuard: an answer of before a restart, from another run of the guard, has the machine
// ignore nothing that is told of the present run.
func TestReplayOfAnotherGuard(t *testing.T) {
	r := ruleKeys{At: "7:30", Missed: "run", Do: doHeater(2 * time.Hour)}
	s := newSim(t, r)
	state := int64(5 << 32)
	told := func(holder string) {
		state++
		s.m.Output(s.now, s.now.Now, 0, rule.Lease{Holder: holder, Known: true, State: state})
	}
	decided := func(day int) []rule.Act {
		s.now.Now += 23 * time.Hour
		s.now.Wall, s.now.Sure = time.Date(2026, 11, day, 7, 30, 10, 0, berlin(t)), true
		acts, _ := s.m.Step(s.now)
		return slices.Clone(acts)
	}
	told("")
	acts := decided(23)
	if len(acts) != 1 || acts[0].Key == "" {
		t.Fatal(acts)
	}
	s.m.Done(s.now, acts[0], time.Minute, 4<<32+99, nil) // of the journal
	told("")
	acts = decided(24)
	if len(acts) != 1 || acts[0].Key == "" {
		t.Fatal(acts)
	}
	state++
	s.m.Done(s.now, acts[0], 5*time.Minute, state, nil)
	told(selfID)
	told("") // a person has released it
	s.now.Now += time.Hour
	if acts, _ := s.m.Step(s.now); len(acts) > 0 {
		t.Error("it moves what a person released:", acts)
	}
}
