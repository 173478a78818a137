package rule_test

import (
	"strings"
	"testing"
	"time"
)

// script makes the lines of a script, and returns the moves that come of them.
func script(t *testing.T, r ruleKeys, lines string) string {
	t.Helper()
	s := newSim(t, r)
	s.decide()
	for line := range strings.SplitSeq(lines, ",") {
		s.do(strings.TrimSpace(line))
	}
	return strings.Join(s.acts, ", ")
}

// TestToggle: a press begins the steps with their lease, and the next one ends what is held.
func TestToggle(t *testing.T) {
	r := ruleKeys{On: "a/button", Toggle: true, Do: doHeater(10 * time.Minute)}
	cold := r
	cold.If = "a/t < 5 Cel"
	state := r
	state.On = "a/door"
	for _, tt := range []struct {
		name         string
		rule         ruleKeys
		script, want string
	}{
		{"each press", r, "nothing, press, wait 1m, press, wait 1m, press, wait 1m", "0s heater on for 5m0s, 1m0s heater - held, 2m0s heater on for 5m0s"},
		{"for: ends it in any case", r, "nothing, press, wait 1h, press, wait 1s", "0s heater on for 5m0s, 3m20s heater on for 5m0s held, 6m40s heater on for 3m20s held, 8m53.333333333s heater on for 1m6.666666667s held, 1h0m0s heater on for 5m0s"},
		{"a release of the button is none", r, "nothing, button on, button off, wait 1m, button on, button off, wait 1m", "0s heater on for 5m0s, 1m0s heater - held"},
		{"a press and its release are told at once", r, "nothing, button off, wait 1m, button off, wait 1m", "0s heater on for 5m0s, 1m0s heater - held"},
		{"if: keeps nobody from switching it off", cold, "nothing, t 4, press, t 9, wait 1m, press, wait 1m, press, wait 1m", "0s heater on for 5m0s, 1m0s heater - held"},
		{"a press while it waits ends that", r, "nothing, refuse unsafe, press, wait 1s, press, refuse, wait 1h", "0s heater on for 5m0s unsafe"},
		{"what a person took over is not the rule's to release", r, "nothing, press, take ann, wait 2m, press, wait 1s", "0s heater on for 5m0s, 2m0s heater on for 5m0s"},
		{"a state that becomes on", state, "door off, door on, door off, wait 1m, door on, wait 1m", "0s heater on for 5m0s, 1m0s heater - held"},
	} {
		if got := script(t, tt.rule, tt.script); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.name, got, tt.want)
		}
	}
	for _, wrong := range []ruleKeys{
		{On: "a/button", Toggle: true, Do: doHeater(0)}, {At: "7:30", Toggle: true, Do: doHeater(time.Minute)},
		{Every: time.Minute, Toggle: true, Do: doHeater(time.Minute)}, {When: "a/door", Toggle: true, Hold: holdHeater("").Hold},
	} {
		if _, err := wrong.rule().Define(); err == nil {
			t.Errorf("%+v is accepted", wrong)
		}
	}
}
