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
	"agentsite/agents/principal"
	"agentsite/agents/tools"
	"agentsite/device"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// shelf is an agent with a tool of its name, and one that others have, too.
type shelf string

func (s shelf) Tools() []tools.Tool {
	return []tools.Tool{{Name: string(s)}, {Name: "shared", Title: string(s)}}
}
func (s shelf) Call(_ context.Context, p agents.Principal, c tools.Call) (tools.Result, error) {
	return tools.Result{Value: string(s) + " " + c.Tool + " for " + p.ID}, nil
}

var errBroken = errors.New("broken")

// plain is an agent whose tool fails.
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
	n := New(Parts{Hub: newHub(), Token: "secret"})
	own := agents.Principal{Kind: principal.SiteToken, ID: "token", Account: "token"}
	for _, tt := range []struct {
		name, token string
		here        bool
		want        agents.Principal
		says        string
	}{
		{"the token", "secret", true, own, ""},
		{"the token over the network", "secret", false, agents.Principal{}, wrong},
		{"nothing", "", true, agents.Principal{}, none},
		{"nothing over the network", "", false, agents.Principal{}, none},
		{"a wrong token", "Secret", true, agents.Principal{}, wrong},
		{"a longer token", "secret ", true, agents.Principal{}, wrong},
		{"a shorter token", "secre", true, agents.Principal{}, wrong},
		{"a principal's name", "local", true, agents.Principal{}, wrong},
	} {
		got, err := n.Bearer(tt.token, tt.here)
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
	if got, err := n.Key("12D3"); got != (agents.Principal{}) || err == nil || err.Error() != none {
		t.Errorf("a key: %+v, %v", got, err)
	}
	if _, err := New(Parts{Hub: newHub()}).Bearer("", true); err == nil {
		t.Error("a site without a token lets anybody in")
	}
}

// TestNobody: every method refuses the zero principal. A method that is added and
// takes a principal is found by reflection.
func TestNobody(t *testing.T) {
	n := New(Parts{Hub: newHub(), Token: "secret", Tools: []tools.Agent{shelf("a"), plain{}}})
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
			if !slices.Contains([]string{"Key", "Bearer", "Replace", "ReplaceAgents", "ReplaceTools", "Recheck", "NoteRevoked", "NoteDefect"}, name) { // those but for the first two are the wiring's alone
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
	if tried != 46 {
		t.Errorf("%d methods ask who asks, want 46", tried)
	}
}

func TestNodeGathers(t *testing.T) {
	n := New(Parts{Hub: newHub(), Token: "secret", Tools: []tools.Agent{shelf("a"), plain{}, shelf("b")}})
	p := agents.Principal{ID: "x"}
	list, _ := n.Tools(p)
	var names []string
	for _, t := range list {
		names = append(names, t.Name)
	}
	if want := []string{"a", "shared", "plain", "b", "shared"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
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
}

// TestHost: other agents take the place of those that were there, and the watchers of
// offers are told. A watch outlives it.
func TestHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		n := New(Parts{Hub: h, Token: "secret", Tools: []tools.Agent{shelf("one")}})
		who := agents.Principal{ID: "x"}
		told, stop := watch(t, h, agents.Change{Tools: true, Resources: true}, "agentsite:///a/b")
		<-told // it has begun
		synctest.Wait()
		n.ReplaceTools(shelf("two"), plain{})
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
