package hosted

import (
	"flag"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentsite/agents/agent"
	"agentsite/agents/heartbeat"
	"agentsite/agents/rule"
	"agentsite/node/config"
)

// checkRule checks a configuration with rules as the program does, and fails the test where
// that takes long or much memory. lines are those of the errors.
func checkRule(t *testing.T, text string) (lines []string) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	cfg, err := config.Parse("a.yaml", []byte(text), nil)
	parsed := time.Since(began)
	began = time.Now()
	if err == nil {
		err = Check(cfg, func(cfg *config.Site) []agent.Kind {
			return []agent.Kind{heartbeat.Kind, rule.Kind(rule.World{Place: cfg.Place})}
		})
	}
	checked := time.Since(began)
	runtime.ReadMemStats(&after)
	if parsed > 10*time.Second+time.Duration(len(text))*100*time.Microsecond || checked > 10*time.Second {
		t.Errorf("it takes %v and %v", parsed, checked)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20+500*uint64(len(text)) {
		t.Errorf("%d bytes are allocated for %d", used, len(text))
	}
	if err == nil {
		return nil
	}
	for line := range strings.Lines(err.Error()) {
		if strings.HasPrefix(line, "a.yaml:") { // the others show the place
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	if lines == nil {
		t.Errorf("an error without a place: %v", err)
	}
	return lines
}

// place cuts FILE:LINE:COLUMN off an error; line is 0 where there is none.
func place(text string) (line int, rest string) {
	parts := strings.SplitN(text, ":", 4)
	if len(parts) < 4 || parts[0] != "a.yaml" {
		return 0, text
	}
	line, _ = strconv.Atoi(parts[1])
	return line, parts[3]
}

// TestHostileRules: each of these is refused at a line of the file, in one line of text.
func TestHostileRules(t *testing.T) {
	const hold = ", hold: { a/heater: on } }"
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	tests := func(n int, after string) string {
		return "{ kind: rule, every: 1s, if: a/t < 5 Cel, do: [{ set: { a/heater: on } }], tests: [" + strings.Repeat("{ given: { a/t: 6 Cel }, clock: 2026-11-23 12:00, after: "+after+" },", n) + "] }"
	}
	var points strings.Builder // short enough for a file
	for i := range 100_000 {
		points.WriteString("a/" + strconv.FormatInt(int64(i), 36) + " or ")
	}
	for name, text := range map[string]string{
		"100,000 points":             "{ kind: rule, when: \"" + points.String() + "a/q\"" + hold,
		"deep nesting":               "{ kind: rule, when: \"" + strings.Repeat("(", 100_000) + "\"" + hold,
		"a long not":                 "{ kind: rule, when: \"" + strings.Repeat("not ", 200) + "a/door\"" + hold,
		"64 days each second":        tests(64, "24h"),
		"65 tests":                   tests(65, "1s"),
		"a test of years":            tests(1, "2000000h"),
		"a huge number":              "{ kind: rule, when: a/t < 1" + strings.Repeat("0", 400) + hold,
		"NaN":                        "{ kind: rule, when: a/t < NaN" + hold,
		"hold NaN":                   "{ kind: rule, when: a/door, hold: { a/lamp: .nan } }",
		"hold infinity":              "{ kind: rule, when: a/door, hold: { a/lamp: 1e999 } }",
		"a name that looks alike":    "{ kind: rule, when: а/door" + hold, // Cyrillic
		"an output that looks alike": "{ kind: rule, when: a/door, hold: { а/heater: on } }",
		"a value that looks alike":   "{ kind: rule, when: a/door, hold: { a/heater: оn } }",
		"a full-width less":          "{ kind: rule, when: a/t ＜ 5 Cel" + hold,
		"50,000 outputs":             "{ kind: rule, when: a/door, hold: {" + many(50_000, " a/o%d: on,") + "} }",
		"an empty hold":              "{ kind: rule, when: a/door, hold: {} }",
		"a length that overflows":    "{ kind: rule, when: a/door, for: 9999999999999h" + hold,
		"a length of an expression":  "{ kind: rule, when: age(a/t) < 99999999999999999999h" + hold,
		"a negative length":          "{ kind: rule, when: a/door, for: -1s" + hold,
		"a negative resume":          "{ kind: rule, when: a/door, resume: -1s" + hold,
		"resume of an event":         "{ kind: rule, on: a/button, resume: 1h, do: [{ set: { a/heater: on } }] }",
		"a priority":                 "{ kind: rule, when: a/door, priority: 1000000000" + hold,
		"a priority that overflows":  "{ kind: rule, when: a/door, priority: 99999999999999999999" + hold,
		"no such time":               "{ kind: rule, at: \"60 25 * * *\", do: [{ set: { a/heater: on } }] }",
		"no such day":                "{ kind: rule, at: \"0 0 31 2 *\", do: [{ set: { a/heater: on } }] }",
		"a step for too long":        "{ kind: rule, every: 1s, do: [{ set: { a/heater: on }, for: 25h }] }",
		"20,000 steps":               "{ kind: rule, every: 1s, do: [" + many(20_000, "{ set: { a/o%d: on } },") + "] }",
		"every too often":            "{ kind: rule, every: 1ns, do: [{ set: { a/heater: on } }] }",
		"a name of another":          "{ kind: heartbeat }\n  x: { kind: rule, when: a/door" + hold,
		"a test that gives nonsense": "{ kind: rule, when: a/t < 5 Cel" + strings.TrimSuffix(hold, " }") + ", tests: [{ given: { a/t: 5 furlongs } }] }",
	} {
		t.Run(name, func(t *testing.T) {
			lines := checkRule(t, "site: { name: a }\nagents:\n  x: "+text+"\n")
			if len(lines) == 0 {
				t.Fatal("it is accepted")
			}
			for _, l := range lines {
				if line, says := place(l); line < 1 || line > 4 || len(says) > 500 {
					t.Errorf("at line %d: %.600s", line, l)
				}
			}
			t.Logf("%.200s", lines[0])
		})
	}
	// What the site's points decide is found when they are known; here it is well-formed.
	if lines := checkRule(t, "site: { name: a }\nagents:\n  x: { kind: rule, when: a/door, hold: { a/heater: off } }\n"); lines != nil {
		t.Error(lines)
	}
}

// FuzzRule: no keys of a rule panic or take long, and each mistake has its line.
func FuzzRule(f *testing.F) {
	f.Add("a/t < 5 Cel and age(a/t) < 2m", "a/t > 7 Cel", "", "", "2m", "", "", "a/heater: on", "a/t: 4 Cel", "10m")
	f.Add("", "", "a/door is on", "*/5 8-18 * * mon-fri", "", "", "", "a/lamp: 40", "a/door: on", "24h")
	f.Add("", "", "mean(a/t, 24h) < 5", "", "", "1s", "", "a/lamp: 1e308", "a/t: 4", "24h")
	f.Add("", "", "count(a/b, 1s) > 3", "sunset - 20m", "", "", "5m", "a/heater: on", "a/b: event", "1h")
	f.Add("now between sunrise..sunset", "weekday between fri..mon", "", "", "0s", "", "1h", "a/heater: off", "", "")
	f.Fuzz(func(t *testing.T, when, until, cond, at, length, every, resume, hold, given, after string) {
		var b strings.Builder
		b.WriteString("site: { name: a, place: \"52.5, 13.4\" }\nagents:\n  x:\n    kind: rule\n")
		key := func(name, text string) {
			if text != "" {
				fmt.Fprintf(&b, "    %s: %s\n", name, strconv.QuoteToGraphic(text))
			}
		}
		key("when", when)
		key("until", until)
		key("if", cond)
		key("at", at)
		key("for", length)
		key("every", every)
		key("resume", resume)
		hold = strings.ReplaceAll(hold, "\n", " ")
		if when != "" {
			fmt.Fprintf(&b, "    hold: { %s }\n", hold)
		} else {
			fmt.Fprintf(&b, "    do: [{ set: { %s } }]\n", hold)
		}
		if given != "" {
			fmt.Fprintf(&b, "    tests: [{ given: { %s }, clock: 2026-03-29 01:30, after: %s }]\n", strings.ReplaceAll(given, "\n", " "), strconv.QuoteToGraphic(after))
		}
		began := time.Now()
		lines := checkRule(t, b.String())
		if d := time.Since(began); d > 100*time.Millisecond && flag.Lookup("test.fuzzworker").Value.String() == "true" { // seeds run on slow machines, too
			t.Errorf("it takes %v", d)
		}
		for _, l := range lines {
			if line, _ := place(l); line < 1 || line > math.MaxInt16 {
				t.Errorf("no line: %q", l)
			}
		}
	})
}
