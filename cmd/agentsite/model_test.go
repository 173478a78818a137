package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"agentsite/agents/llm/chat"
	"agentsite/agents/llm/chat/chattest"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/rogpeppe/go-internal/testscript"
)

// startModel starts a server of a model until the script ends, with the key sk-test, at $MODEL: model.
// It does what "agentsite llm check" wants of a model. Told "both on", it switches a lamp and a fan on,
// and told to stall, it begins an answer and ends it never.
func startModel(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: model")
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err != nil {
			return
		}
		if r.Header.Get("Authorization") != "Bearer sk-test" {
			http.Error(w, "no such key: "+r.Header.Get("Authorization"), http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		if i := strings.LastIndex(string(body), `"role":"user"`); strings.Contains(string(body[max(i, 0):]), "stall") {
			for _, word := range []string{"It ", "is ", "getting "} {
				fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", word)
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
					return
				case <-time.After(300 * time.Millisecond):
				}
			}
			<-r.Context().Done()
			return
		}
		io.WriteString(w, chattest.Stream(fit(string(body)), chattest.Plain))
	}))
	ts.Defer(func() { s.CloseClientConnections(); s.Close() })
	ts.Setenv("MODEL", s.URL+"/v1")
}

// fit answers a request as a model does that is fit for a site.
func fit(body string) (a chat.Answer) {
	call := func(name, args string) {
		a.Calls = append(a.Calls, chat.Call{ID: fmt.Sprint(len(a.Calls)), Name: name, Arguments: jsontext.Value(args)})
	}
	i := strings.LastIndex(body, `"role":"user"`)
	said := body[max(i, 0):]
	_, word, remember := strings.Cut(said, "Remember this word: ")
	switch {
	case strings.Contains(said, `"role":"tool"`):
		a.Text = "That is all."
	case remember:
		a.Text = word[:8]
	case strings.Contains(said, "both on"):
		call("switch_output", `{"output":"lamp/relay","on":true,"for_seconds":20}`)
		call("switch_output", `{"output":"fan/relay","on":true,"for_seconds":30}`)
	case strings.Contains(said, "Switch the lamp on"):
		call("switch_output", `{"output":"lamp/relay","on":true}`)
	case strings.Contains(said, "How warm"), strings.Contains(said, "Is the lamp"):
		call("read_points", "{}")
	default:
		a.Text = "Hello"
	}
	return a
}
