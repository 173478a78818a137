package legacy

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/node"
	"agentsite/transport/rpc"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

const token = "a token"

type forgetful struct{}

func (forgetful) Record(device.Reading) {}

// fake is an agent with one thing of every sort.
type fake struct {
	more    atomic.Bool // offers one tool more
	running chan struct{}
	ended   chan error
}

func newFake() *fake { return &fake{running: make(chan struct{}), ended: make(chan error, 1)} }

func (f *fake) Tools() []tools.Tool {
	list := []tools.Tool{
		{Name: "add", Title: "Add", Description: "Adds", Hints: tools.Hints{ReadOnly: true, Idempotent: true},
			Input:  []byte(`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}}}`),
			Output: []byte(`{"type":"object","properties":{"sum":{"type":"number"}}}`)},
		{Name: "ask", Input: []byte(`{"type":"object"}`)},
		{Name: "fail", Input: []byte(`{"type":"object"}`)},
		{Name: "forever", Input: []byte(`{"type":"object"}`)},
		{Name: "need", Input: []byte(`{"type":"object"}`)},
		{Name: "panic", Input: []byte(`{"type":"object"}`)},
		{Name: "pictures", Input: []byte(`{"type":"object"}`)},
		{Name: "report", Input: []byte(`{"type":"object"}`)},
		{Name: "unservable", Input: []byte(`{"type":"array"}`)},
		{Name: "whoami", Input: []byte(`{"type":"object"}`)},
	}
	if f.more.Load() {
		list = append(list[1:], tools.Tool{Name: "more", Input: []byte(`{"type":"object"}`)})
	}
	return list
}

func (f *fake) Call(ctx context.Context, p agents.Principal, c tools.Call) (tools.Result, error) {
	switch c.Tool {
	case "add":
		var in struct {
			A float64 `json:"a"`
			B float64 `json:"b"`
		}
		if err := c.Args.Decode(&in); err != nil {
			return tools.Result{}, device.Faultf(device.Invalid, "%v", err)
		}
		return tools.Result{Value: map[string]float64{"sum": in.A + in.B}}, nil
	case "ask":
		return converse(c)
	case "fail":
		return tools.Result{}, device.Faultf(device.Unsafe, "the tank is empty")
	case "forever":
		f.running <- struct{}{}
		<-ctx.Done()
		f.ended <- ctx.Err()
		return tools.Result{}, ctx.Err()
	case "need":
		return tools.Result{}, &tools.NeedsCapability{Needs: tools.Capabilities{Sampling: true}}
	case "panic":
		panic("a defect")
	case "pictures":
		return tools.Result{Content: []tools.Content{
			{Text: "look"}, {Image: &tools.Blob{MIME: "image/png", Data: []byte("i")}}, {Audio: &tools.Blob{MIME: "audio/wav", Data: []byte("a")}},
			{Resource: &tools.ResourceContent{URI: "x:y", MIME: "text/plain", Text: "t"}},
		}}, nil
	case "report":
		for _, n := range []tools.Note{{Progress: 1, Total: 2}, {Progress: 1, Total: 2}, {Progress: 2, Total: 2}, {Level: "info", Message: "said"}} {
			c.Note(n)
		}
		return tools.Result{}, nil
	case "whoami":
		return tools.Result{Value: map[string]any{"id": p.ID}}, nil
	}
	return tools.Result{}, tools.ErrNotFound
}

// converse asks two rounds: for a name with an answer of the client's model, then for
// the roots.
func converse(c tools.Call) (tools.Result, error) {
	if c.Exchange.State == "" {
		return tools.Result{NeedInput: &tools.NeedInput{State: "1", Questions: []tools.Question{
			{Key: "name", Method: "elicitation/create", Params: map[string]any{"message": "Who?", "requestedSchema": map[string]any{
				"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}},
			}}},
			{Key: "hello", Method: "sampling/createMessage", Params: map[string]any{"maxTokens": 9, "messages": []any{
				map[string]any{"role": "user", "content": map[string]any{"type": "text", "text": "greet"}},
			}}},
		}}}, nil
	}
	if c.Exchange.State == "1" {
		var name struct {
			Content struct {
				Name string `json:"name"`
			} `json:"content"`
		}
		var said struct {
			Content struct {
				Text string `json:"text"`
			} `json:"content"`
		}
		if err := c.Exchange.Answers["name"].Decode(&name); err != nil {
			return tools.Result{}, err
		}
		if err := c.Exchange.Answers["hello"].Decode(&said); err != nil {
			return tools.Result{}, err
		}
		return tools.Result{NeedInput: &tools.NeedInput{
			State: said.Content.Text + " " + name.Content.Name, Questions: []tools.Question{{Key: "roots", Method: "roots/list"}},
		}}, nil
	}
	var got struct {
		Roots []struct{} `json:"roots"`
	}
	if err := c.Exchange.Answers["roots"].Decode(&got); err != nil {
		return tools.Result{}, err
	}
	return tools.Result{Value: map[string]any{"greeting": c.Exchange.State, "roots": len(got.Roots)}}, nil
}

func (f *fake) Resources(context.Context, agents.Principal) ([]tools.Resource, error) {
	return []tools.Resource{{URI: "fake:///text", Name: "text", MIME: "text/plain"}, {URI: "fake:///blob", Name: "blob"}}, nil
}

func (f *fake) Templates(context.Context, agents.Principal) ([]tools.Template, error) {
	return []tools.Template{{URITemplate: "fake:///many/{id}", Name: "many"}}, nil
}

func (f *fake) ReadResource(_ context.Context, _ agents.Principal, uri string) ([]tools.ResourceContent, error) {
	switch uri {
	case "fake:///text", "fake:///many/1":
		return []tools.ResourceContent{{URI: uri, Text: "contents"}}, nil
	case "fake:///blob":
		return []tools.ResourceContent{{URI: uri, MIME: "image/png", Blob: []byte{1, 2}}}, nil
	}
	return nil, tools.ErrNotFound
}

func (f *fake) Prompts(context.Context, agents.Principal) ([]tools.Prompt, error) {
	return []tools.Prompt{{Name: "greet", Arguments: []tools.Argument{{Name: "name", Required: true}}}}, nil
}

func (f *fake) Prompt(_ context.Context, _ agents.Principal, name string, args map[string]string, _ tools.Exchange) (tools.PromptResult, error) {
	return tools.PromptResult{Messages: []tools.Message{{Role: "user", Content: tools.Content{Text: "hello " + args["name"]}}}}, nil
}

func (f *fake) Complete(_ context.Context, _ agents.Principal, ref tools.Reference, _, prefix string) (tools.Completions, error) {
	if ref.Prompt != "greet" {
		return tools.Completions{}, nil
	}
	return tools.Completions{Values: []string{prefix + "a"}}, nil
}

// newServer makes a server over f; it has nothing left when the test ends.
func newServer(t *testing.T, f *fake) (*Server, *node.Hub) { return newServerWith(t, f, nil) }

func newServerWith(t *testing.T, f *fake, access node.Access) (*Server, *node.Hub) {
	hub := node.NewHub(nil, forgetful{}, func(a string) string { return a })
	n := node.New(node.Parts{Hub: hub, Token: token, Access: access, Tools: []tools.Agent{f}})
	s := New(n, tools.New(n, n), "fake", "1", "be kind")
	s.Library = f
	t.Cleanup(func() {
		s.Close()
		eventually(t, "every session and host is closed", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.hosts) == 0 && len(s.sessions) == 0
		})
	})
	return s, hub
}

// overStream connects a client over a pipe.
func overStream(t *testing.T, s *Server, o *sdk.ClientOptions) *sdk.ClientSession {
	return serveOver(t, s, newClient(o))
}

func serveOver(t *testing.T, s *Server, client *sdk.Client) *sdk.ClientSession {
	here, there := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.ServeStream(t.Context(), there, node.LocalAgent) }()
	c, err := client.Connect(t.Context(), &sdk.IOTransport{Reader: here, Writer: here}, legacyOnly)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		if err := <-served; err != nil {
			t.Errorf("ServeStream: %v", err)
		}
	})
	return c
}

// listen serves s on HTTP until the test ends. A request's header Who names its sender: local, or a token.
func listen(t *testing.T, s *Server) string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var from rpc.Sender
		switch who := r.Header.Get("Who"); who {
		case "":
			from.Who, from.Refused = s.node.Bearer(token, true)
		case "agent":
			from.Who = node.LocalAgent
		case "owner":
			from.Who = node.LocalOwner
		default:
			from.Who, from.Refused = s.node.Bearer(who, false)
		}
		s.ServeHTTP(w, r, from)
	}))
	t.Cleanup(func() {
		s.Close() // or the open streams would keep it
		srv.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return srv.URL
}

// as is a client of somebody.
func as(who string) *http.Client { return &http.Client{Transport: whoTransport(who)} }

type whoTransport string

func (w whoTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Who", string(w))
	return http.DefaultTransport.RoundTrip(r)
}

func overHTTP(t *testing.T, url, who string, silent bool, o *sdk.ClientOptions) (*sdk.ClientSession, error) {
	return newClient(o).Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: url, HTTPClient: as(who), DisableStandaloneSSE: silent, MaxRetries: -1,
	}, legacyOnly)
}

var legacyOnly = &sdk.ClientSessionOptions{ProtocolVersion: rpc.Handshakes[0]}

func newClient(o *sdk.ClientOptions) *sdk.Client {
	return sdk.NewClient(&sdk.Implementation{Name: "client", Version: "1"}, o)
}
