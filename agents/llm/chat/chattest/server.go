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
	if refuse(w, s.quirk, body) {
		return
	}
	if s.quirk == BusyOnce && first {
		w.Header().Set("Retry-After", "1")
		http.Error(w, `{"error":{"message":"overloaded"}}`, http.StatusTooManyRequests)
		return
	}
	a := s.Answer(body)
	if media := map[Quirk]string{Whole: "application/json; charset=utf-8", MediaTypeCase: "Application/JSON", PlainJSON: "text/plain", NoStream: "application/json"}[s.quirk]; media != "" {
		w.Header().Set("Content-Type", media)
		w.Write(encode(whole(a)))
		return
	}
	media := "text/event-stream"
	if s.quirk == JSONLines {
		media = "application/x-ndjson"
	}
	w.Header().Set("Content-Type", media)
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
func whole(a chat.Answer) object {
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
	return out
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
	switch q {
	case NoSpace:
		prefix = "data:"
	case JSONLines:
		prefix = ""
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
		c := object{"index": 0, "delta": d, "finish_reason": finish}
		if q == DeltaAndMessage {
			c["message"] = d
		}
		if q == MessageAtEnd && finish != nil {
			c["message"] = whole(a)["choices"].([]object)[0]["message"]
		}
		event(object{"id": "x", "object": "chat.completion.chunk", "choices": []object{c}})
	}
	delta(object{"role": "assistant", "content": nil}, nil)
	text := a.Text
	switch q {
	case Reasoning:
		delta(object{"reasoning_content": "hm", "content": nil}, nil)
	case WantsReasoning, RefusesEcho:
		for part := range strings.SplitAfterSeq("I should read it.", " ") {
			delta(object{"reasoning_content": part, "content": nil}, nil)
		}
		delta(object{"reasoning_content": nil}, nil)
	case WantsDetails:
		for _, part := range details[:2] {
			delta(object{"reasoning_details": []object{part}}, nil)
		}
	case Thoughts:
		text = "<think>\nhm, a lamp?\n</think>\n\n" + text
	case NoOpeningThink:
		text = "hm, a lamp?\n</think>\n\n" + text
	case OtherThoughts:
		text = "[THINK]hm[/THINK]<think>a lamp?</think>" + text
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
		case LongIDs:
			call["id"] = longID(c.ID)
		case WantsSignature:
			call["extra_content"] = signature
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
		if one {
			continue
		}
		for n, piece := range pieces(string(c.Arguments), q) {
			f := object{"arguments": piece}
			if q == NameTwice {
				f["name"] = c.Name
			}
			call := object{"index": i, "function": f}
			if q == OtherIDs || q == OtherIDsAlone {
				call["id"] = fmt.Sprint("other_", i, "_", n)
			}
			if q == OtherIDsAlone {
				delete(call, "index")
			}
			delta(object{"tool_calls": []object{call}}, nil)
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

// spell returns the arguments of a call as a server with a quirk spells them.
func spell(args string, q Quirk) string {
	none := map[Quirk]string{NullArguments: "null", NoneArguments: "None", ListArguments: "[]"}[q]
	switch {
	case none != "" && args == "{}":
		return none
	case q == EmptyFirst:
		return "{}" + args
	case q == TextArguments:
		return chat.Quote(args)
	}
	return args
}

// pieces cuts the arguments of a call as a server with a quirk does.
func pieces(args string, q Quirk) (all []string) {
	step := 7
	if q == Letters {
		step = 1
	}
	for rest := spell(args, q); rest != ""; rest = rest[min(step, len(rest)):] {
		all = append(all, rest[:min(step, len(rest))])
	}
	switch q {
	case ArgumentsTwice:
		all = append(all, args)
	case ArgumentsEnded:
		all[len(all)-1] = args
	}
	return all
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
