package legacy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentsite/node"
)

// raw is a client that speaks its lines by itself.
type raw struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

// overRaw opens a session, with a client that can be asked for everything.
func overRaw(t *testing.T, s *Server) *raw {
	here, there := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.ServeStream(t.Context(), there, node.LocalAgent) }()
	t.Cleanup(func() {
		here.Close()
		if err := <-served; err != nil && err != io.ErrClosedPipe {
			t.Errorf("ServeStream: %v", err)
		}
	})
	c := &raw{t, here, bufio.NewReader(here)}
	c.say(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"c","version":"1"},` +
		`"capabilities":{"elicitation":{},"sampling":{},"roots":{}}}}`)
	c.hear(`"id":"i"`)
	c.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c *raw) say(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// hear reads a line that has all of the words.
func (c *raw) hear(words ...string) string {
	c.t.Helper()
	line, err := c.in.ReadString('\n')
	for _, w := range words {
		if err != nil || !strings.Contains(line, w) {
			c.t.Fatalf("heard %q, %v; want %q", line, err, words)
		}
	}
	return line
}

// TestLongLine: a line that is too long is answered by its ID and ends no session.
func TestLongLine(t *testing.T) {
	s, _ := newServer(t, newFake())
	c := overRaw(t, s)
	c.say(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","arguments":{"a":"` + strings.Repeat("x", maxMessage) + `"}}}`)
	c.hear(`"id":7`, `"error"`)
	c.say(`{"jsonrpc":"2.0","id":8,"method":"ping"}`)
	c.hear(`"id":8`, `"result"`)
}

// A client that does not read its answers is not read from any more: its messages would be queued
// without a bound.
func TestStreamFlood(t *testing.T) {
	for name, line := range map[string]string{
		"requests":      `{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`,
		"calls":         `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"add","arguments":{"a":1}}}`,
		"notifications": `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newServer(t, newFake())
			c := overRaw(t, s)
			c.say(`{"jsonrpc":"2.0","id":"first","method":"ping"}`)
			if _, err := c.Conn.Read(make([]byte, 1)); err != nil { // the rest of its answer waits to be read
				t.Fatal(err)
			}
			c.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
			said := 0
			for said < 1000 {
				if _, err := fmt.Fprintf(c, line+"\n", said); err != nil {
					break
				}
				said++
			}
			if said > maxInFlight {
				t.Errorf("%d messages were taken of a client that does not read", said)
			}
		})
	}
}

// Where all places are taken, what they wait for still gets through: the client's
// answers and cancellations.
func TestStreamPlaces(t *testing.T) {
	f := newFake()
	s, _ := newServer(t, f)
	c := overRaw(t, s)
	for i := range maxInFlight - 1 {
		c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"forever"}}`, i))
		<-f.running
	}
	c.say(`{"jsonrpc":"2.0","id":"ask","method":"tools/call","params":{"name":"ask"}}`)
	for _, answer := range []string{
		`{"action":"accept","content":{"name":"Ada"}}`, `{"role":"assistant","model":"m","content":{"type":"text","text":"hello"}}`, `{"roots":[]}`,
	} {
		asked := c.hear(`"method":`)
		c.say(`{"jsonrpc":"2.0","id":"more","method":"ping"}`)
		c.hear(`"more"`, `"code":429`, "wait for one")
		_, id, _ := strings.Cut(asked, `"id":`)
		id, _, _ = strings.Cut(id, ",")
		c.say(`{"jsonrpc":"2.0","id":` + id + `,"result":` + answer + `}`)
	}
	c.hear(`"id":"ask"`, "hello Ada")
	c.say(`{"jsonrpc":"2.0","id":"more","method":"ping"}`)
	c.hear(`"id":"more"`, `"result":{}`)
	c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	<-f.ended
	c.hear(`"id":3`)
	c.Close()
	for range maxInFlight - 2 {
		<-f.ended
	}
}

func TestBatch(t *testing.T) {
	s, _ := newServer(t, newFake())
	url := listen(t, s)
	c := connect(t, url, "agent", true, nil)
	for n, status := range map[int]int{2: 200, maxInFlight: 200, maxInFlight + 1: 400} {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d-%d","method":"ping"}`, n, i))
		}
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(" ["+strings.Join(all, ",")+"]"))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Mcp-Protocol-Version", "2025-03-26")
		r.Header.Set(sessionHeader, c.ID())
		res, err := as("agent").Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != status || status == 200 && strings.Count(string(b), `"result"`) != n {
			t.Errorf("%d messages: %s %s", n, res.Status, b)
		}
	}
}

// Where all places are taken, what returns outputs to safe still gets through.
func TestStreamUrgent(t *testing.T) {
	f := newFake()
	s, _ := newServer(t, f)
	c := overRaw(t, s)
	for i := range maxInFlight {
		c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"forever"}}`, i))
		<-f.running
	}
	c.say(`{"jsonrpc":"2.0","id":"move","method":"tools/call","params":{"name":"switch_output"}}`)
	c.hear(`"move"`, `"code":429`)
	for _, name := range []string{"emergency_stop", "release_output"} { // of which there are none here
		c.say(`{"jsonrpc":"2.0","id":"` + name + `","method":"tools/call","params":{"name":"` + name + `"}}`)
		if heard := c.hear(name); strings.Contains(heard, `"code":429`) {
			t.Error(heard)
		}
	}
	c.Close()
	for range maxInFlight {
		<-f.ended
	}
}
