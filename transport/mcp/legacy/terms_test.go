package legacy

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/node"

	"github.com/go-json-experiment/json"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// formal tells what terms it was called on, and waits for somebody else.
type formal struct{ asked atomic.Int32 }

func (*formal) Tools() []tools.Tool {
	return []tools.Tool{{Name: "terms", Input: []byte(`{"type":"object"}`)}, {Name: "wait", Input: []byte(`{"type":"object"}`)}}
}

func (f *formal) Call(_ context.Context, _ agents.Principal, c tools.Call) (tools.Result, error) {
	if c.Tool == "terms" {
		text, err := json.Marshal(c.Terms)
		return tools.Result{Value: map[string]string{"terms": string(text)}}, err
	}
	f.asked.Add(1)
	return tools.Result{NeedInput: &tools.NeedInput{
		State: "s", Elsewhere: "have the owner run it",
		Questions: []tools.Question{{Key: "q", Method: "elicitation/create", Params: map[string]any{"message": "?", "requestedSchema": map[string]any{"type": "object", "properties": map[string]any{}}}}},
	}}, nil
}

func TestTerms(t *testing.T) {
	f := &formal{}
	n := node.New(node.Parts{Hub: node.NewHub(nil, forgetful{}, func(a string) string { return a }), Token: token, Tools: []tools.Agent{f}})
	s := New(n, tools.New(n, n), "fake", "1", "")
	t.Cleanup(s.Close)
	c := overStream(t, s, &sdk.ClientOptions{ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		t.Error("the client is asked for the owner's word")
		return &sdk.ElicitResult{Action: "accept"}, nil
	}})
	for _, tt := range []struct {
		meta  sdk.Meta
		wants string
	}{
		{nil, `{}`},
		{sdk.Meta{"other": 1}, `{}`},
		{sdk.Meta{"agentsite/idempotency-key": "k", "agentsite/expires-in": 2.5}, `{"agentsite/idempotency-key":"k","agentsite/expires-in":2.5}`},
		{sdk.Meta{"agentsite/idempotency-key": 7}, "invalid: _meta: "},
		{sdk.Meta{"agentsite/idempotency-key": nil}, "invalid: _meta: "},
		{sdk.Meta{"agentsite/expires-in": nil}, "invalid: _meta: "},
		{sdk.Meta{"agentsite/expires-in": "1s"}, "invalid: _meta: "},
	} {
		res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "terms", Meta: tt.meta})
		if err != nil {
			t.Fatal(err)
		}
		got := textOf(t, res.Content[0])
		if m, ok := res.StructuredContent.(map[string]any); ok {
			got, _ = m["terms"].(string)
		}
		if got != tt.wants && !(strings.HasPrefix(tt.wants, "invalid: ") && strings.HasPrefix(got, tt.wants)) {
			t.Errorf("%v: %s, want %s", tt.meta, got, tt.wants)
		}
	}

	// A step that somebody else has to do is reported at once; no answer of the client could replace
	// it.
	res := call(t, c, "wait", nil)
	if !res.IsError || res.Meta[faultKey] != "unavailable" || !strings.Contains(textOf(t, res.Content[0]), "have the owner run it") || f.asked.Load() != 1 {
		t.Errorf("%+v, asked %d times", res, f.asked.Load())
	}
}
