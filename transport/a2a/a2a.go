// Package a2a renders the operations and the tasks of hosted agents in the Agent2Agent protocol
// (A2A), versions 1.0 and 0.3. It serves cards, JSON-RPC, and HTTP with JSON. The site's devices
// are one agent, which answers structured data without a model; each hosted agent that takes tasks
// is another agent.
//
// The protocol is that of https://a2a-protocol.org; "section" means one of its specification. The
// protocol's own library for Go is used by tests only: its server accepts names in another case and
// twice, answers each error of a stream with 200, has no kinds of faults beside its own, and needs
// gRPC for 0.3.
package a2a

import (
	"strings"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/transport/adapter"
	"agentsite/transport/rpc"
	"agentsite/transport/web"
)

const (
	thingsBase = "/a2a"
	agentsBase = "/a2a/agents/"
	cardPath   = "/.well-known/agent-card.json"

	mediaType = "application/a2a+json"
)

// Routes returns the routes.
func Routes(s *adapter.Site) []web.Route {
	v := &server{Site: s, things: newThings(s.Node, s.Time)}
	v.pushes = newPushes(v)
	v.methods, v.legacyMethods = v.newMethods()
	routes := append(v.endpoint(thingsBase), v.Document(cardPath, "application/json", v.serveCard))
	if s.Tasks != nil {
		const base = agentsBase + "{agent}"
		routes = append(routes, v.DocumentFor(web.Principals, base+cardPath, "application/json", v.serveCard))
		routes = append(routes, v.endpoint(base)...)
	}
	return routes
}

type server struct {
	*adapter.Site
	things                 *things
	pushes                 *pushes
	methods, legacyMethods map[string]method // of JSON-RPC in 1.0 and in 0.3
}

// endpoint returns the routes of an agent: JSON-RPC at its URL, and HTTP with JSON below it, in 0.3
// below /v1.
func (s *server) endpoint(base string) []web.Route {
	messages := s.Route("POST "+base, web.Principals, s.jsonRPC)
	messages.Refuse = web.RefuseRPC
	routes := []web.Route{messages}
	add := func(pattern, base string, legacy bool, do httpMethod) {
		verb, path, _ := strings.Cut(pattern, " ")
		r := s.Route(verb+" "+base+path, web.Principals, s.overHTTP(legacy, do))
		r.Refuse = refuse(legacy)
		routes = append(routes, r)
	}
	for pattern, do := range map[string]httpMethod{
		"POST /message:send":                                  inBody(s.send),
		"POST /message:stream":                                inBody(s.stream),
		"GET /tasks/{task}":                                   s.httpTask,
		"POST /tasks/{task}":                                  s.httpTask,
		"GET /tasks/{task}/pushNotificationConfigs":           inPath(s.pushes.list),
		"POST /tasks/{task}/pushNotificationConfigs":          s.httpCreatePush,
		"GET /tasks/{task}/pushNotificationConfigs/{push}":    inPath(s.pushes.get),
		"DELETE /tasks/{task}/pushNotificationConfigs/{push}": inPath(s.pushes.delete),
	} {
		add(pattern, base, false, do)
		add(pattern, base+"/v1", true, do)
	}
	add("GET /card", base+"/v1", true, s.httpCard)
	add("GET /tasks", base, false, s.httpList)
	add("GET /extendedAgentCard", base, false, s.httpCard)
	return routes
}

// call is a request of a known caller to one agent.
type call struct {
	who    agents.Principal
	agent  string // "" for the things of the site
	tasks  tasks
	form   form
	base   string // the URL under which the site was reached
	emit   func(reply) error
	events *web.Events // nil until emit was called
}

// send sends an event, and begins the stream with the first one.
func (c *call) send(a *adapter.Call, v any) error {
	if c.events == nil {
		c.events = web.NewEvents(a.Writer)
	}
	return adapter.Emit(c.events, "", v)
}

// begin returns the call of a request, without its emit.
func (s *server) begin(c *adapter.Call) (*call, error) {
	out := &call{who: c.Who, agent: c.Request.PathValue("agent"), base: c.Base(), tasks: s.things}
	if out.agent != "" {
		if err := device.CheckName(out.agent); err != nil {
			return nil, errNoAgent
		}
		out.tasks = s.Tasks
	}
	version := c.Request.Header.Get("A2A-Version")
	if version == "" {
		version = c.Request.URL.Query().Get("A2A-Version")
	}
	var err error
	out.form, err = formOf(version)
	return out, err
}

var errNoAgent = adapter.ErrNotFound("there is no such agent for you here")

// terms returns the terms in the metadata of a message. Without an idempotency key there, its
// messageId is the key.
func (s *server) terms(c *call, m *message) (t agents.Terms, err error) {
	if !m.Metadata.IsZero() {
		if err := m.Metadata.Decode(&t); err != nil {
			return t, invalid("message.metadata", err)
		}
	}
	if t.Key == nil {
		t.Key = new(keyOf(m.ID))
	}
	return t, s.Node.CheckVia(c.who, "a2a/message", t.Via)
}

// decode decodes parameters, ignoring fields that this site does not know (section 5.7).
func decode(raw rpc.Raw, v any) error {
	if err := raw.Decode(v); err != nil {
		return invalid("", err)
	}
	return nil
}
