//lint:file-ignore SA1019 older revisions have what the newest deprecates

package legacy

import (
	"context"
	"strings"
	"testing"
	"time"

	"agentsite/agents"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within five seconds: %s", what)
		}
	}
}

func call(t *testing.T, c *sdk.ClientSession, tool string, args any) *sdk.CallToolResult {
	t.Helper()
	res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return res
}

func textOf(t *testing.T, c sdk.Content) string {
	t.Helper()
	text, ok := c.(*sdk.TextContent)
	if !ok {
		t.Fatalf("%T is no text", c)
	}
	return text.Text
}

func hasCode(err error, code int64) bool {
	rpcErr, ok := asWire(err)
	return ok && rpcErr.Code == code
}

func TestHandshake(t *testing.T) {
	s, _ := newServer(t, newFake())
	c := overStream(t, s, nil)
	got := c.InitializeResult()
	if got.ProtocolVersion != "2025-11-25" || got.ServerInfo.Name != "fake" || got.Instructions != "be kind" {
		t.Errorf("%+v", got)
	}
	if !got.Capabilities.Resources.Subscribe || !got.Capabilities.Tools.ListChanged || got.Capabilities.Completions == nil {
		t.Errorf("%+v", got.Capabilities)
	}
}

// The newest revision stands alone and is not spoken in a session.
func TestNewestRevisionIsNotOffered(t *testing.T) {
	s, _ := newServer(t, newFake())
	url := listen(t, s)
	c, err := newClient(nil).Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: as("")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := c.InitializeResult().ProtocolVersion; got != "2025-11-25" {
		t.Errorf("negotiated %s", got)
	}
}

func TestTools(t *testing.T) {
	s, _ := newServer(t, newFake())
	c := overStream(t, s, nil)
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if list.CacheScope != "private" {
		t.Errorf("the list is %s: what a caller sees depends on who it is", list.CacheScope)
	}
	add := list.Tools[0]
	if add.Name != "add" || add.Title != "Add" || !add.Annotations.ReadOnlyHint || *add.Annotations.DestructiveHint || !add.Annotations.IdempotentHint {
		t.Errorf("%+v %+v", add, add.Annotations)
	}
	if len(list.Tools) != 9 {
		t.Errorf("%d tools: the one that has no object for arguments cannot be served", len(list.Tools))
	}

	res := call(t, c, "add", map[string]any{"a": 1, "b": 2})
	if sum := res.StructuredContent.(map[string]any)["sum"]; sum != 3.0 || textOf(t, res.Content[0]) != `{"sum":3}` {
		t.Errorf("%v %v", sum, res.Content)
	}
	if res := call(t, c, "pictures", nil); len(res.Content) != 4 || res.Content[3].(*sdk.EmbeddedResource).Resource.Text != "t" ||
		string(res.Content[1].(*sdk.ImageContent).Data) != "i" || res.Content[2].(*sdk.AudioContent).MIMEType != "audio/wav" {
		t.Errorf("%+v", res)
	}
}

func TestToolsThatFail(t *testing.T) {
	s, _ := newServer(t, newFake())
	c := overStream(t, s, nil)
	for _, x := range []struct {
		tool      string
		args      any
		text, why string
	}{
		{"fail", nil, "unsafe: the tank is empty", "unsafe"},
		{"add", map[string]any{"a": 1, "c": 2}, "invalid: c: ", "invalid"},
		{"add", map[string]any{"a": "one"}, "invalid: a: ", "invalid"},
	} {
		res := call(t, c, x.tool, x.args)
		if !res.IsError || !strings.HasPrefix(textOf(t, res.Content[0]), x.text) || res.Meta[faultKey] != x.why {
			t.Errorf("%s(%v): %v %v", x.tool, x.args, res.Content[0], res.Meta)
		}
	}
	for tool, code := range map[string]int64{
		"nothing": jsonrpc.CodeInvalidParams, "need": jsonrpc.CodeInvalidRequest, "panic": jsonrpc.CodeInternalError,
	} {
		if _, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool}); !hasCode(err, code) {
			t.Errorf("%s: %v", tool, err)
		}
	}
}

func TestNotes(t *testing.T) {
	notes := make(chan string, 9)
	s, _ := newServer(t, newFake())
	c := overStream(t, s, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			if r.Params.ProgressToken == "tok" && r.Params.Total == 2 {
				notes <- strings.Repeat("*", int(r.Params.Progress))
			}
		},
		LoggingMessageHandler: func(_ context.Context, r *sdk.LoggingMessageRequest) { notes <- r.Params.Data.(string) },
	})
	call(t, c, "report", nil) // nobody asked for notes
	if err := c.SetLoggingLevel(t.Context(), &sdk.SetLoggingLevelParams{Level: "info"}); err != nil {
		t.Fatal(err)
	}
	p := &sdk.CallToolParams{Name: "report"}
	p.SetProgressToken("tok")
	if _, err := c.CallTool(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"*", "**", "said"} {
		if got := <-notes; got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	if len(notes) != 0 {
		t.Errorf("and %q", <-notes)
	}
}

// answering are a client that can be asked for everything.
func answering() *sdk.ClientOptions {
	return &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{RootsV2: &sdk.RootCapabilities{}},
		ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
		CreateMessageHandler: func(_ context.Context, r *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
			return &sdk.CreateMessageResult{Role: "assistant", Model: "m", Content: &sdk.TextContent{Text: "hello"}}, nil
		},
	}
}

func TestRounds(t *testing.T) {
	s, _ := newServer(t, newFake())
	o := answering()
	c := overStream(t, s, o)
	if got := textOf(t, call(t, c, "ask", nil).Content[0]); got != `{"greeting":"hello Ada","roots":0}` {
		t.Error(got)
	}

	o.CreateMessageHandler = nil
	c = overStream(t, s, o)
	if _, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "ask"}); !hasCode(err, jsonrpc.CodeInvalidRequest) {
		t.Errorf("a client that cannot sample: %v", err)
	}
}

func TestLibrary(t *testing.T) {
	s, _ := newServer(t, newFake())
	c := overStream(t, s, nil)
	resources, err := c.ListResources(t.Context(), nil)
	if err != nil || len(resources.Resources) != 2 {
		t.Fatalf("%v %v", resources, err)
	}
	templates, err := c.ListResourceTemplates(t.Context(), nil)
	if err != nil || len(templates.ResourceTemplates) != 1 {
		t.Fatalf("%v %v", templates, err)
	}
	for uri, want := range map[string]string{"fake:///text": "contents", "fake:///many/1": "contents", "fake:///blob": "\x01\x02"} {
		res, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		if err != nil || res.Contents[0].Text+string(res.Contents[0].Blob) != want {
			t.Errorf("%s: %v %v", uri, res, err)
		}
	}
	for _, uri := range []string{"fake:///none", "fake:///many/2"} {
		if _, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); !hasCode(err, sdk.CodeResourceNotFound) {
			t.Errorf("%s: %v", uri, err)
		}
	}
	prompt, err := c.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "greet", Arguments: map[string]string{"name": "Ada"}})
	if err != nil || textOf(t, prompt.Messages[0].Content) != "hello Ada" {
		t.Errorf("%v %v", prompt, err)
	}
	for ref, want := range map[string]int{"greet": 1, "other": 0} {
		done, err := c.Complete(t.Context(), &sdk.CompleteParams{
			Ref: &sdk.CompleteReference{Type: "ref/prompt", Name: ref}, Argument: sdk.CompleteParamsArgument{Name: "name", Value: "Ad"},
		})
		if err != nil || len(done.Completion.Values) != want {
			t.Errorf("%s: %v %v", ref, done, err)
		}
	}
}

func TestListsChange(t *testing.T) {
	changed := make(chan struct{}, 9)
	f := newFake()
	s, hub := newServer(t, f)
	c := overStream(t, s, &sdk.ClientOptions{
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} },
	})
	f.more.Store(true)
	hub.Announce(agents.Change{Tools: true})
	<-changed
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, t := range list.Tools {
		names = append(names, t.Name)
	}
	if got := strings.Join(names, " "); strings.Contains(got, "add") || !strings.Contains(got, "more") {
		t.Error(got)
	}
	if len(changed) != 0 {
		t.Error("told twice of one change")
	}
}

// TestUnwritableURI: a URI that the SDK cannot write into its error is refused like any
// other, and the session goes on.
func TestUnwritableURI(t *testing.T) {
	s, _ := newServer(t, newFake())
	c := overStream(t, s, nil)
	for _, uri := range []string{"a\x00b", "a\x07b", "nothing"} {
		if _, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); !hasCode(err, jsonrpc.CodeInvalidParams) {
			t.Errorf("%q: %v", uri, err)
		}
	}
	if err := c.Ping(t.Context(), nil); err != nil {
		t.Error("the session ended:", err)
	}
}

// TestUnlisted: a tool of the site that the caller may not use is refused so that a model reads why, and another name
// is not known.
func TestUnlisted(t *testing.T) {
	s, _ := newServer(t, newFake())
	c := overStream(t, s, nil)
	if res := call(t, c, "switch_output", map[string]any{}); !res.IsError || res.Meta[faultKey] != "denied" {
		t.Errorf("%+v", res)
	}
	if _, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "nope", Arguments: map[string]any{}}); err == nil {
		t.Error("an unknown tool is known")
	}
}
