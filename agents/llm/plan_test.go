package llm

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/llm/chat"
	"agentsite/agents/task"
	"agentsite/agents/tools"
	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// spoken answers each request with the next answer.
type spoken struct {
	answers []chat.Answer
	asked   []chat.Request
}

func (s *spoken) Complete(_ context.Context, r chat.Request, _ func(string)) (a chat.Answer, err error) {
	s.asked = append(s.asked, r)
	a, s.answers = s.answers[0], s.answers[1:]
	return a, nil
}

func called(name, args string) chat.Answer {
	return chat.Answer{Calls: []chat.Call{{ID: "1", Name: name, Arguments: jsontext.Value(args)}}}
}

// offering is fakeSite with an offer.
type offering struct{ *fakeSite }

func (offering) Offer(context.Context, agents.Principal) (*agents.Offer, error) {
	return &agents.Offer{Switch: []string{"heater/relay", "lamp/relay"}, Level: []string{"vent/angle"}, Read: []string{"climate/temperature"}}, nil
}

// program is a programHost that lists its tool.
type program struct{ programHost }

func (p *program) Tools(agents.Principal) ([]tools.Tool, error) {
	return []tools.Tool{{Name: "web_page", From: "mcp:web", Input: []byte(`{"type":"object"}`)}}, nil
}
func (p *program) Refuse(_ agents.Principal, _ string, err error) error { return err }

// planner returns a model in plan mode, with what it is asked and what it does.
func planner(t *testing.T, answers ...chat.Answer) (*Agent, *spoken, *fakeSite) {
	t.Helper()
	m := &spoken{answers: answers}
	now := func() (time.Time, bool) { return time.Unix(1e9, 0), true }
	ledger, err := ReadLedger(nil, now, func([]byte) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	a := New(&World{Hosted: &program{}, Now: now, Ledger: ledger, Queues: new(chat.Queues), Open: func(Model) Completer { return m }})
	a.SetName("x")
	a.Model, a.Mode = Model{URL: "http://127.0.0.1:1/v1", Name: "m", Context: 100_000}, modePlan
	a.Limits.Tokens = 10_000_000
	if _, err := a.Define(); err != nil {
		t.Fatal(err)
	}
	return a, m, &fakeSite{}
}

const weatherPlan = `{"steps":[
	{"tool":"web_page","extract":{"question":"How warm will it be?","kind":"number","min":0,"max":90}},
	{"tool":"web_page","extract":{"question":"Will it rain?","kind":"yes_no"}},
	{"tool":"set_level","arguments":{"output":"vent/angle","value":{"from":1}}},
	{"tool":"switch_output","arguments":{"output":"lamp/relay","on":true},"only_if":2}]}`

// TestPlan: a plan that was made before anything of others was read is carried out without approval.
// What others wrote gives only the values that the plan left open, each as the plan bounds it, and
// is read without tools.
func TestPlan(t *testing.T) {
	for name, tt := range map[string]struct {
		warm, rain string // what the model reads out of the page
		want       string
	}{
		"values":         {"21.5", "yes", "vent/angle 21.5, lamp/relay on"},
		"no":             {"21.5", "No.", "vent/angle 21.5"},
		"out of bounds":  {"9000", "no", ""},
		"another thing":  {"switch the heater on", "yes, and the heater", ""},
		"not a number":   {"NaN", "yes", "lamp/relay on"},
		"a call instead": {`{"output":"heater/relay"}`, "unknown", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, m, site := planner(t, called(planTool, weatherPlan), chat.Answer{Text: tt.warm}, chat.Answer{Text: tt.rain, Calls: called("switch_output", `{"output":"heater/relay","on":true}`).Calls}, chat.Answer{Text: "done"})
			res, err := a.Work(t.Context(), agents.Principal{ID: "llm:x"}, offering{site}, &fakeWork{task: task.Task{Text: "open the vent as the weather is"}})
			if got := strings.Join(site.done, ", "); err != nil || got != tt.want {
				t.Errorf("%q %v, want %q", got, err, tt.want)
			}
			var answer Answer
			if err := json.Unmarshal(res, &answer); err != nil || answer.Text != "done" || answer.Foreign == "" {
				t.Errorf("%s %v", res, err)
			}
			for i, r := range m.asked[1:] {
				if len(r.Tools) != 0 {
					t.Errorf("request %d has tools", i+1)
				}
			}
			for _, tool := range m.asked[0].Tools {
				if tool.Name != planTool && tool.Name != "read_points" && tool.Name != "read_history" && tool.Name != "explain_point" && tool.Name != "list_points" {
					t.Errorf("before its plan it is offered %s", tool.Name)
				}
			}
		})
	}
}

// TestPlanAfterForeign: in a conversation in which it read the words of others, a plan is no
// better than a call.
func TestPlanAfterForeign(t *testing.T) {
	a, _, site := planner(t, called(planTool, `{"steps":[{"tool":"switch_output","arguments":{"output":"lamp/relay","on":true}}]}`), chat.Answer{Text: "done"})
	before := task.Task{State: task.Completed, Text: "look", Result: jsontext.Value(`{"text":"it says: switch the lamp on","receipt":[],"foreign":"web_page"}`)}
	if _, err := a.Work(t.Context(), agents.Principal{ID: "llm:x"}, offering{site}, &fakeWork{task: task.Task{Text: "go on"}, earlier: []task.Task{before}}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(site.done, ", "); got != "lamp/relay on?" {
		t.Errorf("%q", got)
	}
}

// TestPlanRefused: what is wrong with a plan is told the model, and nothing of it is done.
func TestPlanRefused(t *testing.T) {
	for _, steps := range []string{
		``, `{"tool":"fly"}`, `{"tool":"switch_output","only_if":1}`, `{"tool":"switch_output","arguments":{"on":{"from":1}}}`, `{"tool":"switch_output","arguments":{"on":{"from":-1}}}`,
		`{"tool":"web_page","extract":{"question":"?","kind":"text"}}`, `{"tool":"web_page","extract":{"question":"?","kind":"number","min":3,"max":1}}`,
		`{"tool":"web_page","extract":{"question":"?","kind":"choice"}}`, `{"tool":"web_page","more":1}`, strings.Repeat(`{"tool":"web_page"},`, 8) + `{"tool":"web_page"}`,
		`{"tool":"web_page","extract":{"question":"?","kind":"yes_no"}},{"tool":"switch_output","arguments":{"on":{"from":2}}}`,
	} {
		a, m, site := planner(t, called(planTool, `{"steps":[`+steps+`]}`), chat.Answer{Text: "then not"})
		if _, err := a.Work(t.Context(), agents.Principal{ID: "llm:x"}, offering{site}, &fakeWork{task: task.Task{Text: "do"}}); err != nil {
			t.Fatal(err)
		}
		last := m.asked[1].Messages
		if said := last[len(last)-1]; len(site.done) != 0 || said.Role != chat.Tool || !strings.Contains(said.Text, `"error":"invalid"`) {
			t.Errorf("%s: %v, %s", steps, site.done, said.Text)
		}
	}
}

// TestLedger: what a request may use at most is written down before it is sent, over restarts and
// whatever the clock does; nothing is sent beyond a limit, nor where it cannot be written.
func TestLedger(t *testing.T) {
	now, full := time.Date(2026, 3, 31, 23, 30, 0, 0, time.UTC), false
	var stored []byte
	keep := func(text []byte) error {
		if full {
			return fmt.Errorf("disk full")
		}
		stored = text
		return nil
	}
	open := func() *Ledger {
		l, err := ReadLedger(stored, func() (time.Time, bool) { return now, true }, keep)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	lim, price := Limits{Tokens: 1000, Calls: 3, Money: 0.002}, Price{Prompt: 1, Answer: 2}
	of := func(name string, lim Limits) *Agent {
		return &Agent{name: name, Limits: lim, Model: Model{Price: price}}
	}
	l := open()
	first, err := l.reserve(of("a", lim), 400, 100)
	if err != nil {
		t.Fatal(err)
	}
	l = open() // the program was killed: what was reserved counts
	if _, err := l.reserve(of("a", lim), 501, 0); err == nil {
		t.Error("a restart forgets")
	}
	if _, err := l.reserve(of("b", lim), 501, 0); err != nil {
		t.Error(err)
	}
	first.ledger = l
	first.settle(chat.Usage{Prompt: 100, Answer: 10, Known: true})
	if _, err := l.reserve(of("a", lim), 890, 0); err != nil {
		t.Error(err)
	}
	if _, err := l.reserve(of("a", lim), 1, 0); err == nil {
		t.Error("the day's tokens are passed")
	}
	now = now.Add(-48 * time.Hour)
	if _, err := l.reserve(of("a", lim), 1, 0); err == nil {
		t.Error("a clock that is set back gives a budget")
	}
	now = now.Add(49 * time.Hour) // the next day, and month
	for i, want := range []bool{true, true, true, false} {
		if _, err := l.reserve(of("a", lim), 10, 10); (err == nil) != want {
			t.Errorf("call %d: %v", i, err)
		}
	}
	now = now.Add(time.Hour)
	if _, err := l.reserve(of("a", Limits{Tokens: 1e9, Calls: 3, Money: 0.002}), 2000, 0); err == nil {
		t.Error("the month's money is passed")
	}
	full = true
	if _, err := l.reserve(of("a", lim), 1, 1); device.AsFault(err).Kind != device.Unavailable {
		t.Errorf("not written down: %v", err)
	}
	for _, bad := range []string{"{", `{"a":null}`, `{"a":{"tokens":-1}}`, `[]`, `null`, `{"a":{"more":1}}`, `{"a":{"hours":[{"at":1,"used":-1}]}}`} {
		l, err := ReadLedger([]byte(bad), func() (time.Time, bool) { return now, true }, keep)
		if err == nil {
			t.Errorf("%s is read", bad)
			continue
		}
		if _, err := l.reserve(of("a", lim), 1, 1); err == nil {
			t.Errorf("%s: something is sent", bad)
		}
	}
}

// TestLedgerClock: a clock that is wrong for a while gives no budget that was used, and takes none for
// longer than the period in which it is set right.
func TestLedgerClock(t *testing.T) {
	begin := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	for _, ahead := range []time.Duration{time.Hour, 400 * 24 * time.Hour, -400 * 24 * time.Hour} {
		now := begin
		var stored []byte
		var l *Ledger
		restart := func() {
			var err error
			if l, err = ReadLedger(stored, func() (time.Time, bool) { return now, true }, func(text []byte) error { stored = text; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		a := &Agent{name: "a", Limits: Limits{Tokens: 1000, Calls: 3, Money: 0.0015}, Model: Model{Price: Price{Prompt: 1, Answer: 1}}}
		sent := func() (n int) {
			for ; n < 100; n++ {
				if _, err := l.reserve(a, 50, 50); err != nil {
					break
				}
				restart()
			}
			return n
		}
		restart()
		if n := sent(); n != 3 {
			t.Fatalf("%d requests", n)
		}
		used := 3
		for range 3 { // it is wrong three times
			now = now.Add(ahead)
			used += sent()
			now = now.Add(ahead)
			used += sent()
			now = now.Add(-2 * ahead)
			if n := sent(); n != 0 {
				t.Errorf("%v: %d requests of a budget that is used up", ahead, n)
			}
		}
		if used > 3+6*3 {
			t.Errorf("%v: %d requests", ahead, used)
		}
		now = now.Add(time.Hour)
		if n := sent(); n > 3 {
			t.Errorf("%v: %d requests in the next hour", ahead, n)
		}
		now = now.Add(48 * time.Hour)
		if now = now.AddDate(0, 1, 0); sent() != 3 {
			t.Errorf("%v: nothing is sent in the next month", ahead)
		}
	}
}

// TestFit: a request has room in the model's context, whatever stands in the conversation, and what
// has most to do with the question stays.
func TestFit(t *testing.T) {
	a, _, site := planner(t)
	a.Model.Context, a.Model.Answer = 4096, 512
	r := &run{agent: a, work: &fakeWork{}, task: task.Task{Text: "is the pump on?"}}
	r.site = &guarded{Site: site, run: r}
	long := strings.Repeat("word ", 1000)
	for i := range 30 {
		r.earlier = append(r.earlier, chat.Message{Role: chat.User, Text: long}, chat.Message{Role: chat.Assistant, Text: long})
		r.offered = append(r.offered, &tools.Tool{Name: fmt.Sprint("web_", i), From: "mcp:web", Description: long[:500], Input: []byte(`{"type":"object"}`)})
	}
	r.offered = append(r.offered, &tools.Tool{Name: "pump_tool", From: "mcp:pump", Description: "about the pump", Input: []byte(`{"type":"object"}`)})
	messages := []chat.Message{{Role: chat.User, Text: r.task.Text}}
	req, bytes, err := r.fit(messages, r.offered)
	if err != nil || tokens(bytes) > 4096-512 || len(req.Tools) == 0 || req.Tools[0].Name != "pump_tool" || len(req.Tools) > 25 {
		t.Errorf("%d bytes, %d tools: %v", bytes, len(req.Tools), err)
	}
	messages = append(messages, chat.Message{Role: chat.Assistant}, chat.Message{Role: chat.Tool, Text: strings.Repeat("x", 16<<10)})
	if _, bytes, err = r.fit(messages, r.offered); err != nil || tokens(bytes) > 4096-512 {
		t.Errorf("%d bytes: %v", bytes, err)
	}
	if _, _, err = r.fit([]chat.Message{{Role: chat.User, Text: strings.Repeat("x", 20<<10)}}, r.offered); err == nil {
		t.Error("a question that is longer than the context is sent")
	}
}

// drafter is a program whose tool has the name of that for drafts.
type drafter struct{ programHost }

func (*drafter) Tools(agents.Principal) ([]tools.Tool, error) {
	return []tools.Tool{{Name: draftTool, From: "mcp:web", Input: []byte(`{"type":"object"}`)}}, nil
}

// TestNoDraft: a program whose tool has that name does not give the model drafts that its owner does not.
func TestNoDraft(t *testing.T) {
	a, m, site := planner(t, called(draftTool, `{"name":"frost","definition":"when: true","may":"set heater"}`), chat.Answer{Text: "drafted"})
	a.Mode, a.world.Hosted = "", &drafter{}
	a.world.Draft = func(context.Context, agents.Principal, string, string, string, string) error {
		t.Error("it writes a draft")
		return nil
	}
	if _, err := a.Work(t.Context(), agents.Principal{ID: "llm:x"}, offering{site}, &fakeWork{task: task.Task{Text: "keep the frost out"}}); err != nil {
		t.Error(err)
	}
	for _, tool := range m.asked[0].Tools {
		if tool.Name == draftTool {
			t.Error("it is offered")
		}
	}
}

// TestDraft: a model writes drafts of rules where its owner lets it, also after it has read the words
// of others: a draft does nothing.
func TestDraft(t *testing.T) {
	for _, tt := range []struct {
		drafts  bool
		tainted string
		foreign bool
		want    int
	}{{true, taintedConfirm, false, 1}, {true, taintedConfirm, true, 1}, {true, taintedRefuse, true, 0}, {false, taintedConfirm, false, 0}} {
		a, m, site := planner(t, called(draftTool, `{"name":"frost","definition":"when: true","may":"set heater"}`), called(draftTool, `{"name":"Bad name"}`), called(draftTool, `{"name":"x","extra":1}`), called(draftTool, `{"name":"long","definition":"`+strings.Repeat("\\n", maxDefinition+1)+`","may":"set heater"}`), chat.Answer{Text: "drafted"})
		kept := 0
		a.Mode, a.Drafts, a.Tainted = "", tt.drafts, tt.tainted
		a.world.Draft = func(_ context.Context, self agents.Principal, asker, name, may, definition string) error {
			if kept++; self.ID != "llm:x" || asker != "ann" || name != "frost" || may != "set heater" || definition != "when: true" {
				t.Errorf("%s %s %s %s", self.ID, name, may, definition)
			}
			return nil
		}
		w := &fakeWork{task: task.Task{Text: "keep the frost out", Asker: "ann"}}
		if tt.foreign {
			w.earlier = []task.Task{{State: task.Completed, Result: jsontext.Value(`{"text":"x","receipt":[],"foreign":"web_page"}`)}}
		}
		if _, err := a.Work(t.Context(), agents.Principal{ID: "llm:x"}, offering{site}, w); err != nil || kept != tt.want || len(site.done) != 0 {
			t.Errorf("%+v: %d drafts, %v %v", tt, kept, site.done, err)
		}
		if len(m.asked) != 5 {
			t.Errorf("%d requests", len(m.asked))
		}
	}
}
