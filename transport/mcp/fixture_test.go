package mcp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/node"
	"agentsite/transport/mcp"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
)

// shelf is an agent and a library of the tests: a tool for each way that a call can end.
type shelf struct{}

type echoIn struct {
	Text string  `json:"text"`
	N    float64 `json:"n,omitzero"`
}

func (shelf) Tools() []tools.Tool {
	var all []tools.Tool
	for _, name := range []string{"echo", "fail", "break", "ask", "note", "needs", "wait"} {
		all = append(all, tools.Tool{Name: name, Description: "for tests", Input: []byte(`{"type":"object"}`)})
	}
	return all
}

func (shelf) Call(ctx context.Context, p agents.Principal, c tools.Call) (tools.Result, error) {
	switch c.Tool {
	case "echo":
		var in echoIn
		if err := c.Args.Decode(&in); err != nil {
			return tools.Result{}, device.Faultf(device.Invalid, "echo: %w", err)
		}
		return tools.Result{Value: in}, nil
	case "fail":
		return tools.Result{}, device.Faultf(device.Unsafe, "not now").In(1500 * time.Millisecond)
	case "break":
		return tools.Result{}, errors.New("a cause that is nobody's business")
	case "ask":
		if len(c.Exchange.Answers) > 0 {
			return tools.Result{Value: map[string]string{"state": c.Exchange.State}}, nil
		}
		return tools.Result{NeedInput: &tools.NeedInput{State: "kept", Questions: []tools.Question{{
			Key: "q", Method: "elicitation/create", Params: map[string]string{"message": "sure?"},
		}}}}, nil
	case "note":
		for i := range 3 {
			c.Note(tools.Note{Progress: float64(i), Total: 2})
		}
		c.Note(tools.Note{Level: "info", Message: "noted"})
		return tools.Result{}, nil
	case "needs":
		return tools.Result{}, &tools.NeedsCapability{Needs: tools.Capabilities{Sampling: true}}
	}
	<-ctx.Done()
	return tools.Result{}, ctx.Err()
}

func (shelf) Resources(context.Context, agents.Principal) ([]tools.Resource, error) {
	return []tools.Resource{{URI: "t:a", Name: "a"}, {URI: "t:b", Name: "b"}}, nil
}
func (shelf) Templates(context.Context, agents.Principal) ([]tools.Template, error) {
	return []tools.Template{{URITemplate: "t:{x}", Name: "x"}}, nil
}
func (shelf) ReadResource(_ context.Context, _ agents.Principal, uri string) ([]tools.ResourceContent, error) {
	switch uri {
	case "t:a":
		return []tools.ResourceContent{{URI: uri, MIME: "text/plain", Text: ""}}, nil
	case "t:b":
		return []tools.ResourceContent{{URI: uri, MIME: "image/png", Blob: []byte{1, 2}}}, nil
	}
	return nil, tools.ErrNotFound
}
func (shelf) Prompts(context.Context, agents.Principal) ([]tools.Prompt, error) {
	return []tools.Prompt{{Name: "p", Arguments: []tools.Argument{{Name: "x", Required: true}}}}, nil
}
func (shelf) Prompt(_ context.Context, _ agents.Principal, name string, args map[string]string, _ tools.Exchange) (tools.PromptResult, error) {
	if name != "p" {
		return tools.PromptResult{}, tools.ErrNotFound
	}
	return tools.PromptResult{Messages: []tools.Message{{Role: "user", Content: tools.Content{Text: args["x"]}}}}, nil
}
func (shelf) Complete(_ context.Context, _ agents.Principal, ref tools.Reference, _, prefix string) (tools.Completions, error) {
	c := tools.Completions{Values: []string{}}
	if ref.Prompt == "p" {
		for i := range 100 {
			c.Values = append(c.Values, fmt.Sprint(prefix, i))
		}
		c.Total, c.More = 150, true
	}
	return c, nil
}

type forgetful struct{}

func (forgetful) Record(device.Reading) {}

// bench is a server in memory.
type bench struct {
	hub        *node.Hub
	dispatcher *rpc.Dispatcher
	methods    []string
	end        func() // of the site
}

func newBench() *bench {
	hub := node.NewHub(nil, forgetful{}, func(a string) string { return "t:" + a })
	ending, end := context.WithCancel(context.Background())
	n := node.New(node.Parts{Hub: hub, Token: "secret", Tools: []tools.Agent{shelf{}}})
	s := mcp.New(ending, n, tools.New(n, n), mcp.Implementation{Name: "test", Version: "1"}, "")
	s.Library = shelf{}
	methods := s.Methods()
	return &bench{hub, rpc.NewDispatcher(methods), slices.Sorted(maps.Keys(methods)), end}
}

var (
	local = rpc.Sender{Who: node.LocalAgent}
	owner = rpc.Sender{Who: node.LocalOwner}
)

// other is another caller on this machine.
var other = rpc.Sender{Who: principal.Principal{Kind: principal.SiteToken, ID: principal.SiteTokenID}}

// headers are the headers that HTTP would mirror.
type headers map[string][]string

func (h headers) Values(name string) []string { return h[name] }

// say sends one message and returns all that came back, as JSON.
func (b *bench) say(ctx context.Context, codec rpc.Codec, body []byte, from rpc.Sender, h rpc.Header, heard func(string)) {
	var mu sync.Mutex
	b.dispatcher.Serve(ctx, &rpc.Incoming{Codec: codec, Body: body, Sender: from, Header: h, Send: func(o rpc.Outgoing) error {
		mu.Lock()
		defer mu.Unlock()
		heard(string(o.Body))
		return nil
	}})
}

// lines sends one JSON message and returns what came back.
func (b *bench) lines(t testing.TB, body string, h rpc.Header) (all []string) {
	t.Helper()
	b.say(t.Context(), rpc.JSON, []byte(body), local, h, func(s string) { all = append(all, s) })
	return all
}

const metaMembers = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":`

// message is a request with everything that it must carry; params has no braces.
func message(method, params, capabilities string) string {
	if params != "" {
		params += ","
	}
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + `"_meta":{` + metaMembers + capabilities + `}}}`
}

// field reads a member of a JSON text by its path.
func field(t testing.TB, text string, path ...string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[p]
	}
	return v
}

// toCBOR is a JSON message in the other encoding.
func toCBOR(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := rpc.CBOR.Encode(&b, rpc.RawJSON([]byte(text))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
