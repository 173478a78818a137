// Package chattest is a scripted server of the chat-completions API, for tests. It answers as the
// servers do that are in use, with what each of them does differently.
package chattest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/agents/llm/chat"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Quirk is something that servers do differently.
type Quirk string

// The quirks, with a server that has each.
const (
	Plain            Quirk = "as OpenAI documents it"
	Whole            Quirk = "no stream, although it was asked for"
	StopAtCalls      Quirk = "finish_reason stop with calls"    // Ollama
	ObjectArguments  Quirk = "arguments as an object"           // Ollama's own layer
	IndexZero        Quirk = "all calls at index 0"             // Ollama, Gemini's layer
	NoIndex          Quirk = "calls without an index"           // some gateways
	NoIDs            Quirk = "calls without IDs"                // llama.cpp
	SameIDs          Quirk = "calls with one ID"                // LM Studio
	NullContent      Quirk = "null content beside calls"        // vLLM
	NoUsage          Quirk = "no usage"                         // LM Studio
	UsageEverywhere  Quirk = "usage in each event"              // OpenRouter
	NoDone           Quirk = "no [DONE]"                        // some proxies
	NoFinish         Quirk = "[DONE] without finish_reason"     // some proxies
	Comments         Quirk = "comments between events"          // OpenRouter
	CRLF             Quirk = "lines that end with CR LF"        // LiteLLM
	NoSpace          Quirk = "data: without a space"            // some proxies
	Parts            Quirk = "content as parts"                 // Mistral
	Reasoning        Quirk = "reasoning beside the content"     // DeepSeek, vLLM
	Thoughts         Quirk = "thoughts in the content"          // Qwen at llama.cpp
	NameTwice        Quirk = "the name of a call in each event" // some gateways
	Letters          Quirk = "arguments letter by letter"       // OpenAI
	NoStreamOptions  Quirk = "stream_options refused"           // Mistral
	CompletionTokens Quirk = "max_tokens refused"               // OpenAI's newer models
	NoToolChoice     Quirk = "tool_choice refused"              // Ollama
	BusyOnce         Quirk = "busy once"                        // all clouds
)

// Prose is what no client can mend: nobody can tell such a call from a text about one.
const Prose Quirk = "calls as text" // Ollama without a template, vLLM without a parser

// Quirks are all that the same answer is understood of.
var Quirks = []Quirk{
	Plain, Whole, StopAtCalls, ObjectArguments, IndexZero, NoIndex, NoIDs, SameIDs, NullContent, NoUsage, UsageEverywhere, NoDone, NoFinish, Comments, CRLF, NoSpace, Parts,
	Reasoning, Thoughts, NameTwice, Letters, NoStreamOptions, CompletionTokens, NoToolChoice, BusyOnce,
}

// Server answers each request with what Answer returns. It is safe for concurrent use.
type Server struct {
	*httptest.Server
	// Answer is called with the body of each request.
	Answer func(body []byte) chat.Answer
	// Raw, if set, answers instead.
	Raw http.HandlerFunc

	mu    sync.Mutex
	quirk Quirk
	asked int
}

// New starts a server with a quirk, which ends with the test.
func New(t testing.TB, q Quirk, answer func(body []byte) chat.Answer) *Server {
	t.Helper()
	s := &Server{Answer: answer, quirk: q}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// Endpoint returns the server's address for a chat.Endpoint.
func (s *Server) Endpoint() string { return s.URL + "/v1" }

// Asked returns how often the server was asked.
func (s *Server) Asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 8<<20))
	if err != nil {
		return
	}
	s.mu.Lock()
	s.asked++
	first := s.asked == 1
	s.mu.Unlock()
	if s.Raw != nil {
		s.Raw(w, r)
		return
	}
	if r.URL.Path != "/v1/chat/completions" || r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	for quirk, field := range map[Quirk]string{NoStreamOptions: `"stream_options"`, CompletionTokens: `"max_tokens"`, NoToolChoice: `"tool_choice"`} {
		if s.quirk == quirk && strings.Contains(string(body), field) {
			http.Error(w, `{"error":{"message":"Unsupported parameter: `+strings.Trim(field, `"`)+`"}}`, http.StatusBadRequest)
			return
		}
	}
	if s.quirk == BusyOnce && first {
		w.Header().Set("Retry-After", "1")
		http.Error(w, `{"error":{"message":"overloaded"}}`, http.StatusTooManyRequests)
		return
	}
	a := s.Answer(body)
	if s.quirk == Whole {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Write(whole(a))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	io.WriteString(w, Stream(a, s.quirk))
}

// object is a JSON object that is written.
type object = map[string]any

func encode(v any) []byte {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return text
}

// whole returns an answer that is not streamed.
func whole(a chat.Answer) []byte {
	m := object{"role": "assistant", "content": a.Text}
	var calls []object
	for _, c := range a.Calls {
		calls = append(calls, object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": string(c.Arguments)}})
	}
	if calls != nil {
		m["tool_calls"] = calls
	}
	out := object{"choices": []object{{"index": 0, "message": m, "finish_reason": finish(a, Plain)}}}
	if a.Usage.Known {
		out["usage"] = usage(a)
	}
	return encode(out)
}

func finish(a chat.Answer, q Quirk) string {
	if len(a.Calls) > 0 && q != StopAtCalls {
		return "tool_calls"
	}
	return "stop"
}

func usage(a chat.Answer) object {
	return object{"prompt_tokens": a.Usage.Prompt, "completion_tokens": a.Usage.Answer, "total_tokens": a.Usage.Prompt + a.Usage.Answer}
}

// Stream returns an answer as a server with a quirk streams it.
func Stream(a chat.Answer, q Quirk) string {
	var b strings.Builder
	end, prefix := "\n", "data: "
	if q == CRLF {
		end = "\r\n"
	}
	if q == NoSpace {
		prefix = "data:"
	}
	event := func(v object) {
		if q == Comments {
			b.WriteString(": OPENROUTER PROCESSING" + end + end)
		}
		if q == UsageEverywhere && a.Usage.Known {
			v["usage"] = usage(a)
		}
		b.WriteString(prefix + string(encode(v)) + end + end)
	}
	if q == Prose {
		for _, c := range a.Calls {
			a.Text += "<tool_call>\n" + string(encode(object{"name": c.Name, "arguments": c.Arguments})) + "\n</tool_call>"
		}
		a.Calls = nil
	}
	delta := func(d object, finish any) {
		event(object{"id": "x", "object": "chat.completion.chunk", "choices": []object{{"index": 0, "delta": d, "finish_reason": finish}}})
	}
	delta(object{"role": "assistant", "content": nil}, nil)
	if q == Reasoning {
		delta(object{"reasoning_content": "hm", "content": nil}, nil)
	}
	text := a.Text
	if q == Thoughts {
		text = "<think>\nhm, a lamp?\n</think>\n\n" + text
	}
	for part := range strings.SplitSeq(text, " ") {
		content := any(part + " ")
		if q == Parts {
			content = []object{{"type": "text", "text": part + " "}}
		}
		delta(object{"content": content}, nil)
	}
	for i, c := range a.Calls {
		f := object{"name": c.Name, "arguments": ""}
		call := object{"index": i, "id": c.ID, "type": "function", "function": f}
		switch q {
		case IndexZero:
			call["index"] = 0
		case NoIndex:
			delete(call, "index")
		case NoIDs:
			delete(call, "id")
		case SameIDs:
			call["id"] = "call"
		}
		one := q == IndexZero || q == NoIndex || q == SameIDs || q == NullContent || q == NoIDs || q == ObjectArguments
		if q == ObjectArguments {
			f["arguments"] = jsontext.Value(c.Arguments)
		} else if one {
			f["arguments"] = string(c.Arguments)
		}
		d := object{"tool_calls": []object{call}}
		if q == NullContent {
			d["content"] = nil
		}
		delta(d, nil)
		step := 7
		if q == Letters {
			step = 1
		}
		for args := string(c.Arguments); args != "" && !one; args = args[min(step, len(args)):] {
			f := object{"arguments": args[:min(step, len(args))]}
			if q == NameTwice {
				f["name"] = c.Name
			}
			delta(object{"tool_calls": []object{{"index": i, "function": f}}}, nil)
		}
	}
	if q != NoFinish {
		delta(object{}, finish(a, q))
	}
	if a.Usage.Known && q != NoUsage && q != UsageEverywhere {
		event(object{"choices": []object{}, "usage": usage(a)})
	}
	if q != NoDone {
		b.WriteString(prefix + "[DONE]" + end + end)
	}
	return b.String()
}

// Stall answers with text, and then stands still until its client has gone.
func Stall(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // or the server does not see that its client has gone
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, text)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

// Flood sends text again and again until its client has gone, or for a gigabyte.
func Flood(kind, begin, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", kind)
		io.WriteString(w, begin)
		for range (1 << 30) / len(text) {
			if _, err := io.WriteString(w, text); err != nil || r.Context().Err() != nil {
				return
			}
		}
	}
}

// Slow sends text letter by letter, each after a while.
func Slow(text string, each time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range text {
			fmt.Fprint(w, text[i:i+1])
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-time.After(each):
			}
		}
	}
}
