package node

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/device"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// shelf is an agent that has one of each under its name.
type shelf string

func (s shelf) Tools() []tools.Tool {
	return []tools.Tool{{Name: string(s)}, {Name: "shared", Title: string(s)}}
}
func (s shelf) Call(_ context.Context, p agents.Principal, c tools.Call) (tools.Result, error) {
	return tools.Result{Value: string(s) + " " + c.Tool + " for " + p.ID}, nil
}
func (s shelf) Resources() []tools.Resource { return []tools.Resource{{URI: string(s)}} }
func (s shelf) Templates() []tools.Template { return []tools.Template{{Name: string(s)}} }
func (s shelf) Prompts() []tools.Prompt     { return []tools.Prompt{{Name: string(s)}} }
func (s shelf) ReadResource(_ context.Context, p agents.Principal, uri string) ([]tools.ResourceContent, error) {
	if uri != string(s) {
		return nil, tools.ErrNotFound
	}
	return []tools.ResourceContent{{URI: uri, Text: p.ID}}, nil
}
func (s shelf) Prompt(_ context.Context, _ agents.Principal, name string, _ map[string]string, _ tools.Exchange) (tools.PromptResult, error) {
	switch name {
	case string(s):
		return tools.PromptResult{Description: name}, nil
	case "broken":
		return tools.PromptResult{}, errBroken
	}
	return tools.PromptResult{}, tools.ErrNotFound
}
func (s shelf) Complete(_ agents.Principal, _ tools.Reference, _, prefix string) []string {
	return []string{prefix + string(s)}
}

var errBroken = errors.New("broken")

// plain is an agent with tools and nothing else.
type plain struct{}

func (plain) Tools() []tools.Tool { return []tools.Tool{{Name: "plain"}} }
func (plain) Call(context.Context, agents.Principal, tools.Call) (tools.Result, error) {
	return tools.Result{}, errBroken
}

func TestWho(t *testing.T) {
	const (
		none  = "this needs the site's token in a header: Authorization: Bearer …"
		wrong = "this is not the site's token; agentsite run prints where it is kept"
	)
	n := New(newHub(), "secret", nil)
	for _, tt := range []struct {
		name string
		e    Evidence
		want agents.Principal
		says string
	}{
		{"the owner's socket", Evidence{Local: "owner"}, agents.Principal{ID: "local", Owner: true}, ""},
		{"the agents' socket", Evidence{Local: "agent"}, agents.Principal{ID: "local-agent"}, ""},
		{"the agents' socket as root", Evidence{Local: "agent"}, agents.Principal{ID: "local-agent"}, ""},
		{"the agents' socket with the token", Evidence{Local: "agent", Bearer: "secret"}, agents.Principal{ID: "local-agent"}, ""},
		{"the token", Evidence{Bearer: "secret", Local: "loopback"}, agents.Principal{ID: "token"}, ""},
		{"the token and a peer", Evidence{Bearer: "secret", Peer: "12D3", Local: "loopback"}, agents.Principal{ID: "token"}, ""},
		{"the token over the network", Evidence{Bearer: "secret"}, agents.Principal{}, wrong},
		{"nothing", Evidence{}, agents.Principal{}, none},
		{"a user alone", Evidence{Local: "elsewhere"}, agents.Principal{}, none},
		{"a peer alone", Evidence{Peer: "12D3"}, agents.Principal{}, none},
		{"an unknown socket", Evidence{Local: "root"}, agents.Principal{}, none},
		{"a socket's name in other letters", Evidence{Local: "Owner"}, agents.Principal{}, none},
		{"a wrong token", Evidence{Bearer: "Secret", Local: "loopback"}, agents.Principal{}, wrong},
		{"a longer token", Evidence{Bearer: "secret ", Local: "loopback"}, agents.Principal{}, wrong},
		{"a shorter token", Evidence{Bearer: "secre", Local: "loopback"}, agents.Principal{}, wrong},
		{"a wrong token at an unknown socket", Evidence{Local: "x", Bearer: "x"}, agents.Principal{}, wrong},
	} {
		got, err := n.Who(tt.e)
		if got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
		if tt.says == "" && err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if tt.says != "" && (err == nil || err.Error() != tt.says || device.AsFault(err).Kind != device.Denied) {
			t.Errorf("%s: %v, want denied: %s", tt.name, err, tt.says)
		}
	}
	if _, err := New(newHub(), "", nil).Who(Evidence{}); err == nil {
		t.Error("a site without a token lets anybody in")
	}
}

// TestNobody: every method refuses the zero principal. A method that is added and
// takes a principal is found by reflection.
func TestNobody(t *testing.T) {
	n := New(newHub(), "secret", nil, shelf("a"), plain{})
	v := reflect.ValueOf(n)
	tried := 0
	for i := range v.NumMethod() {
		m := v.Method(i)
		name := v.Type().Method(i).Name
		var args []reflect.Value
		asks := false
		for k := range m.Type().NumIn() {
			switch in := m.Type().In(k); in {
			case reflect.TypeFor[context.Context]():
				args = append(args, reflect.ValueOf(t.Context()))
			case reflect.TypeFor[agents.Principal]():
				asks = true
				args = append(args, reflect.ValueOf(agents.Principal{Owner: true})) // owning nothing
			case reflect.TypeFor[func(agents.Change) error]():
				args = append(args, reflect.ValueOf(func(agents.Change) error { return errBroken }))
			default:
				args = append(args, reflect.Zero(in))
			}
		}
		if !asks {
			if !slices.Contains([]string{"Who", "Admit", "Host", "SetSite", "SetAccess", "SetHosted", "SetSelf", "SetOtherSites", "OnRecheck", "Recheck", "NoteRevoked", "NoteDefect"}, name) { // those but for the first two are the wiring's alone
				t.Errorf("%s does not ask who asks", name)
			}
			continue
		}
		tried++
		out := m.Call(args)
		err, _ := out[len(out)-1].Interface().(error)
		if err == nil || device.AsFault(err).Kind != device.Denied || !strings.HasPrefix(err.Error(), "not authenticated") {
			t.Errorf("%s: %v", name, err)
		}
		if len(out) == 2 && !out[0].IsZero() {
			t.Errorf("%s tells nobody %v", name, out[0])
		}
	}
	if tried != 38 {
		t.Errorf("%d methods ask who asks, want 38", tried)
	}
}

func TestNodeGathers(t *testing.T) {
	n := New(newHub(), "secret", nil, shelf("a"), plain{}, shelf("b"))
	p := agents.Principal{ID: "x"}
	names := func(n int, name func(int) string) (all []string) {
		for i := range n {
			all = append(all, name(i))
		}
		return all
	}
	list, _ := n.Tools(p)
	resources, _ := n.Resources(p)
	templates, _ := n.Templates(p)
	prompts, _ := n.Prompts(p)
	completions, _ := n.Complete(p, tools.Reference{}, "", "x")
	for _, tt := range []struct{ got, want []string }{
		{names(len(list), func(i int) string { return list[i].Name }), []string{"a", "shared", "plain", "b", "shared"}},
		{names(len(resources), func(i int) string { return resources[i].URI }), []string{"a", "b"}},
		{names(len(templates), func(i int) string { return templates[i].Name }), []string{"a", "b"}},
		{names(len(prompts), func(i int) string { return prompts[i].Name }), []string{"a", "b"}},
		{completions, []string{"xa", "xb"}},
	} {
		if !slices.Equal(tt.got, tt.want) {
			t.Errorf("got %v, want %v", tt.got, tt.want)
		}
	}
	call := func(tool string) (any, error) {
		res, err := n.Call(t.Context(), p, tools.Call{Tool: tool})
		return res.Value, err
	}
	for tool, want := range map[string]string{"a": "a a for x", "b": "b b for x", "shared": "a shared for x"} {
		if got, err := call(tool); got != want || err != nil {
			t.Errorf("%s: %v %v, want %s", tool, got, err, want)
		}
	}
	if _, err := call("plain"); err != errBroken {
		t.Error(err)
	}
	if _, err := call("nope"); err != tools.ErrNotFound {
		t.Error(err)
	}
	if c, err := n.ReadResource(t.Context(), p, "b"); err != nil || c[0].Text != "x" {
		t.Error(c, err)
	}
	if _, err := n.ReadResource(t.Context(), p, "nope"); err != tools.ErrNotFound {
		t.Error(err)
	}
	if r, err := n.Prompt(t.Context(), p, "b", nil, tools.Exchange{}); err != nil || r.Description != "b" {
		t.Error(r, err)
	}
	if _, err := n.Prompt(t.Context(), p, "nope", nil, tools.Exchange{}); err != tools.ErrNotFound {
		t.Error(err)
	}
	if _, err := n.Prompt(t.Context(), p, "broken", nil, tools.Exchange{}); err != errBroken {
		t.Errorf("the first agent's own failure is %v", err)
	}
}

// TestHost: other agents take the place of those that were there, and the watchers of
// offers are told. A watch outlives it.
func TestHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		n := New(h, "secret", nil, shelf("one"))
		who := agents.Principal{ID: "x"}
		told, stop := watch(t, h, agents.Change{Tools: true, Resources: true}, "agentsite:///a/b")
		<-told // it has begun
		synctest.Wait()
		n.Host(shelf("two"), plain{})
		if c := <-told; c != (agents.Change{Tools: true, Resources: true}) {
			t.Errorf("told of %+v", c)
		}
		list, err := n.Tools(who)
		if err != nil || len(list) != 3 || list[0].Name != "two" || list[2].Name != "plain" {
			t.Errorf("%+v %v", list, err)
		}
		if _, err := n.Call(t.Context(), who, tools.Call{Tool: "one"}); err != tools.ErrNotFound {
			t.Errorf("what is gone was called: %v", err)
		}
		h.put(good("a/b", device.Number(1)), time.Second)
		if c := <-told; c != (agents.Change{URI: "agentsite:///a/b"}) {
			t.Errorf("told of %+v", c)
		}
		stop()
	})
}
