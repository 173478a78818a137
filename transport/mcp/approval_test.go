package mcp_test

import (
	"context"
	"strings"
	"testing"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/node"
	"agentsite/transport/mcp"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
)

// formal tells what terms it was called on, and waits for somebody else.
type formal struct{}

func (formal) Tools() []tools.Tool { return []tools.Tool{{Name: "terms"}, {Name: "wait"}} }

func (formal) Call(_ context.Context, _ agents.Principal, c tools.Call) (tools.Result, error) {
	if c.Tool == "terms" {
		text, err := json.Marshal(c.Terms)
		return tools.Result{Value: map[string]string{"terms": string(text)}}, err
	}
	return tools.Result{NeedInput: &tools.NeedInput{State: "s", Elsewhere: "have the owner run it"}}, nil
}

// TestTermsAndApproval: the terms in a call's _meta arrive in both encodings, and instructions for
// the owner are where every client looks.
func TestTermsAndApproval(t *testing.T) {
	hub := node.NewHub(nil, forgetful{}, func(a string) string { return "t:" + a })
	n := node.New(node.Parts{Hub: hub, Token: "secret", Tools: []tools.Agent{formal{}}})
	b := &bench{dispatcher: rpc.NewDispatcher(mcp.New(t.Context(), n, tools.New(n, n), mcp.Implementation{Name: "test", Version: "1"}, "").Methods())}
	terms := strings.Replace(message("tools/call", `"name":"terms"`, "{}"), `"_meta":{`, `"_meta":{"agentsite/idempotency-key":"k","agentsite/expires-in":2.5,`, 1)
	if got := b.lines(t, terms, nil)[0]; field(t, got, "result", "structuredContent", "terms") != `{"agentsite/idempotency-key":"k","agentsite/expires-in":2.5}` {
		t.Error(got)
	}
	var inCBOR string
	b.say(t.Context(), rpc.CBOR, toCBOR(t, terms), local, nil, func(s string) { inCBOR = s })
	if !strings.Contains(inCBOR, `"agentsite/idempotency-key":"k","agentsite/expires-in":2.5`) {
		t.Errorf("%q", inCBOR)
	}
	got := b.lines(t, message("tools/call", `"name":"wait"`, "{}"), nil)[0]
	if field(t, got, "result", "resultType") != "input_required" || field(t, got, "result", "_meta", "agentsite/approval") != "have the owner run it" ||
		field(t, got, "result", "requestState") == nil || field(t, got, "result", "inputRequests") != nil || !strings.Contains(got, `"content":[{"type":"text","text":"have the owner run it"}]`) {
		t.Error(got)
	}
}
