//go:build e2e

package mcp

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"agentsite/agents/event"
	"agentsite/agents/event/eventtest"
	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/e2e/harness/npm"
	"agentsite/transport/adapter/adaptertest"
	"agentsite/transport/mcp"
	"agentsite/transport/mcp/events"
	"agentsite/transport/mcp/legacy"
	"agentsite/transport/rpc"
	"agentsite/transport/web"
)

// TestEventClients has clients of others poll, stream and receive the events of a scripted source.
func TestEventClients(t *testing.T) {
	s, source := adaptertest.New(t, nil), eventtest.New()
	port := harness.FreePort(t)
	hooks := events.NewWebhooks(events.HookOptions{
		Source: source, Node: s.Node, Hosts: []string{"127.0.0.1:" + port},
		Now: func() (time.Time, bool) { return time.Now(), true }, Ending: s.Ending, Go: s.Go,
	})
	newest := mcp.New(s.Ending, s.Node, s.Tools, mcp.Implementation{Name: "events", Version: "1"}, "")
	older := legacy.New(s.Node, s.Tools, "events", "1", "")
	newest.Events = &events.Server{Source: source, Hooks: hooks}
	older.Events = newest.Events
	t.Cleanup(older.Close)
	s.Serve(t, append(web.PublicRoutes(), web.MCP(rpc.NewDispatcher(newest.Methods()), older.ServeHTTP)))
	askForEvents(t, s.URL, adaptertest.SiteToken, port, eventtest.Name, `{"point":"room/lamp"}`, map[string]func(){
		"/event": func() { source.Add("room/lamp") }, "/end": func() { source.Fail(event.ErrForbidden) },
	})
}

// askForEvents runs the clients against a site, whose push_hosts has the port of 127.0.0.1. happen makes an event, and
// ends the permission.
func askForEvents(t *testing.T, url, token, port, name, args string, happen map[string]func()) {
	control := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { happen[r.URL.Path]() }))
	defer control.Close()
	t.Log(npm.Script(t, 2*time.Minute, "events.mjs", url+"/mcp", token, port, control.URL, name, args))
}
