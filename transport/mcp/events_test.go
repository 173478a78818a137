package mcp_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents/event"
	"agentsite/agents/event/eventtest"
	"agentsite/agents/tools"
	"agentsite/node"
	"agentsite/transport/mcp"
	"agentsite/transport/mcp/events"
	"agentsite/transport/rpc"
)

// withEvents is a server with a scripted source of events.
func withEvents(t testing.TB) (*bench, *eventtest.Source) {
	hub := node.NewHub(nil, forgetful{}, func(a string) string { return "t:" + a })
	ending, end := context.WithCancel(t.Context())
	n := node.New(node.Parts{Hub: hub, Token: "secret", Tools: []tools.Agent{shelf{}}})
	s := mcp.New(ending, n, tools.New(n, n), mcp.Implementation{Name: "test", Version: "1"}, "")
	source := eventtest.New()
	s.Events = &events.Server{Source: source}
	return &bench{hub: hub, dispatcher: rpc.NewDispatcher(s.Methods()), end: end}, source
}

const (
	sep    = `{"extensions":{"io.modelcontextprotocol/events":{}}}`
	ofLamp = `"name":"point.changed","arguments":{"point":"room/lamp"}`
)

// TestEventsAbsent: a site without a source has no method of events and no capability.
func TestEventsAbsent(t *testing.T) {
	b := newBench()
	if got := b.lines(t, message("server/discover", "", "{}"), nil)[0]; strings.Contains(got, "events") {
		t.Error(got)
	}
	if got := b.lines(
		t, message("events/list", "", "{}"), nil,
	)[0]; field(t, got, "error", "code") != float64(rpc.CodeMethodNotFound) {
		t.Error(got)
	}
}

// TestEventsTranscript has the capability, the list and polls as they are on the wire.
func TestEventsTranscript(t *testing.T) {
	b, source := withEvents(t)
	const server = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"}}`
	discovered := b.lines(t, message("server/discover", "", "{}"), nil)[0]
	for _, place := range [][]string{{"extensions", "io.modelcontextprotocol/events"}, {"events"}} {
		if _, ok := field(t, discovered, append([]string{"result", "capabilities"}, place...)...).(map[string]any); !ok {
			t.Errorf("no %v in %s", place, discovered)
		}
	}
	source.Add("room/lamp")
	for _, step := range []struct{ method, params, capabilities, want string }{
		{"events/list", "", "{}", `"result":{"resultType":"complete",` + server + `,"events":[{"name":"point.changed","description":"A point has another value.",` +
			`"delivery":["poll","push"],"inputSchema":{"type":"object","properties":{"point":{"type":"string"}},"required":["point"]},"payloadSchema":{"type":"object"}}]}`},
		{"events/poll", ofLamp + `,"cursor":null`, "{}",
			`"result":{"resultType":"complete",` + server + `,"events":[],"cursor":"1","truncated":false,"hasMore":false,"nextPollMs":5000}`},
		{"events/poll", ofLamp + `,"cursor":"0","maxEvents":1`, "{}", `"result":{"resultType":"complete",` + server +
			`,"events":[{"eventId":"e1","name":"point.changed","timestamp":"2026-11-28T00:00:01.000Z","data":{"point":"room/lamp","value":1}}],` +
			`"cursor":"1","truncated":false,"hasMore":false,"nextPollMs":5000}`},
		{"events/poll", `"name":"no.such","arguments":{"point":"a/b"}`, sep,
			`"error":{"code":-32023,"message":"there is no such event, or it is not of such a point, for you: events/list has the names of both","data":{"kind":"event"}}`},
		{"events/poll", `"name":"no.such","arguments":{"point":"a/b"}`, "{}",
			`"error":{"code":-32011,"message":"there is no such event, or it is not of such a point, for you: events/list has the names of both","data":{"kind":"event"}}`},
		{"events/poll", `"name":"point.changed"`, sep, `"error":{"code":-32602,"message":"point: name a point"}`},
		{"events/poll", ofLamp + `,"cursor":7`, sep,
			`"error":{"code":-32602,"message":"cursor: is one that this site gave, or null for events from now on"}`},
	} {
		want := `{"jsonrpc":"2.0","id":1,` + step.want + `}`
		if got := b.lines(t, message(step.method, step.params, step.capabilities), nil)[0]; got != want {
			t.Errorf("%s %s:\n%s\nwant\n%s", step.method, step.params, got, want)
		}
	}
	var got string
	b.say(t.Context(), rpc.CBOR, toCBOR(
		t, message("events/poll", ofLamp+`,"cursor":"0"`, "{}"),
	), local, nil, func(s string) { got = s })
	if !strings.Contains(got, "e1") {
		t.Errorf("CBOR: %q", got)
	}
}

// stream opens an events/stream, whose messages come to the returned function one after another.
func (b *bench) stream(t *testing.T, params string) (next func() string, leave func()) {
	ctx, cancel := context.WithCancel(t.Context())
	heard := make(chan string, 64)
	go func() {
		b.say(ctx, rpc.JSON, []byte(message("events/stream", params, sep)), local, nil, func(s string) { heard <- s })
		close(heard)
	}()
	return func() string { return <-heard }, cancel
}

// TestEventsStream: a stream begins with active, has events and heartbeats, says at a gap that events may be missing, and
// ends with the permission within an event.
func TestEventsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, source := withEvents(t)
		next, leave := b.stream(t, ofLamp+`,"cursor":null`)
		defer leave()
		expect := func(method, has string) {
			t.Helper()
			got := next()
			if field(t, got, "method") != "notifications/events/"+method || field(
				t, got, "params", "_meta", "io.modelcontextprotocol/subscriptionId",
			) != 1. ||
				!strings.Contains(got, has) {
				t.Errorf("%s, want %s with %s", got, method, has)
			}
		}
		expect("active", `"cursor":"0","truncated":false`)
		source.Add("room/lamp")
		source.Add("other/point")
		expect("event", `"eventId":"e1"`)
		began := time.Now()
		for range 3 {
			expect("heartbeat", `"cursor":"2"`)
		}
		if silence := time.Since(began) / 3; silence > 30*time.Second {
			t.Errorf("a heartbeat each %v", silence)
		}
		source.Add("room/lamp")
		expect("event", `"eventId":"e3"`)
		source.Fail(fmt.Errorf("a cause that is nobody's business"))
		expect("error", `"code":-32603,"message":"the site failed at this`)
		source.Fail(nil)
		source.Add("room/lamp")
		expect("event", `"eventId":"e4"`)
		source.Hide("room/lamp")
		expect("terminated", `"error":{"code":-32024`)
		if got := next(); field(t, got, "result", "resultType") != "complete" {
			t.Error(got)
		}
	})
}

// TestEventsStreamRefused: a refused subscription opens nothing, and one that is left leaves its place.
func TestEventsStreamRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, source := withEvents(t)
		next, _ := b.stream(t, `"name":"no.such","arguments":{"point":"a/b"}`)
		if got := next(); field(t, got, "error", "code") != -32023. {
			t.Error(got)
		}
		var leaves []func()
		for {
			next, leave := b.stream(t, ofLamp)
			leaves = append(leaves, leave)
			if got := next(); strings.Contains(got, `"error"`) {
				if field(t, got, "error", "code") != -32025. || field(t, got, "error", "data", "limit") != "subscriptions" {
					t.Error(got)
				}
				break
			}
		}
		for _, leave := range leaves {
			leave()
		}
		synctest.Wait()
		next, leave := b.stream(t, ofLamp)
		if got := next(); !strings.Contains(got, "active") {
			t.Error(got)
		}
		source.Fail(event.ErrForbidden)
		if got := next(); !strings.Contains(got, "terminated") {
			t.Error(got)
		}
		leave()
	})
}

// TestEventsEnding: a stream ends with a result when the site goes.
func TestEventsEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := withEvents(t)
		next, leave := b.stream(t, ofLamp)
		defer leave()
		next()
		b.end()
		if got := next(); field(t, got, "result", "resultType") != "complete" {
			t.Error(got)
		}
	})
}
