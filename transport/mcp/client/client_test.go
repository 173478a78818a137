package client

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/transport/rpc"
)

// far is a site that says what a test has it say, and remembers what it was asked.
type far struct {
	says  string
	err   error
	notes [][2]string

	asked rpc.Request
	text  string // of its parameters
}

func (f *far) Call(_ context.Context, r rpc.Request, note func(string, rpc.Raw)) (rpc.Raw, error) {
	f.asked = r
	var b strings.Builder
	if p, ok := r.Params.(params); ok {
		b.WriteString(paramsText(p))
	}
	f.text = b.String()
	for _, n := range f.notes {
		note(n[0], rpc.RawJSON([]byte(n[1])))
	}
	return rpc.RawJSON([]byte(f.says)), f.err
}

func args(text string) tools.Args { return rpc.RawJSON([]byte(text)) }

const who = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

func TestRequests(t *testing.T) {
	f := &far{says: `{"resultType":"complete","tools":[],"content":[]}`}
	c := New(f, "test", "1")
	for _, tt := range []struct {
		do                 func() error
		method, name, text string
	}{
		{func() error { _, err := c.Tools(t.Context()); return err }, "tools/list", "", `{` + who + `}`},
		{func() error {
			_, err := c.Call(t.Context(), agents.Principal{}, tools.Call{Tool: "x", Args: args(`{"a":[1]}`)})
			return err
		}, "tools/call", "x", `{` + strings.TrimSuffix(who, "}") + `,"agentsite/text":"none"},"name":"x","arguments":{"a":[1]}}`},
		{func() error { _, err := c.CallMethod(t.Context(), "owner/reset", nil); return err }, "owner/reset", "", ``},
		{func() error {
			_, err := c.AskOnce(t.Context(), "x", []byte(`{}`), Once{Key: "k", State: "s"})
			return err
		}, "tools/call", "x", `{` + strings.TrimSuffix(who, "}") + `,"agentsite/text":"none","agentsite/idempotency-key":"k"},"name":"x","arguments":{},"requestState":"s"}`},
	} {
		if err := tt.do(); err != nil {
			t.Errorf("%s: %v", tt.method, err)
		}
		if f.asked.Method != tt.method || f.asked.Name != tt.name || f.asked.Version != "2026-07-28" || f.text != tt.text {
			t.Errorf("asked %s %q %s\n%s\nwant %s %q\n%s", f.asked.Method, f.asked.Name, f.asked.Version, f.text, tt.method, tt.name, tt.text)
		}
	}
}

// TestRepeatable: what reads, returns to safe or has a key that the site knows may be sent again, and
// nothing else.
func TestRepeatable(t *testing.T) {
	f := &far{says: `{"resultType":"complete","tools":[],"content":[]}`}
	c := New(f, "test", "1")
	for tool, want := range map[string][2]bool{ // without and with a key
		"read_points": {true, true}, "site_status": {true, true}, "emergency_stop": {true, true}, "release_output": {true, true},
		"switch_output": {false, true}, "set_level": {false, true}, "show_text": {false, true}, "ask_agent": {false, true},
		"of_an_agent": {false, false},
	} {
		for i, key := range []string{"", "k"} {
			if _, err := c.AskOnce(t.Context(), tool, []byte(`{}`), Once{Key: key}); err != nil || f.asked.Repeatable != want[i] {
				t.Errorf("%s with key %q: repeatable is %v, %v", tool, key, f.asked.Repeatable, err)
			}
		}
	}
	if c.Alive(t.Context()); !f.asked.Repeatable {
		t.Error("a request for nothing but an answer is not repeatable")
	}
	if c.CallMethod(t.Context(), "owner/reset", nil); f.asked.Repeatable {
		t.Error("an owner's act is repeatable")
	}
}

// TestForSite: each call of a site names the site at the end of its chain of callers, and the
// caller's list is unchanged.
func TestForSite(t *testing.T) {
	f := &far{says: `{"resultType":"complete","tools":[],"content":[],"structuredContent":{}}`}
	c := NewForSite(f, "1", "did:self")
	via := make([]string, 1, 8)
	via[0] = "did:first"
	for _, do := range []func() error{
		func() error { _, err := c.Tools(t.Context()); return err },
		func() error {
			_, err := c.Move(t.Context(), agents.Principal{}, agents.MoveRequest{Output: "a/b", Terms: agents.Terms{Via: via, Held: true}})
			return err
		},
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
		want := `"agentsite/via":["did:self"]`
		if f.asked.Method == "tools/call" {
			want = `"agentsite/held":true,"agentsite/via":["did:first","did:self"]`
		}
		if !strings.Contains(f.text, want) || via[:2][1] != "" {
			t.Errorf("%s, want %s", f.text, want)
		}
	}
}

func TestCall(t *testing.T) {
	text := func(s string) tools.Content { return tools.Content{Text: s} }
	for _, tt := range []struct {
		name, says string
		value      string // as JSON; "" for none
		content    []tools.Content
		err        string
		kind       string // of a ToolError
	}{
		{"a value", `{"resultType":"complete","content":[{"type":"text","text":"{}"}],"structuredContent":{"a":1.5}}`, `{"a":1.5}`, []tools.Content{text("{}")}, "", ""},
		{"no value", `{"resultType":"complete","content":[{"type":"text","text":"hello"}]}`, "", []tools.Content{text("hello")}, "", ""},
		{"a picture and a sound", `{"resultType":"complete","content":[{"type":"image","data":"aQ==","mimeType":"image/png"},{"type":"audio","data":"YQ==","mimeType":"audio/wav"},{"type":"hologram"}]}`, "",
			[]tools.Content{{Image: &tools.Blob{MIME: "image/png", Data: []byte("i")}}, {Audio: &tools.Blob{MIME: "audio/wav", Data: []byte("a")}}}, "", ""},
		{"what is new is passed over", `{"resultType":"complete","content":[],"more":{"x":1}}`, "", nil, "", ""},
		{"a failure", `{"resultType":"complete","isError":true,"content":[{"type":"text","text":"busy: held by bert"}],"_meta":{"agentsite/fault":"busy"}}`, "", nil, "held by bert", "busy"},
		{"another server's failure", `{"resultType":"complete","isError":true,"content":[{"type":"text","text":"no "},{"type":"text","text":"way"}]}`, "", nil, "no way", ""},
		{"a question", `{"resultType":"input_required","inputRequests":{}}`, "", nil, "asks for input", "-"},
		{"an owner's word", `{"resultType":"input_required","requestState":"s","_meta":{"agentsite/approval":"run agentsite approve H"}}`, "", nil, "run agentsite approve H", "-"},
		{"an older server", `{"content":[]}`, "", nil, "asks for input", "-"},
		{"a damaged picture", `{"resultType":"complete","content":[{"type":"image","data":"%"}]}`, "", nil, "illegal base64", "-"},
		{"no object", `[]`, "", nil, "must be an object", "-"},
		{"wrong types", `{"resultType":"complete","content":"x"}`, "", nil, "content: must be", "-"},
	} {
		res, err := New(&far{says: tt.says}, "test", "1").Call(t.Context(), agents.Principal{}, tools.Call{Tool: "x", Args: args(`{}`)})
		var failed *ToolError
		switch {
		case tt.err == "" && err != nil, tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%s: %v, want %q", tt.name, err, tt.err)
		case tt.err != "" && tt.kind != "-" && (!errors.As(err, &failed) || failed.Kind != tt.kind):
			t.Errorf("%s: %#v, want the kind %q", tt.name, err, tt.kind)
		case tt.kind == "-" && errors.As(err, &failed):
			t.Errorf("%s: the tool is blamed: %v", tt.name, err)
		}
		value := ""
		if raw, ok := res.Value.(rpc.Raw); ok {
			b, _ := raw.JSONText()
			value = string(b)
		} else if res.Value != nil {
			t.Errorf("%s: the value is a %T", tt.name, res.Value)
		}
		if value != tt.value || !reflect.DeepEqual(res.Content, tt.content) {
			t.Errorf("%s: %s %+v, want %s %+v", tt.name, value, res.Content, tt.value, tt.content)
		}
	}
}

func TestAsk(t *testing.T) {
	f := &far{says: `{"resultType":"complete","structuredContent":{"a":1.5},"content":[{"type":"text","text":"t"},` +
		`{"type":"image","data":"aQ==","mimeType":"image/png"},{"type":"audio","data":"YQ==","mimeType":"audio/wav"}]}`}
	got, err := New(f, "test", "1").Ask(t.Context(), "x", []byte(`{"b":2}`))
	want := Answer{[]byte(`{"a":1.5}`), []string{"t"}, []File{{"image/png", []byte("i")}, {"audio/wav", []byte("a")}}}
	if err != nil || !reflect.DeepEqual(got, want) || !strings.HasSuffix(f.text, `,"name":"x","arguments":{"b":2}}`) {
		t.Errorf("%+v %v of %s", got, err, f.text)
	}
	f = &far{says: `{"resultType":"complete","content":[]}`}
	if got, err := New(f, "test", "1").Ask(t.Context(), "x", []byte(`{}`)); err != nil || got.JSON != nil {
		t.Errorf("no value: %+v %v", got, err)
	}
}

func TestRefused(t *testing.T) {
	f := &far{err: rpc.Errorf(403, "no")}
	c := New(f, "test", "1")
	for name, do := range map[string]func() error{
		"Tools": func() error { _, err := c.Tools(t.Context()); return err },
		"Call": func() error {
			_, err := c.Call(t.Context(), agents.Principal{}, tools.Call{Tool: "x", Args: args(`{}`)})
			return err
		},
		"Watch":      func() error { return c.Watch(t.Context(), agents.Principal{}, agents.WatchRequest{}, nil) },
		"CallMethod": func() error { _, err := c.CallMethod(t.Context(), "x", ""); return err },
	} {
		var e *RequestError
		if err := do(); !errors.As(err, &e) || *e != (RequestError{"denied", "no"}) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTools(t *testing.T) {
	f := &far{says: `{"resultType":"complete","tools":[{"name":"a","title":"A","description":"d","inputSchema":{"type":"object"},"annotations":{}},{"name":"b"}]}`}
	got, err := New(f, "test", "1").Tools(t.Context())
	if err != nil || len(got) != 2 || got[0].Name != "a" || got[0].Title != "A" || got[0].Description != "d" || got[1].Name != "b" || !got[1].Input.IsZero() {
		t.Fatalf("%+v %v", got, err)
	}
	if text, _ := got[0].Input.JSONText(); string(text) != `{"type":"object"}` {
		t.Errorf("%s", text)
	}
}

func paramsText(p params) string {
	var b bytes.Buffer
	if err := rpc.JSON.Encode(&b, p); err != nil {
		return err.Error()
	}
	return b.String()
}
