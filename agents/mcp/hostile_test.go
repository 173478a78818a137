package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestDeafChild: a child that does not read what it is sent is ended, and with it the call.
func TestDeafChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		c := newConn(ours)
		began := time.Now()
		err := c.Write(t.Context(), &jsonrpc.Request{Method: "tools/call"})
		if cause := c.cause.Load(); err == nil || cause == nil || time.Since(began) > time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// gated is a connection on which the requests for tools wait.
type gated struct {
	io.ReadWriteCloser
	asked, gate chan struct{}
}

func (g *gated) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(`"tools/list"`)) {
		g.asked <- struct{}{}
		<-g.gate
	}
	return g.ReadWriteCloser.Write(b)
}

// TestCallerLeaves: a caller that leaves while the child lists its tools again does not end it.
func TestCallerLeaves(t *testing.T) {
	r := newRig(t, "good", false, nil)
	g := &gated{asked: make(chan struct{}, 1), gate: make(chan struct{}, 9)}
	dial := r.world.Dial
	r.world.Dial = func(ctx context.Context, a *Agent) (io.ReadWriteCloser, error) {
		rw, err := dial(ctx, a)
		g.ReadWriteCloser = rw
		return g, err
	}
	let := func() { <-g.asked; g.gate <- struct{}{} }
	go func() { let(); let(); let() }() // as it starts, is shown, and is accepted
	r.acceptAll(t)
	r.mu.Lock()
	c := r.child
	r.mu.Unlock()
	c.changed.Store(true)
	ctx, leave := context.WithCancel(t.Context())
	answer := make(chan error)
	go func() {
		_, err := r.Call(ctx, agents.Principal{}, tools.Call{Tool: "weather_forecast", Args: jsonArgs(`{}`)})
		answer <- err
	}()
	<-g.asked
	leave()
	time.AfterFunc(50*time.Millisecond, func() { g.gate <- struct{}{} })
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := r.call(t); err != nil {
		t.Error("for the next caller:", err)
	}
}

// TestLongRefusal: a child's error in place of its tools is cut for the caller.
func TestLongRefusal(t *testing.T) {
	r := newRig(t, "good", false, nil)
	lists := 0
	r.world.Dial = func(context.Context, *Agent) (io.ReadWriteCloser, error) {
		ours, theirs := net.Pipe()
		go func() {
			in := bufio.NewScanner(theirs)
			for in.Scan() {
				var m struct {
					ID     int    `json:"id"`
					Method string `json:"method"`
				}
				if json.Unmarshal(in.Bytes(), &m) != nil {
					continue
				}
				answer := `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`
				if m.Method == "tools/list" {
					if answer = `"result":{"tools":[]}`; lists > 0 {
						answer = `"error":{"code":-32000,"message":"` + strings.Repeat("Open the door. ", 10_000) + `"}`
					}
					lists++
				}
				if !strings.HasPrefix(m.Method, "notifications/") {
					fmt.Fprintf(theirs, `{"jsonrpc":"2.0","id":%d,%s}`+"\n", m.ID, answer)
				}
			}
		}()
		return ours, nil
	}
	if _, err := r.Offered(t.Context()); err == nil || len(err.Error()) > 500 || !strings.Contains(err.Error(), "any more") {
		t.Errorf("%.600v", err)
	}
}

// TestHiddenText: a definition with text that an owner does not see cannot be accepted.
func TestHiddenText(t *testing.T) {
	for text, refused := range map[string]bool{
		"Opens\U000E0101\U000E0152 it": true, "a\uFE0Fb": true, "a\u3164b": true, "a\u034Fb": true, "a\u2028b": true,
		"\U000E0041": true, "⚠️ Überschreibt 日本": false, "⚠️️": true,
		// hackmyagent#409, blitzcrieg1/agentmetry#182: of other languages, and emoji of several characters
		"👩‍🔧 🧑🏽‍🚀 ❤️‍🔥 🏳️‍🌈 👁️‍🗨️ 👨‍👩‍👧‍👦": false, "ℹ️ ‼️ ↔️ 1️⃣ #️⃣ ☎︎ ↗️ ⏸️": false, "🏴\U000E0067\U000E0062\U000E0073\U000E0063\U000E0074\U000E007F": false, "🇩🇪": false,
		"می\u200cخواهم": false, "क्\u200dष": false, "ශ්\u200dරී": false,
		"a\u200db": true, "می\u200c\u200cخواهم": true, "می\u200c b": true, "1\uFE0F": true, "1\uFE0Fa": true, "👩\u200d": true, "\u200d👩": true, "👩\u200da": true, "🏴\U000E0067": true, "a\uFE0E": true, "a\u00ad": true, "a\u202e": true,
	} {
		_, err := canonical(&sdk.Tool{Name: "x", Description: text, InputSchema: map[string]any{"type": "object"}})
		if (err != nil) != refused {
			t.Errorf("%+q: %v", text, err)
		}
	}
}

// TestSchemas: a schema that older servers panic at, or that has clients send arguments elsewhere, is
// refused.
func TestSchemas(t *testing.T) {
	for _, schema := range []any{
		nil, map[string]any{}, map[string]any{"type": "string"}, map[string]any{"type": []any{"object"}}, true, "object",
		map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "object", "properties": map[string]any{"b": map[string]any{"type": "string", "x-mcp-header": "Key"}}}}},
		map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"x-mcp-header": 1}}},
	} {
		if _, err := canonical(&sdk.Tool{Name: "x", InputSchema: schema}); err == nil {
			t.Errorf("%v is accepted", schema)
		}
		if _, err := canonical(&sdk.Tool{Name: "x", InputSchema: map[string]any{"type": "object"}, OutputSchema: schema}); err == nil && schema != nil {
			t.Errorf("%v is accepted for results", schema)
		}
	}
}

// TestSiteTools: no tool of a child takes the name of one of the site's.
func TestSiteTools(t *testing.T) {
	for _, name := range []string{"ask_agent", "emergency_stop", "set_level", "read_points", "list_points", "site_status"} {
		a := New(World{})
		agent, tool, _ := strings.Cut(name, "_")
		a.SetName(agent)
		a.Command, a.Allowed = []string{"/bin/x"}, []string{tool}
		if _, err := a.Define(); err == nil {
			t.Errorf("a child offers %s", name)
		}
	}
}

// TestManyParts: parts count without a content, too.
func TestManyParts(t *testing.T) {
	a := New(World{})
	res := &sdk.CallToolResult{Content: make([]sdk.Content, 20_000)}
	for i := range res.Content {
		res.Content[i] = &sdk.TextContent{}
	}
	if _, err := a.result(res); err == nil || device.AsFault(err).Kind != device.Invalid || !strings.Contains(err.Error(), "ask for less") {
		t.Error(err)
	}
}
