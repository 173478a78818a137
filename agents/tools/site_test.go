package tools_test

import (
	"context"
	"errors"
	"net"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/device"
	"agentsite/node"
	"agentsite/transport/mcp"
	"agentsite/transport/mcp/client"
	"agentsite/transport/rpc"
)

// connect returns a client of the rig's site.
func (r *rig) connect(t *testing.T, codec rpc.Codec) (c *client.Client, end func()) {
	t.Helper()
	dispatcher := rpc.NewDispatcher(mcp.New(t.Context(), r.node, r.Catalog, mcp.Implementation{Name: "test", Version: "1"}, "").Methods())
	pipe, there := net.Pipe()
	here := socket{pipe, make(chan []byte, 64), make(chan struct{})}
	var serving sync.WaitGroup
	stream := rpc.NewStreamClient(here, codec)
	serving.Go(here.run)
	serving.Go(func() { stream.Run() })
	serving.Go(func() {
		s := rpc.Stream{Dispatcher: dispatcher, Sender: rpc.From(node.LocalAgent), Terms: rpc.Terms{Codec: codec, Known: func() bool { return true }}}
		s.Serve(context.Background(), there)
	})
	return client.New(stream, "test", "1"), func() {
		close(here.done)
		here.Close()
		serving.Wait()
	}
}

// socket is a pipe whose writes do not wait for the reader. The next writer would wait for a mutex,
// during which the clock of synctest does not go on.
type socket struct {
	net.Conn
	out  chan []byte
	done chan struct{}
}

func (s socket) Write(b []byte) (int, error) {
	select {
	case s.out <- slices.Clone(b):
		return len(b), nil
	case <-s.done:
		return 0, net.ErrClosed
	}
}

func (s socket) run() {
	for {
		select {
		case b := <-s.out:
			_, _ = s.Conn.Write(b) // the reading side tells of an error
		case <-s.done:
			return
		}
	}
}

// said returns a site's answers and errors for calls of every kind.
func said(t *testing.T, s agents.Site) (all []any) {
	t.Helper()
	ctx, p := t.Context(), agents.Principal{Kind: principal.LocalAgent, ID: "local-agent"} // as the client is known
	say := func(answer any, err error) {
		t.Helper()
		var needs *agents.ApprovalNeeded
		switch {
		case errors.As(err, &needs):
			all = append(all, "approval", needs.Says != "", needs.State != "")
		case err != nil:
			all = append(all, device.AsFault(err).Kind, err.Error())
		default:
			all = append(all, answer)
		}
	}
	offer, err := s.Offer(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	names := *offer
	names.Descriptions = nil // which a client has no use for
	say(names, nil)
	say(boxed(s.Points(ctx, p, agents.SiteRequest{})))
	say(boxed(s.Read(ctx, p, agents.ReadRequest{})))
	say(boxed(s.Read(ctx, p, agents.ReadRequest{Points: []string{"outside/pressure", "greenhouse/heater"}})))
	say(boxed(s.Read(ctx, p, agents.ReadRequest{Points: []string{"outside/nothing"}})))
	say(boxed(s.History(ctx, p, agents.HistoryRequest{Point: "outside/humidity", Hours: new(2.0), Steps: new(2.0)})))
	say(boxed(s.History(ctx, p, agents.HistoryRequest{Point: "outside/humidity", Hours: new(0.0)})))
	say(boxed(s.History(ctx, p, agents.HistoryRequest{Point: "greenhouse/heater", From: "1999-12-31T23:30:00Z"})))
	say(boxed(s.Move(ctx, p, agents.MoveRequest{Output: "greenhouse/heater", Value: device.Bool(true), For: new(5.5)})))
	say(boxed(s.Move(ctx, p, agents.MoveRequest{Output: "greenhouse/vent", Value: device.Number(45)})))
	say(boxed(s.Move(ctx, p, agents.MoveRequest{Output: "greenhouse/vent", Value: device.Number(101)})))
	say(boxed(s.Move(ctx, p, agents.MoveRequest{Output: "greenhouse/vent", Value: device.Bool(true)})))
	say(boxed(s.Move(ctx, p, agents.MoveRequest{Output: "greenhouse/lamp", Value: device.Bool(true)}))) // its owner confirms
	say(boxed(s.Status(ctx, p, agents.SiteRequest{})))
	say(boxed(s.Move(ctx, p, agents.MoveRequest{Output: "greenhouse/heater"})))
	say(boxed(s.Move(ctx, p, agents.MoveRequest{Output: "greenhouse/vent", Value: device.Number(0)})))
	say(nil, s.Show(ctx, p, agents.ShowRequest{Display: "greenhouse/message", Text: "hello"}))
	say(nil, s.Show(ctx, p, agents.ShowRequest{Display: "greenhouse/message", Text: "a\x00"}))
	say(boxed(s.Capture(ctx, p, agents.CaptureRequest{Camera: "greenhouse/camera"})))
	say(boxed(s.Capture(ctx, p, agents.CaptureRequest{Camera: "greenhouse/message"})))
	say(boxed(s.Stop(ctx, p, agents.SiteRequest{})))
	return all
}

func boxed[T any](v T, err error) (any, error) { return v, err }

// TestSites: the node, its clients in either encoding, and a group of it alone answer the
// same to everything.
func TestSites(t *testing.T) {
	answers := make(map[string][]any)
	for _, kind := range []string{"node", "JSON", "CBOR", "group"} {
		synctest.Test(t, func(t *testing.T) {
			devices := wire(t, "greenhouse", "greenhouse", "outside", "climate")
			devices[0].Confirm = []string{"lamp"}
			r := newRig(t, devices)
			defer r.stop()
			time.Sleep(time.Minute)
			r.put("outside/pressure", device.Reading{Value: device.Number(100653.5), Quality: device.Good, At: time.Now().Add(-time.Second)})
			r.past["outside/humidity"] = []device.Summary{{At: time.Now().Add(-time.Hour), Min: 1, Mean: 2, Max: 3, Last: 2.5, Count: 4, Good: 3}}
			r.changes["greenhouse/heater"] = []device.Change{{At: time.Now().Add(-time.Hour), Value: device.Bool(true), Holder: "token"}, {At: time.Now().Add(-time.Minute), Cause: "its lease was over"}}
			var site agents.Site = r.node
			if codec, ok := map[string]rpc.Codec{"JSON": rpc.JSON, "CBOR": rpc.CBOR, "group": rpc.CBOR}[kind]; ok {
				c, end := r.connect(t, codec)
				defer end()
				site = c
			}
			if kind == "group" {
				g, end := asGroup(t, site)
				defer end()
				site = g
			}
			answers[kind] = said(t, site)
		})
	}
	answers["group, unsaid"], answers["node, unsaid"] = unsaid(answers["group"]), unsaid(answers["node"])
	for _, kind := range []string{"JSON", "CBOR", "group, unsaid"} {
		like := "node"
		if kind == "group, unsaid" {
			like = "node, unsaid"
		}
		for i, want := range answers[like] {
			if got := answers[kind]; i >= len(got) || !reflect.DeepEqual(got[i], want) {
				t.Errorf("%s: answer %d is\n%+v\nwant\n%+v", kind, i, got[min(i, len(got)-1)], want)
			}
		}
	}
}

// TestNoText: a caller that wants no text has each result once, in a much smaller answer.
func TestNoText(t *testing.T) {
	r := newRig(t, wire(t, "greenhouse", "greenhouse", "outside", "climate", "shed", "climate"))
	defer r.stop()
	dispatcher := rpc.NewDispatcher(mcp.New(t.Context(), r.node, r.Catalog, mcp.Implementation{Name: "test", Version: "1"}, "").Methods())
	ask := func(meta string) (size int) {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_points","_meta":{` + meta +
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
		dispatcher.Serve(t.Context(), &rpc.Incoming{Codec: rpc.JSON, Body: []byte(body), Sender: rpc.Sender{Who: node.LocalAgent},
			Send: func(o rpc.Outgoing) error { size = len(o.Body); return nil }})
		return size
	}
	with, without := ask(""), ask(`"agentsite/text":"none",`)
	if t.Logf("17 points: %d bytes with a text, %d without", with, without); without > with/2 {
		t.Errorf("%d bytes with a text, %d without", with, without)
	}
}

var _ agents.Site = (*node.Node)(nil)
