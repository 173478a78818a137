package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// receivers are the receivers of notifications of scripts, by their URLs.
var receivers sync.Map

type messages struct {
	mu   sync.Mutex
	all  []string
	down atomic.Bool
}

func (m *messages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if m.down.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, r.URL.Path+" "+string(body))
}

// receiver starts a receiver of notifications at $RECEIVER, has it fail or not, waits until one of its messages
// matches, which it prints, and says how many do: receiver start, receiver down, receiver up, receiver gets
// PATTERN, receiver count N PATTERN.
func receiver(ts *testscript.TestScript, neg bool, args []string) {
	if !neg && len(args) == 1 && args[0] == "start" {
		m := new(messages)
		server := httptest.NewServer(m)
		receivers.Store(server.URL, m)
		ts.Defer(server.Close)
		ts.Setenv("RECEIVER", server.URL)
		return
	}
	found, ok := receivers.Load(ts.Getenv("RECEIVER"))
	if !ok {
		ts.Fatalf("receiver start comes first")
	}
	m := found.(*messages)
	matching := func(pattern string) (all []string) {
		of := regexp.MustCompile(pattern)
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, one := range m.all {
			if of.MatchString(one) {
				all = append(all, one)
			}
		}
		return all
	}
	switch {
	case !neg && len(args) == 1 && (args[0] == "down" || args[0] == "up"):
		m.down.Store(args[0] == "down")
	case len(args) == 2 && args[0] == "gets" && neg:
		if all := matching(args[1]); len(all) > 0 {
			ts.Fatalf("it got %q", all)
		}
	case len(args) == 2 && args[0] == "gets":
		for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			if all := matching(args[1]); len(all) > 0 {
				fmt.Fprintln(ts.Stdout(), strings.Join(all, "\n"))
				return
			}
		}
		ts.Fatalf("no message matches %s in 30 s; it got %q", args[1], matching(""))
	case !neg && len(args) == 3 && args[0] == "count":
		if all := matching(args[2]); fmt.Sprint(len(all)) != args[1] {
			ts.Fatalf("%d match: %q", len(all), all)
		}
	default:
		ts.Fatalf("usage: receiver start|down|up|gets|count")
	}
}
