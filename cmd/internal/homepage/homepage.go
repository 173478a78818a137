// Package homepage serves the page of all sites that a user knows, on the user's own machine. It forwards the
// page's calls with the user's key. What only an owner may do waits for the person, who confirms it at the terminal
// or by a passkey.
package homepage

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"agentsite/agents/principal"
	"agentsite/cmd/internal/peer"
	"agentsite/device"
	"agentsite/node/identity"
	"agentsite/transport/page"
	"agentsite/transport/rpc"
	"agentsite/transport/web"

	"github.com/go-json-experiment/json"
)

// Options are what a home page is made of.
type Options struct {
	User    identity.ID
	Key     func() (identity.Key, error)     // the user's
	List    func() []peer.OwnSite            // the sites that there are now
	Confirm func(context.Context, Act) error // asks the person at the terminal; any error refuses
	Hosts   []string                         // the values of the Host header

	Origin   string         // of the page
	Passkeys *peer.Passkeys // the user's
	Boards   Boards
}

// homePath is the path of the page's own methods.
const homePath = "/home"

// Home is the page of a user's sites.
type Home struct {
	*page.Page
	Handler http.Handler

	options Options
	host    string // whose passkeys are used
	asks    asks

	mu    sync.Mutex
	sites map[string]*site // by name
}

// New makes a home page.
func New(o Options) *Home {
	h := &Home{options: o, sites: make(map[string]*site)}
	did := o.User.String()
	h.Page = page.New(principal.Principal{Kind: principal.Key, ID: did, Account: did}, h.list)
	if at, err := url.Parse(o.Origin); err == nil {
		h.host = at.Hostname()
	}
	if strings.HasSuffix(h.host, "."+web.PageHost) { // each start has another name below it
		h.host = web.PageHost
	}
	h.Home = homePath
	methods := h.passkeyMethods()
	maps.Copy(methods, h.boardMethods())
	maps.Copy(methods, h.programMethods())
	methods[phoneMethod] = method(h.addPhone)
	own := web.MCP(rpc.NewDispatcher(methods), olderRevision).Serve
	h.Handler = web.Handler(web.Options{Hosts: o.Hosts, Callers: h.Callers(page.Nobody{}), Routes: append(h.Routes(),
		h.Bind(web.Route{Pattern: "/at/{site}/mcp", Admission: web.Principals, Serve: h.serve}),
		h.Bind(web.Route{Pattern: homePath, Admission: web.Principals,
			Serve: func(w http.ResponseWriter, r *http.Request, c web.Caller) { own(w, withSession(r), c) }}),
	)})
	return h
}

// list brings the sites up to date. A site that is called as before keeps its connection.
func (h *Home) list() []page.Site {
	now := h.options.List()
	h.mu.Lock()
	defer h.mu.Unlock()
	sites, all := make(map[string]*site), []page.Site{}
	for _, s := range now {
		have := h.sites[s.Name]
		if have == nil || have.own.Owner != s.Owner || have.own.Key != s.Key || have.own.Caller != s.Caller {
			have = newSite(s, h.confirm)
		}
		sites[s.Name] = have
		all = append(all, page.Site{
			Name: s.Name, URL: "/at/" + s.Name + "/mcp", Key: s.Key, Owner: s.Owner, You: s.You,
		})
	}
	h.sites = sites
	return all
}

// find returns the site with a name, which may be new; nil for none.
func (h *Home) find(name string) *site {
	h.mu.Lock()
	s := h.sites[name]
	h.mu.Unlock()
	if s == nil && slices.ContainsFunc(h.list(), func(s page.Site) bool { return s.Name == name }) {
		return h.find(name)
	}
	return s
}

// serve passes a request on to its site.
func (h *Home) serve(w http.ResponseWriter, r *http.Request, c web.Caller) {
	s := h.find(r.PathValue("site"))
	if s == nil {
		web.RefuseRPC(w, http.StatusNotFound, "you know no such site")
		return
	}
	s.messages(w, withSession(r), c)
}

// method makes a method of a function of decoded parameters.
func method[P any](do func(context.Context, *rpc.Call, P) (any, error)) rpc.Method {
	return func(ctx context.Context, c *rpc.Call) (any, error) {
		var p P
		text, err := c.Params.JSONText()
		if err == nil {
			err = json.Unmarshal(text, &p, json.RejectUnknownMembers(true))
		}
		if err != nil {
			return nil, rpc.Errorf(rpc.CodeInvalidParams, "params: %v", err)
		}
		result, err := do(ctx, c, p)
		if err != nil && device.AsFault(err).Kind == device.Internal {
			err = device.Faultf(device.Unavailable, "%w", err) // of a file, or a board
		}
		if err != nil {
			return nil, refusal(err)
		}
		return result, nil
	}
}

// olderRevision refuses messages of MCP revisions with a handshake.
func olderRevision(w http.ResponseWriter, _ *http.Request, _ rpc.Sender) {
	web.RefuseRPC(w, http.StatusBadRequest, "this page speaks MCP "+rpc.Revision)
}
