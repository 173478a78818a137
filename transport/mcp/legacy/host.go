//lint:file-ignore SA1019 older revisions have what the newest deprecates

package legacy

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/transport/mcp/events"
	"agentsite/transport/mcp/view"
	"agentsite/transport/rpc"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// host is the SDK's server for one principal. It lasts while the principal has
// sessions, so there are never more hosts than sessions and requests.
type host struct {
	srv  *Server
	who  agents.Principal
	sdk  *sdk.Server
	http http.Handler
	stop context.CancelFunc // of the watch of the offer

	// With Server.mu.
	users   int               // sessions, and requests that have none yet
	watches map[string]*watch // by URI

	// The offer of the SDK's server.
	offering  sync.Mutex
	tools     []string
	prompts   []string
	resources []string
	templates []string
}

func newHost(s *Server, who agents.Principal) *host {
	h := &host{srv: s, who: who, watches: make(map[string]*watch)}
	can := &sdk.ServerCapabilities{
		Tools:     &sdk.ToolCapabilities{ListChanged: true},
		Prompts:   &sdk.PromptCapabilities{ListChanged: true},
		Resources: &sdk.ResourceCapabilities{ListChanged: true, Subscribe: true},
		Logging:   &sdk.LoggingCapabilities{},
	}
	if s.Events != nil {
		can.AddExtension(events.Extension, nil)
	}
	if s.catalog.Skills != nil {
		can.AddExtension(skillsExtension, nil)
	}
	h.sdk = sdk.NewServer(s.self, &sdk.ServerOptions{
		Instructions:              s.instructions,
		CompletionHandler:         h.complete,
		SubscribeHandler:          h.subscribe,
		UnsubscribeHandler:        h.unsubscribe,
		Capabilities:              can,
		SupportedProtocolVersions: rpc.Handshakes,
		// The answer depends on the caller.
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.CacheScope = "private" },
	})
	h.addEvents(s.Events)
	if s.catalog.Skills != nil {
		if err := h.addSkills(); err != nil {
			slog.Error("skills are not offered to older clients", "err", err)
		}
	}
	h.sdk.AddReceivingMiddleware(h.receive)
	// A handler of its own makes a session id worthless to everybody else. The
	// carrier's list of hosts is stricter than the SDK's check of them.
	h.http = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return h.sdk }, &sdk.StreamableHTTPOptions{
		DisableLocalhostProtection: true, MaxRequestBodyBytes: maxMessage,
	})
	all := agents.Change{Tools: true, Prompts: true, Resources: true}
	h.stop = h.watch(all, nil, h.offer)
	h.offer(all)
	return h
}

// receive stands before every request.
func (h *host) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (res sdk.Result, err error) {
		// A defect in one request must not take the guard of every output down.
		defer rpc.Recover(method, func() {
			res = nil
			err = &jsonrpc.Error{
				Code: jsonrpc.CodeInternalError, Message: "the site failed at this; its log says more",
			}
		})
		if strings.HasPrefix(method, "notifications/") {
			return next(ctx, method, req)
		}
		if strings.HasSuffix(method, "/list") { // the SDK answers by itself, and agents look when they are asked
			h.srv.catalog.Tools(ctx, h.who)
		}
		ss, _ := req.GetSession().(*sdk.ServerSession)
		if method == "initialize" {
			if err := h.srv.admit(h, ss); err != nil {
				return nil, err
			}
		}
		ctx, done := h.srv.during(ctx, ss)
		defer done()
		if read, ok := req.(*sdk.ReadResourceRequest); ok && view.Is(read.Params.URI) { // it is in no list
			return h.readView(ctx, read.Params.URI)
		}
		reached := false
		call, isCall := req.(*sdk.CallToolRequest)
		if isCall {
			ctx = context.WithValue(ctx, reachedKey{}, &reached)
		}
		res, err = next(ctx, method, req)
		if begun, ok := res.(*sdk.InitializeResult); ok && err == nil && h.srv.Events != nil {
			res = initialized{begun}
		}
		if isCall && err != nil && !reached && tools.IsOperation(call.Params.Name) {
			if out, failed := h.callUnlisted(ctx, call); failed == nil {
				res, err = out, nil
			}
		}
		if list, ok := res.(*sdk.ListToolsResult); ok && err == nil {
			res = shown(list, ss)
		}
		return res, sendable(err)
	}
}

// offer brings the SDK's server up to date, which tells the sessions.
func (h *host) offer(c agents.Change) {
	ctx := context.Background()
	h.offering.Lock()
	defer h.offering.Unlock()
	if c.Tools {
		list, _ := h.srv.catalog.Listed(ctx, h.who)
		replace(&h.tools, list, func(t tools.Tool) string { return t.Name }, h.addTool, h.sdk.RemoveTools)
	}
	if c.Prompts {
		prompts, _ := h.srv.Library.Prompts(ctx, h.who)
		replace(&h.prompts, prompts, func(p tools.Prompt) string { return p.Name }, h.addPrompt, h.sdk.RemovePrompts)
	}
	if c.Resources {
		resources, _ := h.srv.Library.Resources(ctx, h.who)
		replace(&h.resources, resources, func(r tools.Resource) string { return r.URI }, h.addResource, h.sdk.RemoveResources)
		templates, _ := h.srv.Library.Templates(ctx, h.who)
		replace(&h.templates, templates, func(t tools.Template) string { return t.URITemplate }, h.addTemplate, h.sdk.RemoveResourceTemplates)
	}
}

// replace adds new tools and then removes old ones, in this order, so that nothing is missing
// meanwhile.
func replace[T any](names *[]string, now []T, name func(T) string, add func(T), remove func(...string)) {
	var kept []string
	for _, t := range now {
		if tried(name(t), func() { add(t) }) {
			kept = append(kept, name(t))
		}
	}
	remove(slices.DeleteFunc(*names, func(n string) bool { return slices.Contains(kept, n) })...)
	*names = kept
}

// tried reports whether the SDK took an offer: it panics at those that it cannot
// serve.
func tried(name string, add func()) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			slog.Warn("this is not offered to older clients", "name", name, "why", p)
		}
	}()
	add()
	return true
}
