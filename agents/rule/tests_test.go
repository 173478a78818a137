package rule_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/rule"
	"agentsite/agents/rule/calendar"
	"agentsite/device"
)

// TestRuleTests: the rules' own tests see what the site would: an event right at the beginning, what the
// rule moved itself, and what a window lacks.
func TestRuleTests(t *testing.T) {
	const press = "a/button"
	level := func(n float64) map[string]device.Value { return map[string]device.Value{"a/lamp": device.Number(n)} }
	lamp := ruleKeys{On: press, Do: []rule.Step{{Set: level(50), For: time.Minute}}}
	shows := lamp
	shows.Do = append(slices.Clone(lamp.Do), rule.Step{Show: map[string]string{"a/panel": "hello"}})
	dark := lamp
	dark.If = "a/lamp == 0"
	for name, test := range map[string]struct {
		rule  ruleKeys
		tests []rule.Test
		wrong string // "" for right
	}{
		"an event in the first step": {lamp, []rule.Test{{Given: map[string]string{press: "event"}, After: time.Second, Holds: level(50)}}, ""},
		"a text that is shown": {
			shows, []rule.Test{{Given: map[string]string{press: "event"}, After: time.Second, Holds: level(50)}}, "",
		},
		"no event":                    {lamp, []rule.Test{{Given: map[string]string{press: "unknown"}, After: time.Second}, {Given: map[string]string{press: "event"}, Holds: level(50)}}, ""},
		"an output that is read":      {dark, []rule.Test{{Given: map[string]string{"a/lamp": "0", press: "event"}, After: time.Second, Holds: level(50)}}, ""},
		"an output that was moved":    {dark, []rule.Test{{Given: map[string]string{"a/lamp": "0", press: "event"}, After: 50 * time.Second, Holds: level(50)}, {Given: map[string]string{press: "event"}, After: 20 * time.Second}}, ""},
		"an output that has returned": {dark, []rule.Test{{Given: map[string]string{"a/lamp": "0", press: "event"}, After: 70 * time.Second}, {Given: map[string]string{press: "event"}, Holds: level(50)}}, ""},
		"a wrong unit":                {dark, []rule.Test{{Given: map[string]string{"a/lamp": "0 %", press: "event"}, Holds: level(50)}}, "a/lamp: 0"},
		"no unit":                     {holdHeater("a/t > 20 Cel"), []rule.Test{{Given: map[string]string{"a/t": "30"}}}, "a/t: 30 Cel"},
		"a short window":              {holdHeater("mean(a/t, 5m) > 20 Cel"), []rule.Test{{Given: map[string]string{"a/t": "30 Cel"}, After: 4 * time.Minute, Holds: map[string]device.Value{"a/heater": on}}}, "mean(a/t, 5m) needs 5m of readings, and has 4m0s"},
		"a long one":                  {holdHeater("mean(a/t, 5m) > 20 Cel"), []rule.Test{{Given: map[string]string{"a/t": "30 Cel"}, After: 5 * time.Minute, Holds: map[string]device.Value{"a/heater": on}}}, ""},
	} {
		panel := agents.Point{Point: "a/panel", Kind: device.KindText}
		r := test.rule.of(rule.World{Points: append(slices.Clone(machinePoints), panel)})
		r.Tests = test.tests
		_, err := r.Define()
		var wrong *agent.Mistake
		if errors.As(err, &wrong); (err == nil) != (test.wrong == "") || err != nil && (wrong.Key != "tests" || !strings.Contains(err.Error(), test.wrong)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRuleTestsUnknown: where the points are not known, the tests say in which unit an output is.
func TestRuleTestsUnknown(t *testing.T) {
	level := map[string]device.Value{"a/lamp": device.Number(50)}
	r := ruleKeys{On: "a/button", If: "a/lamp == 0 %", Do: []rule.Step{{Set: level, For: time.Minute}}}.of(rule.World{})
	r.Tests = []rule.Test{{Given: map[string]string{"a/lamp": "0 %", "a/button": "event"}, After: time.Second, Holds: level}}
	if _, err := r.Define(); err != nil {
		t.Error(err)
	}
	r.Tests[0].Given["a/lamp"] = "0"
	var wrong *agent.Mistake
	if _, err := r.Define(); !errors.As(err, &wrong) || wrong.Key != "tests" {
		t.Errorf("a test whose reading has no unit: %v", err)
	}
}

// TestPolar: where the sun does not rise or set today, a rule that goes by it says so.
func TestPolar(t *testing.T) {
	tromso := rule.World{Points: machinePoints, Place: &calendar.Place{Lat: 69.65, Lon: 18.96}}
	night := holdHeater("now between sunset..sunrise")
	evening := ruleKeys{At: "sunset - 20m", Do: doHeater(time.Minute)}
	for day, want := range map[string]string{"2026-12-21": "always down", "2026-06-21": "always up", "2026-03-21": ""} {
		noon, err := time.Parse(time.DateTime, day+" 12:00:00")
		if err != nil {
			t.Fatal(err)
		}
		for _, keys := range []ruleKeys{night, evening} {
			m, err := keys.of(tromso).NewMachine(selfID, machinePoints)
			if err != nil {
				t.Fatal(err)
			}
			now := rule.Moment{Now: time.Second, Wall: noon, Sure: true}
			m.Step(now)
			if says := m.Report(now).Says; strings.Contains(says, "always") != (want != "") || !strings.Contains(says, want) {
				t.Errorf("%s: %s", day, says)
			}
		}
	}
}
