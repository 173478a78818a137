package mcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/node"
	"agentsite/transport/fault"
	"agentsite/transport/mcp/events"
	"agentsite/transport/rpc"
)

// Server answers MCP's methods.
type Server struct {
	// Library is the catalog, unless a test sets another before the first call.
	Library tools.Library
	// Events answers the methods of events, for which it is set before Methods; nil for none.
	Events *events.Server

	node         *node.Node
	catalog      *tools.Catalog
	self         *Implementation
	instructions string
	ending       context.Context
	seal         seal
	done         map[rpc.Codec][]byte // how a complete tool result begins
}

// New makes a server that offers a catalog to callers that the node authenticates. When ending ends
// the open subscriptions end with a result, so that their clients know that the site went on
// purpose.
func New(ending context.Context, n *node.Node, c *tools.Catalog, self Implementation, instructions string) *Server {
	s := &Server{
		Library: c, node: n, catalog: c, self: &self, instructions: instructions, ending: ending,
		seal: newSeal(),
	}
	s.done = s.beginnings()
	return s
}

// Methods are the methods for a dispatcher.
func (s *Server) Methods() map[string]rpc.Method {
	all := map[string]rpc.Method{
		"server/discover":          method(s, s.discover),
		"tools/list":               method(s, s.toolsList),
		"tools/call":               method(s, s.toolsCall),
		"resources/list":           method(s, s.resourcesList),
		"resources/templates/list": method(s, s.templatesList),
		"resources/read":           method(s, s.resourcesRead),
		"prompts/list":             method(s, s.promptsList),
		"prompts/get":              method(s, s.promptsGet),
		"completion/complete":      method(s, s.complete),
		"skills/list":              method(s, s.skillsList),
		"skills/get":               method(s, s.skillsGet),
		"subscriptions/listen":     method(s, s.listen),
		"tasks/get":                method(s, s.tasksGet),
		"tasks/update":             method(s, s.tasksUpdate),
		"tasks/cancel":             method(s, s.tasksCancel),
	}
	if s.Events != nil {
		maps.Copy(all, s.eventMethods())
	}
	return all
}

// request is one request, its sender known and its metadata in order.
type request struct {
	*rpc.Call
	meta *RequestMeta
	who  agents.Principal
}

// params constrains pointers to structs of parameters.
type params[P any] interface {
	*P
	rpc.Members
	meta() *RequestMeta
	mirrored() string
}

// method wraps do in the checks of every request, in this order: authentication, parameters,
// version, headers.
func method[P any, PP params[P]](s *Server, do func(context.Context, request, *P) (any, error)) rpc.Method {
	return func(ctx context.Context, c *rpc.Call) (any, error) {
		who, err := c.Principal()
		if err != nil {
			return nil, asError(err)
		}
		var p P
		if !c.Params.Walk(PP(&p)) {
			p = *new(P)
			if err := c.Params.Decode(&p); err != nil {
				return nil, malformed(rpc.CodeInvalidParams, "params: %v", err)
			}
		}
		meta := PP(&p).meta()
		if fault := checkMeta(meta); fault != nil {
			return nil, fault
		}
		if c.Header != nil {
			if fault := checkHeaders(c, meta, PP(&p).mirrored()); fault != nil {
				return nil, fault
			}
		}
		if !slices.Contains(rpc.Revisions, meta.Version) {
			return nil, unsupported(meta.Version)
		}
		if err := s.node.CheckVia(who, c.Method, meta.Via); err != nil {
			return nil, asError(err)
		}
		res, err := do(ctx, request{c, meta, who}, &p)
		if err != nil {
			return nil, asError(err)
		}
		return res, nil
	}
}

func checkMeta(m *RequestMeta) *rpc.Error {
	const key = "io.modelcontextprotocol/"
	switch {
	case m == nil:
		return malformed(rpc.CodeInvalidParams, "params._meta is missing: it carries %sprotocolVersion and %sclientCapabilities", key, key)
	case m.Version == "":
		return malformed(rpc.CodeInvalidParams, "params._meta.%sprotocolVersion is missing; this site speaks %s", key,
			strings.Join(rpc.Revisions, ", "))
	case m.Capabilities == nil:
		return malformed(rpc.CodeInvalidParams, "params._meta.%sclientCapabilities is missing; {} will do", key)
	}
	return nil
}

// checkHeaders compares the headers that mirror the message with it (streamable-http, "Server
// Validation").
func checkHeaders(c *rpc.Call, m *RequestMeta, name string) *rpc.Error {
	for _, h := range []struct{ name, body string }{
		{"Mcp-Protocol-Version", m.Version}, {"Mcp-Method", c.Method}, {"Mcp-Name", name},
	} {
		if h.name == "Mcp-Name" && !slices.Contains(named, c.Method) {
			continue
		}
		values := c.Header.Values(h.name)
		if len(values) != 1 {
			return malformed(codeHeaderMismatch, "Header mismatch: %s must be sent once, with the value %.80q", h.name, h.body)
		}
		if values[0] != h.body {
			return malformed(codeHeaderMismatch, "Header mismatch: %s says %.80q and the body %.80q", h.name, values[0], h.body)
		}
	}
	return nil
}

// named are the methods that Mcp-Name goes with.
var named = []string{"tools/call", "resources/read", "prompts/get", "tasks/get", "tasks/update", "tasks/cancel"}

func malformed(code int, format string, args ...any) *rpc.Error {
	return &rpc.Error{Code: code, Message: fmt.Sprintf(format, args...), Malformed: true}
}

func unsupported(version string) *rpc.Error {
	e := malformed(codeUnsupportedVersion, "Unsupported protocol version %.40q; this site speaks %s", version, strings.Join(Versions, ", "))
	e.Data = map[string]any{"supported": Versions, "requested": version}
	return e
}

func asError(err error) error {
	var ours *rpc.Error
	var needs *tools.NeedsCapability
	switch {
	case errors.As(err, &ours):
		return ours
	case errors.As(err, &needs):
		return missing(needs.Needs)
	case errors.Is(err, tools.ErrNotFound):
		return rpc.Errorf(rpc.CodeInvalidParams, "%v", err)
	}
	f := device.AsFault(err)
	if f.Kind == device.Internal {
		return err // the dispatcher logs it and tells nobody
	}
	return rpc.Errorf(fault.Code(f.Kind), "%s", f.Msg)
}

func missing(c tools.Capabilities) *rpc.Error {
	e := malformed(codeMissingCapability, "this call needs a capability that the client has not declared")
	e.Data = map[string]any{"requiredCapabilities": capabilities(c)}
	return e
}

func capabilities(c tools.Capabilities) clientCapabilities {
	var out clientCapabilities
	if c.Elicitation {
		out.Elicitation = &struct{}{}
	}
	if c.Sampling {
		out.Sampling = &struct{}{}
	}
	if c.Roots {
		out.Roots = &struct{}{}
	}
	if c.Tasks {
		out.Extensions.Tasks = &struct{}{}
	}
	return out
}

// completed is the beginning of a result that is one; cached hints that only its
// caller may keep it, for so many milliseconds.
func (s *Server) completed() Result { return Result{"complete", ResultMeta{Server: s.self}} }

func cached(ms int) Cached { return Cached{ms, "private"} }

func (s *Server) discover(_ context.Context, _ request, _ *listParams) (any, error) {
	own := extensions{Unconfirmed: &struct{}{}}
	if s.catalog.Tasks != nil {
		own.Tasks = &struct{}{}
	}
	if s.Events != nil {
		own.Events = &struct{}{}
	}
	if s.catalog.Skills != nil {
		own.Skills = &struct{}{}
	}
	return discoverResult{
		Result: s.completed(), Cached: cached(cacheFor), Versions: Versions, Instructions: s.instructions,
		Capabilities: serverCapabilities{
			Tools: changing{ListChanged: true}, Prompts: changing{ListChanged: true},
			Resources: changing{ListChanged: true, Subscribe: true}, Completions: &struct{}{}, Extensions: own,
			Events: own.Events,
		},
	}, nil
}

// whole refuses a cursor: we never gave one.
func (p *listParams) whole() error {
	if p.Cursor != "" {
		return rpc.Errorf(rpc.CodeInvalidParams, "cursor: there is none; the list comes whole")
	}
	return nil
}
