package chat_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/agents/llm/chat"
	"agentsite/agents/llm/chat/chattest"
	"agentsite/device"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ask(t *testing.T, e *chat.Endpoint, r chat.Request, say func(string)) (chat.Answer, error) {
	t.Helper()
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	if r.Messages == nil {
		r.Messages = []chat.Message{{Role: chat.User, Text: "is the lamp on?"}}
	}
	return e.Complete(t.Context(), r, say)
}

// TestQuirks: the same answer is understood from every server.
func TestQuirks(t *testing.T) {
	sent := chat.Answer{
		Text: "Let me look at it.", Usage: chat.Usage{Prompt: 120, Answer: 30, Known: true},
		Calls: []chat.Call{
			{ID: "call_a", Name: "read_points", Arguments: jsontext.Value(`{"points":["lamp/relay"]}`)},
			{ID: "call_b", Name: "switch_output", Arguments: jsontext.Value(`{"output":"lamp/relay","on":true,"text":"a \"quoted\" {brace}"}`)},
			{ID: "call_c", Name: "read_points", Arguments: jsontext.Value(`{}`)},
		},
	}
	for _, q := range chattest.Quirks {
		t.Run(string(q), func(t *testing.T) {
			s := chattest.New(t, q, func([]byte) chat.Answer { return sent })
			e := &chat.Endpoint{URL: s.Endpoint(), Model: "m"}
			defer e.CloseIdle()
			var shown string
			first := chat.Request{MaxAnswer: 100, Messages: []chat.Message{{Role: chat.System, Text: "You are a lamp."}, {Role: chat.User, Text: "is it on?"}}, Tools: []chat.ToolDef{{Name: "read_points", Input: jsontext.Value(`{"type":"object"}`)}}}
			got, err := ask(t, e, first, func(sofar string) { shown = sofar })
			if err != nil {
				t.Fatal(err)
			}
			said := got.Message()
			said.Calls = slices.Clone(said.Calls)
			if q == chattest.NoUsage {
				got.Usage = sent.Usage
			}
			ids := map[string]bool{}
			for i := range got.Calls {
				ids[got.Calls[i].ID] = true
				got.Calls[i].ID = sent.Calls[i].ID
				got.Calls[i].Extra = nil
			}
			got.Finish, got.Extra = "", nil
			if !reflect.DeepEqual(got, sent) || len(ids) != 3 || strings.TrimSpace(shown) != sent.Text {
				t.Errorf("%+v, %d IDs, shown %q", got, len(ids), shown)
			}
			// What a server sent beside its calls comes back with them, and what it does not know is left
			// out from now on.
			next := first
			next.Messages = append(first.Messages[:2:2], said)
			for i := range said.Calls {
				next.Messages = append(next.Messages, chat.Message{Role: chat.Tool, Text: "off", CallID: said.Calls[i].ID})
			}
			if _, err := ask(t, e, next, nil); err != nil {
				t.Error("the next request:", err)
			}
			before := s.Asked()
			if _, err := ask(t, e, next, nil); err != nil || s.Asked() != before+1 {
				t.Errorf("asked %d times: %v", s.Asked()-before, err)
			}
		})
	}
}

// TestFailures: an answer that is none is a failure, in the server's words.
func TestFailures(t *testing.T) {
	for i := range chattest.Failures {
		f := &chattest.Failures[i]
		t.Run(f.Name, func(t *testing.T) {
			s := chattest.New(t, chattest.Plain, nil)
			s.Raw = f.Serve
			e := &chat.Endpoint{URL: s.Endpoint(), Model: "m"}
			defer e.CloseIdle()
			if a, err := ask(t, e, chat.Request{}, nil); err == nil || !strings.Contains(err.Error(), f.Says) || strings.Contains(err.Error(), "{") || s.Asked() != 1 {
				t.Errorf("%+v %v, asked %d times", a, err, s.Asked())
			}
		})
	}
}

// TestHostile: floods, stalls and nonsense end with a clear fault, in bounded time and memory.
func TestHostile(t *testing.T) {
	const begin = `data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n"
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		says   string
	}{
		"endless text":      {chattest.Flood("text/event-stream", "", `data: {"choices":[{"delta":{"content":"`+strings.Repeat("a", 1000)+`"}}]}`+"\n\n"), "more than 64 KiB"},
		"endless arguments": {chattest.Flood("text/event-stream", `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x"}}]}}]}`+"\n", `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"`+strings.Repeat("a", 1000)+`"}}]}}]}`+"\n\n"), "more than 64 KiB"},
		"10 MB in a line":   {chattest.Flood("text/event-stream", `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"`, strings.Repeat("a", 10_000)), "more than 256 KiB"},
		"endless calls":     {chattest.Flood("text/event-stream", "", `data: {"choices":[{"delta":{"tool_calls":[{"function":{"name":"x","arguments":"{}"}}]}}]}`+"\n\n"), "more than 16 calls"},
		"endless comments":  {chattest.Flood("text/event-stream", "", ": OPENROUTER PROCESSING\n\n"), "more than 4 MiB"},
		"endless object":    {chattest.Flood("application/json", `{"choices":"`, strings.Repeat("a", 10_000)), "more than 4 MiB"},
		"endless HTML":      {chattest.Flood("text/html", "", "<p>hello</p>\n"), "web page"},
		"deep nesting":      {chattest.Flood("application/json", ``, strings.Repeat("[", 10_000)), "more than 4 MiB"},
		"a stall":           {chattest.Stall(begin), "stopped in the middle"},
		"no answer":         {chattest.Stall(""), "did not begin"},
		"no head":           {func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body); <-r.Context().Done() }, "did not begin"},
		"a trickle":         {chattest.Slow(strings.Repeat(begin, 100), time.Millisecond), "did not end"},
		"an error inside": {func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, begin+`data: {"error":{"message":"the model fell over","code":502}}`+"\n\n")
		}, "the model fell over"},
		"cut in a call": {func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"switch_output","arguments":"{\"output\":\"la"}}]}}]}`+"\n\n")
		}, "cut off"},
		"an escape in an error": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "\x1b[2Jhello", http.StatusTeapot) }, `"\x1b[2Jhello"`},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		}, "not followed"},
		"no model": {http.NotFound, `knows no model "m"`},
		"a number": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, "7")
		}, "no chat completion"},
		"nothing": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "application/json") }, "no chat completion"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(tt.answer)
			defer s.Close()
			defer s.CloseClientConnections()
			e := &chat.Endpoint{URL: s.URL, Model: "m"}
			switch tt.says { // a busy machine is to reach no other limit
			case "did not begin":
				e.First = 200 * time.Millisecond
			case "stopped in the middle":
				e.Between = 200 * time.Millisecond
			case "did not end":
				e.Whole = 600 * time.Millisecond
			}
			defer e.CloseIdle()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := ask(t, e, chat.Request{}, func(string) {})
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), tt.says) || len(err.Error()) > 500 {
				t.Errorf("%v, want %s", err, tt.says)
			}
			if grown := int64(after.TotalAlloc - before.TotalAlloc); grown > 64<<20 {
				t.Errorf("it takes %d MiB", grown>>20)
			}
		})
	}
}

// TestManyElements: arrays of millions take no more memory than other answers of that length.
func TestManyElements(t *testing.T) {
	many := strings.Repeat("0,", 2<<20-100) + "0"
	for _, body := range []string{`{"choices":[` + many + `]}`, `{"choices":[{"message":{"content":[` + many + `]}}]}`, `{"choices":[{"message":{"tool_calls":[` + many + `]}}]}`} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, body)
		}))
		e := &chat.Endpoint{URL: s.URL, Model: "m"}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := ask(t, e, chat.Request{}, nil)
		runtime.ReadMemStats(&after)
		if grown := int64(after.TotalAlloc - before.TotalAlloc); err == nil || len(got.Calls) != 0 || grown > 64<<20 {
			t.Errorf("%.60s: %d MiB, %v", body, grown>>20, err)
		}
		e.CloseIdle()
		s.Close()
	}
}

// TestKey: the key goes to the server and nowhere else, and a request ends with its context.
func TestKey(t *testing.T) {
	var got string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		switch r.URL.Path {
		case "/chat/completions":
			http.Error(w, "bad key "+got, http.StatusUnauthorized)
		case "/400/chat/completions":
			http.Error(w, `{"error":{"message":"bad \u0073k-1"}}`, http.StatusBadRequest)
		case "/200/chat/completions":
			io.WriteString(w, `data: {"error":{"message":"bad key sk-1"}}`+"\n\n")
		default:
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				io.WriteString(c, "HTTP/1.1 200 OK\r\nsk-1 \x1b[2J\r\n\r\n")
				c.Close()
			}
		}
	}))
	defer s.Close()
	e := &chat.Endpoint{URL: s.URL, Model: "m", Key: func() (string, error) { return "sk-1", nil }}
	defer e.CloseIdle()
	if _, err := ask(t, e, chat.Request{}, nil); got != "Bearer sk-1" || device.AsFault(err).Kind != device.Denied {
		t.Errorf("%q %v", got, err)
	}
	// Servers repeat the key in their errors, which go to the journal and to who asked.
	for _, root := range []string{"", "/400", "/200", "/head"} {
		e := &chat.Endpoint{URL: s.URL + root, Model: "m", Key: e.Key}
		if _, err := ask(t, e, chat.Request{}, nil); err == nil || strings.Contains(err.Error(), "sk-1") || strings.Contains(err.Error(), "\x1b") || !strings.Contains(err.Error(), "(the key)") {
			t.Errorf("%s: %v", root, err)
		}
		e.CloseIdle()
	}
	e.Key = func() (string, error) { return "", os.ErrPermission }
	if _, err := ask(t, e, chat.Request{}, nil); device.AsFault(err).Kind != device.Denied {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Complete(ctx, chat.Request{}, nil); err == nil {
		t.Error("it is asked after all")
	}
}

// TestTranscripts: streams as the servers' documents and threads show them, byte for byte.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.sse")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			head, body, _ := strings.Cut(string(text), "\n") // : the text | the calls
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, body)
			}))
			defer s.Close()
			e := &chat.Endpoint{URL: s.URL, Model: "m"}
			defer e.CloseIdle()
			a, err := ask(t, e, chat.Request{}, nil)
			got := a.Text + " |"
			for _, c := range a.Calls {
				got += " " + c.Name + string(c.Arguments) + c.Broken
			}
			if err != nil {
				got = err.Error()
			}
			if want := strings.TrimPrefix(head, ": "); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}
