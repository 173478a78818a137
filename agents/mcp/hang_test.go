package mcp

import (
	"bufio"
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/tools"
	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// hanging is a child of 2025-11-25 that answers a method as often as its number says, and -1 for always;
// of another method it takes no notice.
type hanging struct {
	answers map[string]int
	notes   chan string
	listing time.Duration // what its list takes
	closing time.Duration // and its end
	dialing time.Duration // and what its start does, whatever the caller wants
	silent  bool          // before it is initialized
	newest  bool          // it is one of 2026-07-28
	starts  int
}

const listed = `{"tools":[{"name":"get-forecast","description":"Says it.","inputSchema":{"type":"object"}}]}`

func (h *hanging) dial(context.Context, *Agent) (io.ReadWriteCloser, error) {
	h.starts++
	time.Sleep(h.dialing)
	ours, theirs := net.Pipe()
	answers := make(map[string]int)
	for method, n := range h.answers {
		answers[method] = n
	}
	go func() {
		in := bufio.NewReader(theirs)
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				theirs.Close()
				return
			}
			var q struct {
				ID     jsontext.Value `json:"id"`
				Method string         `json:"method"`
			}
			if json.Unmarshal(line, &q) == nil && q.Method == "server/discover" && !h.silent && !h.newest {
				io.WriteString(theirs, `{"jsonrpc":"2.0","id":`+string(q.ID)+`,"error":{"code":-32601,"message":"no such method"}}`+"\n")
			}
			if json.Unmarshal(line, &q) != nil || q.ID == nil || answers[q.Method] == 0 {
				continue
			}
			if answers[q.Method]--; q.Method == "tools/list" {
				time.Sleep(h.listing)
			}
			result := map[string]string{
				"initialize":      `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"c","version":"1"}}`,
				"server/discover": `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`,
				"tools/list":      listed, "tools/call": `{"content":[{"type":"text","text":"rain"}]}`, "ping": "{}",
			}[q.Method]
			io.WriteString(theirs, `{"jsonrpc":"2.0","id":`+string(q.ID)+`,"result":`+result+"}\n")
		}
	}()
	if h.notes != nil {
		go func() {
			for note := range h.notes {
				io.WriteString(theirs, note+"\n")
			}
		}()
	}
	return &slowClose{ours, h.closing}, nil
}

// slowClose takes its time to end, as a process does that holds on.
type slowClose struct {
	net.Conn
	takes time.Duration
}

func (c *slowClose) Close() error {
	time.Sleep(c.takes)
	return c.Conn.Close()
}

// run runs an agent with the child in a bubble, until end is called.
func (h *hanging) run(t *testing.T) (a *Agent, end func()) {
	t.Helper()
	text, err := canonicalOf(listed)
	if err != nil {
		t.Fatal(err)
	}
	book, err := ReadBook([]byte(`{"weather":{"get-forecast":`+text+`}}`), func([]byte) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	a = New(World{Book: book, Version: "1", Dial: h.dial})
	a.SetName("weather")
	a.Command, a.Allowed = []string{"x"}, []string{"get-forecast"}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(ctx, agents.Principal{ID: "mcp:weather"}, nil) }()
	synctest.Wait()
	return a, func() { cancel(); <-ended }
}

func canonicalOf(list string) (string, error) {
	var all struct {
		Tools []jsontext.Value `json:"tools"`
	}
	if err := json.Unmarshal([]byte(list), &all); err != nil {
		return "", err
	}
	return string(all.Tools[0]), all.Tools[0].Canonicalize()
}

var noPrincipal agents.Principal

var callForecast = tools.Call{Tool: "weather_get_forecast", Args: jsonArgs("{}")}

func callOf(ctx context.Context, a *Agent) error {
	_, err := a.Call(ctx, agents.Principal{}, callForecast)
	return err
}

// TestListHangs: a caller that leaves while the tools are listed again does not end the child. A
// child that does not list them blocks nobody for long.
func TestListHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{answers: map[string]int{"initialize": -1, "tools/list": 2, "tools/call": -1}, notes: make(chan string), listing: 5 * time.Second}
		defer close(h.notes)
		a, end := h.run(t)
		defer end()
		changes := func() {
			h.notes <- `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
			synctest.Wait()
		}
		if err := callOf(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		changes()
		leaving, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		callOf(leaving, a)
		synctest.Wait()
		if err := callOf(t.Context(), a); err != nil || h.starts != 1 {
			t.Errorf("a caller that left has ended the child: %v after %d starts", err, h.starts)
		}
		changes()
		came := time.Now()
		err := callOf(t.Context(), a)
		if took := time.Since(came); kindOf(err) != device.Offline || took > startTime {
			t.Errorf("%v after %v", err, took)
		}
		synctest.Wait()
		if rep := a.Report(t.Context()); rep.State != agent.Failed || rep.Says == "" {
			t.Errorf("%+v", rep)
		}
	})
}

// TestSlowEnd: nobody waits for a child that takes long to end.
func TestSlowEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{answers: map[string]int{"initialize": -1, "tools/list": -1, "tools/call": -1}, closing: 2 * time.Second}
		a, end := h.run(t)
		defer end()
		if err := callOf(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		time.Sleep(idleTime + time.Second) // it is being ended
		came := time.Now()
		if len(a.Tools()) != 1 || time.Since(came) > 0 {
			t.Errorf("the tools are known after %v", time.Since(came))
		}
		if err := callOf(t.Context(), a); err != nil || h.starts != 2 {
			t.Errorf("a call meanwhile: %v after %d starts", err, h.starts)
		}
	})
}

// TestEndWhileStarting: when an agent has ended, so has a child that was about to start.
func TestEndWhileStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{dialing: 2 * time.Second}
		a, end := h.run(t)
		var err error
		go func() { err = callOf(t.Context(), a) }()
		time.Sleep(time.Second)
		came := time.Now()
		end()
		took := time.Since(came)
		synctest.Wait()
		if kindOf(err) != device.Offline || took > 2*time.Second {
			t.Errorf("%v, and it ended after %v", err, took)
		}
	})
}

// TestHungChild: a child of either revision that answers nothing any more is ended, and the next call is
// served.
func TestHungChild(t *testing.T) {
	for greeting, newest := range map[string]bool{"initialize": false, "server/discover": true} {
		synctest.Test(t, func(t *testing.T) {
			h := &hanging{answers: map[string]int{greeting: -1, "tools/list": -1}, newest: newest}
			a, end := h.run(t)
			defer end()
			leaving, leave := context.WithTimeout(t.Context(), time.Second)
			defer leave()
			if err := callOf(leaving, a); err == nil {
				t.Error("it was answered")
			}
			h.answers["tools/call"] = -1
			time.Sleep(callTime + 10*time.Second)
			if err := callOf(t.Context(), a); err != nil || h.starts != 2 {
				t.Errorf("%s: %v after %d starts", greeting, err, h.starts)
			}
		})
	}
}

// TestCallWhenIdle: a call in the moment in which the child is stopped, because it was idle, is made by
// the next one.
func TestCallWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{answers: map[string]int{"initialize": -1, "tools/list": -1, "tools/call": -1}}
		a, end := h.run(t)
		for range 300 {
			if err := callOf(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			time.Sleep(idleTime)
		}
		end()
		if h.starts < 2 {
			t.Error("it was never stopped")
		}
	})
}

// TestSilentBeforeInitialize: a child that is silent before its handshake is greeted in the older
// revision in time, and at once when it is started again.
func TestSilentBeforeInitialize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{answers: map[string]int{"initialize": -1, "tools/list": -1, "tools/call": -1}, silent: true}
		a, end := h.run(t)
		defer end()
		came := time.Now()
		if err := callOf(t.Context(), a); err != nil || h.starts != 2 || time.Since(came) >= startTime {
			t.Fatalf("%v after %d starts and %v", err, h.starts, time.Since(came))
		}
		time.Sleep(idleTime + time.Second)
		came = time.Now()
		if err := callOf(t.Context(), a); err != nil || h.starts != 3 || time.Since(came) > time.Second {
			t.Errorf("%v after %d starts and %v", err, h.starts, time.Since(came))
		}
	})
}
