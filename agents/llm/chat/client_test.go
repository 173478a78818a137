package chat

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"agentsite/device"
)

// serve answers each request with the next of answers: a content type, a space, and a body, or a
// status.
func serve(t *testing.T, answers ...string) *Endpoint {
	t.Helper()
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, body, _ := strings.Cut(answers[min(n, len(answers)-1)], " ")
		n++
		var code int
		if _, err := fmt.Sscan(kind, &code); err == nil {
			http.Error(w, body, code)
			return
		}
		w.Header().Set("Content-Type", kind)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	e := &Endpoint{URL: s.URL + "/v1", Model: "m"}
	t.Cleanup(e.CloseIdle)
	return e
}

const hello = "text/event-stream data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"lo\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"

// parts is a stream of parts of calls.
func parts(all ...string) string {
	text := "text/event-stream "
	for _, p := range all {
		text += `data: {"choices":[{"delta":{"tool_calls":[` + p + `]}}]}` + "\n\n"
	}
	return text + "data: [DONE]\n\n"
}

func TestComplete(t *testing.T) {
	for name, tt := range map[string]struct {
		answers []string
		want    string // the text and the calls, or the kind of the fault
	}{
		"a stream":                  {[]string{hello}, "Hello"},
		"no stream":                 {[]string{`application/json {"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`}, "Hello 3+1"},
		"busy once":                 {[]string{"503 later", hello}, "Hello"},
		"an unknown field":          {[]string{`400 {"error":{"message":"unknown field stream_options"}}`, hello}, "Hello"},
		"the key":                   {[]string{"401 no"}, "denied"},
		"an error in a 200":         {[]string{"text/event-stream data: {\"error\":{\"message\":\"overloaded\"}}\n\n"}, "unavailable"},
		"cut off":                   {[]string{"text/event-stream data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n"}, "unavailable"},
		"without an end":            {[]string{"text/event-stream data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"},\"finish_reason\":\"stop\"}]}\n\n"}, "Hello"},
		"HTML":                      {[]string{"text/html <html>hello</html>"}, "unavailable"},
		"thoughts":                  {[]string{`application/json {"choices":[{"message":{"content":"<think>hm</think>\nHello"},"finish_reason":"stop"}]}`}, "Hello"},
		"calls at index 0":          {[]string{`text/event-stream data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}},{"index":0,"id":"b","function":{"name":"y","arguments":{"n":1}}}]},"finish_reason":"stop"}]}` + "\n\n"}, ` x{} y{"n":1}`},
		"arguments in pieces":       {[]string{`text/event-stream data: {"choices":[{"delta":{"content":null,"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\""}}]}}]}` + "\n" + `data:{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":2}"}}]}}]}` + "\n\ndata: [DONE]\n"}, ` x{"n":2}`},
		"neither IDs nor arguments": {[]string{`text/event-stream data: {"choices":[{"delta":{"tool_calls":[{"function":{"name":"x","arguments":""}},{"function":{"name":"y","arguments":""}}]},"finish_reason":"stop"}]}` + "\n\n"}, " x{} y{}"},
		"names again in the middle": {[]string{`text/event-stream data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"x","arguments":"{\"a\":{}"}},{"index":0,"function":{"name":"x","arguments":",\"b\":\"\\\"}\"}"}},{"index":0,"function":{"name":"x","arguments":"{}"}}]},"finish_reason":"stop"}]}` + "\n\n"}, ` x{"a":{},"b":"\"}"} x{}`},
		"a call behind another":     {[]string{parts(`{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\":1}"}}`, `{"index":0,"id":"b","function":{"name":"x","arguments":"{\"n\":2}"}}`)}, ` x{"n":1} x{"n":2}`},
		"two calls in turn":         {[]string{parts(`{"index":0,"id":"a","function":{"name":"x"}}`, `{"index":0,"id":"b","function":{"name":"y"}}`, `{"index":0,"id":"a","function":{"arguments":"{\"n\":1}"}}`)}, ` x{"n":1} y{}`},
		"an ID that comes late":     {[]string{parts(`{"index":0,"function":{"name":"x"}}`, `{"index":0,"id":"b","function":{"arguments":"{\"n\":1}"}}`)}, ` x{"n":1}`},
		"a name that comes late":    {[]string{parts(`{"index":0,"id":"a","function":{}}`, `{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}`)}, " x{}"},
		"a call without a name":     {[]string{parts(`{"index":0,"id":"a","function":{"arguments":"{\"n\":1}"}}`)}, "unavailable"},
		"two different arguments":   {[]string{parts(`{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\":1}"}}`, `{"index":0,"function":{"arguments":"{\"n\":2}"}}`)}, ` x!{"n":1}{"n":2}`},
		"arguments of a list":       {[]string{parts(`{"index":0,"id":"a","function":{"name":"x","arguments":"[1]"}}`)}, ` x![1]`},
		"arguments with a twin":     {[]string{parts(`{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\":1,\"n\":2}"}}`)}, ` x!{"n":1,"n":2}`},
		"a mark in the answer":      {[]string{`application/json {"choices":[{"message":{"content":"<think>hm</think>Write </think> at its end."},"finish_reason":"stop"}]}`}, "Write </think> at its end."},
		"broken arguments":          {[]string{`application/json {"choices":[{"message":{"content":null,"tool_calls":[{"id":"a","function":{"name":"x","arguments":"{n:1"}}]}}]}`}, " x!{n:1"},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := serve(t, tt.answers...).Complete(t.Context(), Request{Messages: []Message{{Role: User, Text: "hi"}}, MaxAnswer: 100}, nil)
			got := a.Text
			for _, c := range a.Calls {
				got += " " + c.Name + string(c.Arguments)
				if c.Broken != "" {
					got += "!" + c.Broken
				}
			}
			if a.Usage.Known {
				got += fmt.Sprintf(" %d+%d", a.Usage.Prompt, a.Usage.Answer)
			}
			if err != nil {
				got = string(device.AsFault(err).Kind)
			}
			if got != tt.want {
				t.Errorf("%q %v, want %q", got, err, tt.want)
			}
		})
	}
}

// TestPiecesWithNames: a name beside each letter of the arguments costs no time that grows with their
// square; this took nine seconds.
func TestPiecesWithNames(t *testing.T) {
	piece := func(args string, times int) string {
		one := `{"function":{"name":"x","arguments":"` + args + `"}}`
		return `data: {"choices":[{"delta":{"tool_calls":[` + strings.Repeat(one+",", times-1) + one + "]}}]}\n\n"
	}
	body := piece(`{\"a\":\"`, 1) + strings.Repeat(piece("a", 1000), 60) + piece(`\"}`, 1) + "data: [DONE]\n\n"
	start := time.Now()
	m := merger{body: strings.NewReader(body), alive: func() {}}
	a, err := m.read()
	if err != nil || len(a.Calls) != 1 || len(a.Calls[0].Arguments) != 60_000+len(`{"a":""}`) {
		t.Errorf("%d calls: %v", len(a.Calls), err)
	}
	if took := time.Since(start); took > 30*time.Second && !testing.Short() {
		t.Errorf("it takes %v", took)
	}
}
