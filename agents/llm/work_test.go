package llm

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/llm/chat"
	"agentsite/agents/llm/chat/chattest"
	"agentsite/agents/task"
	"agentsite/agents/tools"

	"github.com/go-json-experiment/json"
)

// completer is a model that is a function.
type completer func(chat.Request) (chat.Answer, error)

func (f completer) Complete(_ context.Context, r chat.Request, _ func(string)) (chat.Answer, error) {
	return f(r)
}

// nobody offers no tools of programs.
type nobody struct{ tools.Hosted }

func (nobody) Tools(agents.Principal) ([]tools.Tool, error)         { return nil, nil }
func (nobody) Refuse(_ agents.Principal, _ string, err error) error { return err }

// talker returns an agent with a model.
func talker(t *testing.T, m Completer) *Agent {
	t.Helper()
	now := func() (time.Time, bool) { return time.Unix(1e9, 0), true }
	ledger, err := ReadLedger(nil, now, func([]byte) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	a := New(&World{Hosted: nobody{}, Now: now, Ledger: ledger, Queues: new(chat.Queues), Open: func(Model) Completer { return m }})
	a.SetName("x")
	a.Model = Model{URL: "http://127.0.0.1:1/v1", Name: "m", Context: 100_000}
	if _, err := a.Define(); err != nil {
		t.Fatal(err)
	}
	return a
}

func work(t *testing.T, a *Agent, site agents.Site) (out Answer, err error) {
	t.Helper()
	res, err := a.Work(t.Context(), agents.Principal{ID: "llm:x"}, site, &fakeWork{task: task.Task{Text: "look", Agent: "x"}})
	if err == nil {
		err = json.Unmarshal(res, &out)
	}
	return out, err
}

// camera is fakeSite with a camera, and nothing else.
type camera struct{ *fakeSite }

func (camera) Offer(context.Context, agents.Principal) (*agents.Offer, error) {
	return &agents.Offer{Capture: []string{"yard/image"}}, nil
}

// TestBounds: a model that calls again and again is asked 8 times, the last time without tools, and
// four calls of each answer are made.
func TestBounds(t *testing.T) {
	var asked []chat.Request
	site := &fakeSite{}
	a := talker(t, completer(func(r chat.Request) (a chat.Answer, err error) {
		asked = append(asked, r)
		for i := range 6 {
			c := called("capture_image", `{"camera":"yard/image"}`).Calls[0]
			c.ID = fmt.Sprint(i)
			a.Calls = append(a.Calls, c)
		}
		a.Text = fmt.Sprint("turn ", len(asked))
		return a, nil
	}))
	a.Limits.Tokens = 1e9
	got, err := work(t, a, camera{site})
	if err != nil || got.Text != "turn 8" || len(asked) != 8 || len(site.done) != 7*4 {
		t.Errorf("%+v %v, %d requests, %d calls", got, err, len(asked), len(site.done))
	}
	if len(asked[6].Tools) == 0 || len(asked[7].Tools) != 0 {
		t.Error("only the last request is to be without tools")
	}
	said := asked[1].Messages[len(asked[1].Messages)-6:]
	for i, m := range said {
		if m.CallID != fmt.Sprint(i) || strings.Contains(m.Text, `"busy"`) != (i >= 4) {
			t.Errorf("call %d: %+v", i, m)
		}
	}
}

// TestPicture: a model that takes pictures is shown those of cameras, after the results of its calls,
// and counts as having read what others wrote; another one is shown none.
func TestPicture(t *testing.T) {
	for _, images := range []bool{true, false} {
		var asked []chat.Request
		a := talker(t, completer(func(r chat.Request) (chat.Answer, error) {
			asked = append(asked, r)
			if len(asked) == 1 {
				return called("capture_image", `{"camera":"yard/image"}`), nil
			}
			return chat.Answer{Text: "a yard"}, nil
		}))
		a.Model.Images = images
		got, err := work(t, a, camera{&fakeSite{}})
		if err != nil || (got.Foreign != "") != images {
			t.Errorf("%v: %+v %v", images, got, err)
		}
		last := asked[1].Messages[len(asked[1].Messages)-1]
		if !images {
			if last.Role != chat.Tool {
				t.Errorf("it is shown %+v", last)
			}
			continue
		}
		if last.Role != chat.User || len(last.Images) != 1 || last.Images[0].MIME != "image/png" || string(last.Images[0].Data) != "x" {
			t.Errorf("it is shown %+v", last)
		}
	}
}

// TestUnreached: a server that is off uses up nothing of the day, and neither does a key that cannot be
// read; one that fails after it was sent the request may have used all of it, each time that it is sent.
func TestUnreached(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	off := ln.Addr().String()
	ln.Close()
	busy := chattest.New(t, chattest.Plain, nil)
	busy.Raw = func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) }
	for name, tt := range map[string]struct {
		e     *chat.Endpoint
		used  bool
		calls int
	}{
		"off":    {&chat.Endpoint{URL: "http://" + off + "/v1"}, false, 1},
		"no key": {&chat.Endpoint{URL: busy.Endpoint(), Key: func() (string, error) { return "", fmt.Errorf("no key") }}, false, 1},
		"fails":  {&chat.Endpoint{URL: busy.Endpoint()}, true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer tt.e.CloseIdle()
			a := talker(t, tt.e)
			if _, err := work(t, a, camera{&fakeSite{}}); err == nil {
				t.Fatal("it answers")
			}
			if e := a.world.Ledger.current("x"); (e.Tokens > 0) != tt.used || e.Calls != tt.calls {
				t.Errorf("%+v", e)
			}
		})
	}
}

// TestProse: a call that a server has left in the text is not made, and its asker is told why.
func TestProse(t *testing.T) {
	s := chattest.New(t, chattest.Prose, func([]byte) chat.Answer {
		return called("switch_output", `{"output":"lamp/relay","on":true}`)
	})
	e := &chat.Endpoint{URL: s.Endpoint()}
	defer e.CloseIdle()
	site := &fakeSite{}
	got, err := work(t, talker(t, e), offering{site})
	if err != nil || got.Note == "" || len(site.done) != 0 || len(got.Receipt) != 0 || !strings.Contains(got.Text, "lamp/relay") {
		t.Errorf("%+v %v %q", got, err, site.done)
	}
	offered := []*tools.Tool{{Name: "switch_output"}}
	for text, want := range map[string]bool{
		`{"name": "switch_output", "parameters": {"on": true}}`:                             true,
		"<function=switch_output>\n<parameter=on>true</parameter>":                          true,
		"```json\n{\"name\":\"switch_output\",\"arguments\":{}}\n```":                       true,
		"I would call switch_output for that, and its arguments are the lamp and on.":       false,
		`{"name": "other_tool", "arguments": {}}`:                                           false,
		"The lamp is off. The tool \"switch_output\" is there to switch it; shall I do so?": false,
	} {
		if prose(text, offered) != want {
			t.Errorf("%s", text)
		}
	}
}

// TestCut: a server that counts far fewer tokens than it was sent has cut the request, and the asker
// and the owner are told so, until it counts enough.
func TestCut(t *testing.T) {
	counted := 0
	a := talker(t, completer(func(r chat.Request) (chat.Answer, error) {
		return chat.Answer{Text: "hm", Usage: chat.Usage{Prompt: counted, Answer: 1, Known: true}}, nil
	}))
	for _, tt := range []struct {
		counted int
		cut     bool
	}{{5000, false}, {50, true}, {5000, false}} {
		counted = tt.counted
		got, err := work(t, a, camera{&fakeSite{}})
		if err != nil || (got.Note != "") != tt.cut || strings.Contains(a.Report(t.Context()).Says, "50 tokens of") != tt.cut {
			t.Errorf("%d: %+v %v, %q", tt.counted, got, err, a.Report(t.Context()).Says)
		}
	}
}

// TestPriority: rules and schedules of the site come after people, and no name of a token is one.
func TestPriority(t *testing.T) {
	for asker, want := range map[string]chat.Priority{
		"rule:frost": chat.Rule, "routine:night": chat.Schedule, "llm:rule": chat.Chat, "token:rule.1f3a0b9c": chat.Chat,
		"did:key:rule": chat.Chat, "local": chat.Chat, "rule": chat.Chat, "rule:": chat.Chat, "rule:a:b": chat.Chat,
	} {
		if got := (&run{task: task.Task{Asker: asker}}).priority(); got != want {
			t.Errorf("%s asks with the priority %v", asker, got)
		}
	}
}
