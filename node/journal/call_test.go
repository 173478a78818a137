package journal

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/node"

	"github.com/go-json-experiment/json"
)

// program offers a tool of another program.
type program struct {
	made []string // what it was called with
	call func() (tools.Result, error)
}

func (*program) Tools() []tools.Tool { return []tools.Tool{{Name: "child_press", From: "mcp:child"}} }
func (p *program) Call(_ context.Context, _ agents.Principal, c tools.Call) (tools.Result, error) {
	args := make(map[string]any)
	if err := c.Args.Decode(&args); err != nil {
		return tools.Result{}, err
	}
	text, _ := json.Marshal(args)
	p.made = append(p.made, string(text))
	return p.call()
}

type arguments string

func (a arguments) Decode(into any) error { return json.Unmarshal([]byte(a), into) }

// TestCallOfProgram: a call of another program's tool is journalled as a move is. With a key it is
// made once, also if the site was killed meanwhile.
func TestCallOfProgram(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "journal")
	open := func(p *program) (*Recorder, *node.Node) {
		w := NewRecorder()
		w.Open(folder)
		return w, node.New(node.Parts{Hub: node.NewHub(nil, nil, agents.PointURI), Journal: w, Tools: []tools.Agent{p}})
	}
	ann := agents.Principal{ID: "ann"}
	call := func(n *node.Node, key, args string, via ...string) (tools.Result, device.FaultKind) {
		c := tools.Call{Tool: "child_press", Args: arguments(args), Terms: agents.Terms{Via: via}}
		if key != "" {
			c.Terms.Key = &key
		}
		res, err := n.Call(t.Context(), ann, c)
		if err != nil {
			return res, device.AsFault(err).Kind
		}
		return res, ""
	}
	answer := tools.Result{From: "mcp:child", Value: map[string]any{"n": 1.0}, Content: []tools.Content{{Text: "pressed"}, {Image: &tools.Blob{MIME: "image/png", Data: []byte{1, 2}}}}}
	p := &program{call: func() (tools.Result, error) { return answer, nil }}
	w, n := open(p)
	for range 2 {
		res, kind := call(n, "once", `{"output":"house/heater","b":[1]}`, "llm:house")
		if kind != "" || res.From != answer.From || len(res.Content) != 2 || res.Content[0].Text != "pressed" || string(res.Content[1].Image.Data) != "\x01\x02" || res.Value.(map[string]any)["n"] != 1.0 {
			t.Errorf("%+v, %v", res, kind)
		}
	}
	if _, kind := call(n, "once", `{}`); kind != device.Invalid {
		t.Errorf("the key of another call: %q", kind)
	}
	if _, kind := call(n, "", `{}`, "1", "2", "3", "4", "5"); kind != device.Denied {
		t.Errorf("through five: %q", kind)
	}
	if _, kind := call(n, "", `[]`); kind != device.Invalid {
		t.Errorf("without an object: %q", kind)
	}
	p.call = func() (tools.Result, error) { return tools.Result{}, device.Faultf(device.Offline, "away") }
	for range 2 {
		if _, kind := call(n, "fails", `{}`); kind != device.Offline {
			t.Errorf("a fault came as %q", kind)
		}
	}
	if len(p.made) != 2 {
		t.Errorf("it was called with %q", p.made)
	}
	if all := w.Recent("house/heater"); len(all) != 0 {
		t.Errorf("the call is told of as one of the heater: %+v", all)
	}
	p.call = func() (tools.Result, error) { w.crash(); return answer, nil }
	call(n, "killed", `{}`)

	p = &program{call: p.call}
	_, n = open(p)
	if _, kind := call(n, "killed", `{}`); kind != device.UnknownOutcome {
		t.Errorf("after a kill: %q", kind)
	}
	if res, kind := call(n, "once", `{"output":"house/heater","b":[1]}`); kind != "" || res.Content[0].Text != "pressed" {
		t.Errorf("after a kill an earlier one: %+v, %q", res, kind)
	}
	if len(p.made) != 0 {
		t.Errorf("it was called again: %q", p.made)
	}
	intents := 0
	for _, e := range entries(t, folder) {
		if e.Kind != Intent {
			continue
		}
		intents++
		if e.Who != "ann" || e.Tool != "child_press" || !strings.HasPrefix(string(e.Args), `{"arguments":`) || e.Key == "once" && len(e.Via) != 1 {
			t.Errorf("%+v", e)
		}
	}
	if intents != 3 {
		t.Errorf("%d intents", intents)
	}
}

// TestCallPanics: of a call that panicked its repetition has an unknown outcome, and is not told to wait.
func TestCallPanics(t *testing.T) {
	w := NewRecorder()
	w.Open(filepath.Join(t.TempDir(), "journal"))
	p := &program{call: func() (tools.Result, error) { panic("a defect") }}
	n := node.New(node.Parts{Hub: node.NewHub(nil, nil, agents.PointURI), Journal: w, Tools: []tools.Agent{p}})
	call := func() (err error) {
		defer func() { recover() }() // as the dispatcher does
		_, err = n.Call(t.Context(), agents.Principal{ID: "ann"}, tools.Call{Tool: "child_press", Args: arguments("{}"), Terms: agents.Terms{Key: new("key")}})
		return err
	}
	call()
	if err := call(); err == nil || device.AsFault(err).Kind != device.UnknownOutcome || len(p.made) != 1 {
		t.Errorf("%v, made %d times", err, len(p.made))
	}
}
