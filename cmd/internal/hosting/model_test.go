package hosting

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/llm"
	"agentsite/agents/llm/chat"
	"agentsite/agents/task"
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
		if len(a.Receipt) != 2 || a.Receipt[1].Outcome != "denied" || !strings.Contains(a.Receipt[0].Does, "lamp/relay") || a.Receipt[0].Outcome != "done" || a.Foreign != "" {
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
		told := "The lamp and the heater are on.\n[the site: " + a.Receipt[0].Does
		if a := answerOf(v.T, v.say("a", here, "c", "thanks")); a.Text != "nothing more" || len(a.Receipt) != 0 {
			v.Errorf("%+v", a)
		}
		if got := m.asked[0].Messages; len(got) != 4 || got[1].Text != "it is dark" || !strings.HasPrefix(got[2].Text, told) {
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
