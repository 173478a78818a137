package rule_test

import (
	"strings"
	"testing"
	"time"

	"agentsite/agents/rule"
)

func lampBy(formula string) map[string]string { return map[string]string{"a/lamp": formula} }

// TestFormula: a level follows its formula by moves that are not too many, and is at safe where the
// formula is unknown.
func TestFormula(t *testing.T) {
	warm := ruleKeys{When: "a/t > 15 Cel", Follow: lampBy("clamp((a/t - 20 Cel) / 10 Cel * 100, 0, 80)")}
	press := ruleKeys{On: "a/button", Do: []rule.Step{{Follow: lampBy("a/t / 1 Cel"), For: 5 * time.Minute}}}
	once := ruleKeys{On: "a/button", Do: []rule.Step{{Follow: lampBy("a/t / 1 Cel")}}}
	for _, tt := range []struct {
		name         string
		rule         ruleKeys
		script, want string
	}{
		{"it follows, at most each ten seconds", warm, "t 25, wait 1s, t 26, t 27, wait 20s, t 27.05, wait 20s", "0s lamp 50 for 2m0s, 10s lamp 70 for 2m0s held"},
		{"a small change waits for the renewal", warm, "t 25, t 25.08, wait 81s", "0s lamp 50 for 2m0s, 1m20s lamp 51 for 2m0s held"},
		{"a large change back before it was due is none", warm, "t 25, wait 1s, t 26, wait 1s, t 25, wait 1m", "0s lamp 50 for 2m0s"},
		{"bounds", warm, "t 99, wait 11s, t 28.5, wait 11s", "0s lamp 80 for 2m0s"},
		{"at its safe value it is released, and comes again", warm, "t 25, wait 20s, t 18, wait 5s, t 22, wait 6s", "0s lamp 50 for 2m0s, 20s lamp - held, 30s lamp 20 for 2m0s"},
		{"near its safe value it does not begin", warm, "t 20.05, wait 1m, t 20.09, wait 1m, t 20.11, wait 1m", "2m0s lamp 1 for 2m0s"},
		{"unknown releases at once", ruleKeys{When: "a/door", Follow: lampBy("a/t / 1 Cel")}, "door on, t 30, wait 1s, t ?, wait 1h, t 30", "0s lamp 30 for 2m0s, 1s lamp - held, 1h0m1s lamp 30 for 2m0s"},
		{"the end of the rule", warm, "t 25, t 14, wait 1s", "0s lamp 50 for 2m0s, 0s lamp - held"},
		{"a refused change keeps what is held", warm, "t 25, wait 20s, refuse busy, t 27, wait 30s, refuse, wait 31s", "0s lamp 50 for 2m0s, 20s lamp 70 for 2m0s held busy, 25s lamp 50 for 2m0s held busy, 30s lamp 50 for 2m0s held busy, 35s lamp 50 for 2m0s held busy, 40s lamp 50 for 2m0s held busy, 45s lamp 50 for 2m0s held busy, 50s lamp 50 for 2m0s held busy, 55s lamp 50 for 2m0s held, 1m20s lamp 70 for 2m0s held"},
		{"a person takes over", warm, "t 25, wait 20s, take ann, t 27, wait 10m", "0s lamp 50 for 2m0s"},
		{"a person took over, which is not told yet", warm, "t 25, wait 20s, steal ann, t 27, told, wait 10m", "0s lamp 50 for 2m0s, 20s lamp 70 for 2m0s held expired"},
		{"a step", press, "t 30, nothing, press, wait 20s, t 60, wait 10m", "0s lamp 30 for 2m0s, 20s lamp 60 for 2m0s held, 1m40s lamp 60 for 2m0s held, 3m0s lamp 60 for 2m0s held, 4m20s lamp 60 for 40s held"},
		{"a step without for: moves once", once, "t 30, nothing, press, wait 5s, t 60, wait 10m", "0s lamp 30"},
		{"time alone", ruleKeys{When: "a/door", Follow: lampBy("age(a/t) / 1s")}, "t 1, door on, wait 31s", "1s lamp 1 for 2m0s, 11s lamp 11 for 2m0s held, 21s lamp 21 for 2m0s held, 31s lamp 31 for 2m0s held"},
	} {
		if got := script(t, tt.rule, tt.script); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

// TestFormulaMistakes: each is refused with the key that it stands at.
func TestFormulaMistakes(t *testing.T) {
	for _, tt := range []struct {
		of  ruleKeys
		key string
	}{
		{ruleKeys{When: "a/door", Follow: lampBy("a/t")}, "follow"}, // °C
		{ruleKeys{When: "a/door", Follow: lampBy("a/t < 5 Cel")}, "follow"},
		{ruleKeys{When: "a/door", Follow: lampBy("a/door")}, "follow"},
		{ruleKeys{When: "a/door", Follow: lampBy("clamp(a/t, 20 Cel, 10 Cel) / 1 Cel")}, "follow"},
		{ruleKeys{When: "a/door", Follow: lampBy("clamp(a/t / 1 Cel, 20)")}, "follow"},
		{ruleKeys{When: "a/door", Follow: lampBy("")}, "follow"},
		{ruleKeys{When: "a/door", Follow: map[string]string{"a/heater": "1"}}, "follow"},
		{ruleKeys{When: "a/door", Follow: map[string]string{"a/none": "1"}}, "follow"},
		{ruleKeys{When: "a/door", Follow: map[string]string{"far/a/lamp": "1"}}, "follow"},
		{ruleKeys{On: "a/button", Follow: lampBy("1")}, "follow"},
		{ruleKeys{On: "a/button", Do: []rule.Step{{Follow: lampBy("a/t"), For: time.Minute}}}, "do[0]"},
		{ruleKeys{On: "a/button", Do: []rule.Step{{Set: doHeater(0)[0].Set}, {Follow: map[string]string{"a/heater": "1"}}}}, "do[1]"},
	} {
		_, err := tt.of.rule().NewMachine(selfID, machinePoints, "far")
		if err == nil || !strings.HasPrefix(err.Error(), tt.key+":") {
			t.Errorf("%+v: %v", tt.of, err)
		}
	}
}
