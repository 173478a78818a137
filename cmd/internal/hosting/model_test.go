package hosting

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/llm"
	"agentsite/agents/llm/chat"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/device/guard"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// scripted answers each request with the next of its answers, and then says nothing more.
type scripted struct {
	answers []chat.Answer
	asked   []chat.Request
}

func (s *scripted) Complete(_ context.Context, r chat.Request, say func(string)) (chat.Answer, error) {
	s.asked = append(s.asked, r)
	if len(s.answers) == 0 {
		return chat.Answer{Text: "nothing more"}, nil
	}
	a := s.answers[0]
	s.answers = s.answers[1:]
	if say != nil {
		say(a.Text)
	}
	return a, nil
}

func calls(pairs ...string) (a chat.Answer) {
	for i := 0; i < len(pairs); i += 2 {
		a.Calls = append(a.Calls, chat.Call{ID: fmt.Sprint("c", i), Name: pairs[i], Arguments: jsontext.Value(pairs[i+1])})
	}
	return a
}

const gpt = `  gpt: { kind: llm, model: { url: "http://127.0.0.1:1/v1", name: test }, may: "read climate, set lamp max 1m"%s }
`

// say says something to the model of a site, and returns the task when nothing moves any more.
func (v *village) say(site string, p agents.Principal, conversation, text string) task.Task {
	v.Helper()
	t, err := v.sites[site].tasks.Ask(v.ctx, p, task.Request{Agent: "gpt", Text: text, Context: conversation})
	if err != nil {
		v.Fatal(err)
	}
	synctest.Wait()
	t, err = v.sites[site].tasks.Task(v.ctx, p, t.ID)
	if err != nil {
		v.Fatal(err)
	}
	return t
}

func answerOf(t *testing.T, got task.Task) (a llm.Answer) {
	t.Helper()
	if got.State != task.Completed {
		t.Fatalf("%s %s: %s", got.State, got.Fault, got.Says)
	}
	if err := json.Unmarshal(got.Result, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestModel: a model looks and moves by the site's tools, within its permission; it has the
// conversation, and its answer ends with what the site did.
func TestModel(t *testing.T) {
	in(t, rpc.JSON, []string{"a"}, func(v *village) {
		s, m := v.sites["a"], &scripted{}
		s.model = m
		if err := v.configure("a", fmt.Sprintf(gpt, "")); err != nil {
			v.Fatal(err)
		}
		s.warm(4)
		v.sleep(20 * time.Second) // the outputs rest after a start
		m.answers = []chat.Answer{calls("read_points", `{"points":["climate/temperature"]}`), calls("switch_output", `{"output":"lamp/relay","on":true,"for_seconds":30}`, "switch_output", `{"output":"heater/relay","on":true}`), {Text: "The lamp and the heater are on."}}
		a := answerOf(v.T, v.say("a", here, "c", "it is dark"))
		if len(a.Receipt) != 2 || a.Receipt[1].Outcome != "denied" || a.Receipt[0].Does != "set lamp/relay to on for 30s" || a.Receipt[0].Outcome != "done" || a.Foreign != "" {
			v.Errorf("%+v", a)
		}
		if moves := s.book.moves(); len(moves) != 1 || moves[0].Who != "llm:gpt" || !slices.Contains(moves[0].Via, here.ID) {
			v.Errorf("%+v", moves)
		}
		last := m.asked[len(m.asked)-1]
		if text := last.Messages[3].Text; !strings.Contains(text, `"quality":"good"`) {
			v.Errorf("it reads %s", text)
		}
		var names []string
		for _, tool := range last.Tools {
			names = append(names, tool.Name)
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); strings.Contains(got, "emergency_stop") || !strings.Contains(got, "switch_output") {
			v.Errorf("it is offered %s", got)
		}
		m.asked = nil
		if a := answerOf(v.T, v.say("a", here, "c", "thanks")); a.Text != "nothing more" || len(a.Receipt) != 0 {
			v.Errorf("%+v", a)
		}
		if got := m.asked[0].Messages; len(got) != 4 || got[1].Text != "it is dark" || !strings.HasPrefix(got[2].Text, "The lamp and the heater are on.\n[the site: set lamp/relay") {
			v.Errorf("%+v", got)
		}
		m.asked = nil
		if v.say("a", here, "other", "hello"); len(m.asked[0].Messages) != 2 {
			v.Errorf("%+v", m.asked[0].Messages)
		}
	})
}

// visitor returns somebody with a permission on a site.
func (v *village) visitor(site, may string) agents.Principal {
	v.Helper()
	s := v.sites[site]
	words, err := access.ParsePermissions(may)
	if err != nil {
		v.Fatal(err)
	}
	key := identity.New()
	g, err := access.Issue(v.owner, access.Block{Audience: key.ID(), Node: s.key.ID(), Permissions: words})
	if err == nil {
		_, err = s.access.AddGrant(g.Bytes())
	}
	if err != nil {
		v.Fatal(err)
	}
	p, err := s.access.Peer(key.ID().String())
	if err != nil {
		v.Fatal(err)
	}
	return p
}

// worst is a model that calls anything with anything, and claims what it did not do.
type worst struct {
	*rand.Rand
	turns  int
	tokens int
}

var (
	worstTools = []string{
		"list_points", "read_points", "explain_point", "switch_output", "switch_output", "switch_output", "set_level", "release_output", "emergency_stop", "show_text",
		"capture_image", "site_status", "ask_agent", "owner/grant", "owner/reset", "owner/approve", "make_plan", "SWITCH_OUTPUT", "", "tools/call", "switch_output ",
	}
	worstValues = []string{
		`"lamp/relay"`, `"lamp/relay"`, `"heater/relay"`, `"climate/temperature"`, `["climate/temperature"]`, `["heater/relay"]`, `true`, `true`, `false`, `1e309`, `-1`, `60`, `61`, `86400`, `null`, `"on"`, `{}`,
		`"gpt"`, `"a/lamp/relay"`, `"llm:gpt"`, `"\u0000"`, `"../lamp/relay"`,
	}
	worstNames = []string{"output", "output", "on", "on", "for_seconds", "points", "point", "value", "agent", "text", "agentsite/idempotency-key", "approval", "_meta", "hours"}
)

func (w *worst) Complete(_ context.Context, r chat.Request, _ func(string)) (a chat.Answer, err error) {
	pick := func(all []string) string { return all[w.IntN(len(all))] }
	w.turns++
	a.Text = pick([]string{"I switched the heater on.", "The owner approved everything.", "set heater/relay to true: done", ""})
	if w.IntN(5) == 0 {
		a.Text = strings.Repeat(a.Text, 3000)
	}
	for range w.IntN(7) {
		args := "{"
		for i := range w.IntN(4) {
			if i > 0 {
				args += ","
			}
			args += fmt.Sprintf("%q:%s", pick(worstNames), pick(worstValues))
		}
		c := chat.Call{ID: "x", Name: pick(worstTools), Arguments: jsontext.Value(args + "}")}
		if w.IntN(4) == 0 {
			c = chat.Call{ID: "x", Name: "switch_output", Arguments: fmt.Appendf(nil, `{"output":%s,"on":%v}`, pick(worstValues[:3]), w.IntN(2) == 0)}
		}
		if !c.Arguments.IsValid() {
			c = chat.Call{ID: "x", Name: c.Name, Broken: args}
		}
		a.Calls = append(a.Calls, c)
	}
	if w.IntN(3) > 0 { // the budgets are counted by the server's word, or without
		a.Usage = chat.Usage{Prompt: r.Size() / (1 + w.IntN(4)), Answer: w.IntN(r.MaxAnswer + 1), Known: true}
	}
	w.tokens += a.Usage.Prompt + a.Usage.Answer
	if w.IntN(50) == 0 {
		return a, device.Faultf(device.Unavailable, "the server fails")
	}
	return a, nil
}

// TestWorstModel: whatever a model calls, says and uses up, it makes no call beyond its permission,
// passes no budget, and the receipt of each answer is what the journal has.
func TestWorstModel(t *testing.T) {
	turns := 400
	if os.Getenv("SOAK") != "" {
		turns = 1_000_000
	}
	in(t, rpc.JSON, []string{"a"}, func(v *village) {
		budget := 1000 * turns
		s, w := v.sites["a"], &worst{Rand: rand.New(rand.NewPCG(1, 2))}
		s.model = w
		if err := v.configure("a", fmt.Sprintf(gpt, fmt.Sprintf(", limits: { tokens_per_day: %d, calls_per_hour: 3600 }", budget))); err != nil {
			v.Fatal(err)
		}
		s.warm(4)
		v.sleep(20 * time.Second)
		day, refused, seen, moved := int64(0), 0, 0, 0
		for w.turns < turns {
			if now := time.Now().Unix() / 86400; now != day {
				day, w.tokens = now, 0
			}
			v.sleep(time.Duration(w.IntN(3)) * time.Second)
			got := v.say("a", here, fmt.Sprint("c", w.IntN(3)), "do what you want")
			if w.tokens > budget {
				v.Fatalf("%d tokens are used, of %d", w.tokens, budget)
			}
			if got.State == task.Failed && strings.Contains(got.Says, "budget") {
				refused++
				v.sleep(25 * time.Hour)
			}
			var done []string
			all := s.book.moves()
			for _, m := range all[seen:] {
				if m.Who != "llm:gpt" || m.Tool != "switch_output" || !strings.Contains(string(m.Args), `"lamp/relay"`) || !slices.Contains(m.Via, "task/"+got.ID) {
					v.Fatalf("%+v", m)
				}
				var args struct {
					On bool `json:"on"`
				}
				if err := json.Unmarshal(m.Args, &args); err != nil {
					v.Fatal(err)
				}
				done = append(done, "set lamp/relay to "+device.Bool(args.On).String())
			}
			seen, moved = len(all), moved+len(done)
			if len(done) > 2 {
				v.Fatalf("%d moves in one task", len(done))
			}
			if out := s.guard.Status(); slices.ContainsFunc(out, func(o guard.Status) bool { return o.Output == "heater/relay" && o.Value.Bool() }) {
				v.Fatal("the heater is on")
			}
			if got.State != task.Completed {
				continue
			}
			var receipt []string
			for _, line := range answerOf(v.T, got).Receipt {
				if does, _, _ := strings.Cut(line.Does, " for "); does == "set lamp/relay to on" && line.Outcome == "done" {
					receipt = append(receipt, does)
				}
			}
			if !slices.Equal(receipt, done) {
				v.Fatalf("the receipt says %q, and the journal %q", receipt, done)
			}
		}
		if refused == 0 || moved < turns/100 {
			v.Errorf("of %d turns %d tasks came to the end of the budget, and %d moves were made: nothing was tried", w.turns, refused, moved)
		}
		v.Logf("%d turns, %d moves, %d times the budget was used up", w.turns, moved, refused)
	})
}
