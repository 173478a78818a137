package site

import (
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node/acts"
	"agentsite/transport/catalog"
	"agentsite/transport/oauth"
	"agentsite/transport/rpc"
	"agentsite/transport/web"
)

// signIns is the authorization server at the one URL at which programs sign in. A public name may be chosen while
// the site runs, and has a server of its own: what waits at the one before is over.
type signIns struct{ at atomic.Pointer[oauth.Server] }

// signInAt has programs sign in at a URL of MCP from now on, and nowhere else.
func (s *site) signInAt(url string) *oauth.Server {
	server := oauth.New(oauth.Options{Key: s.key, Name: s.config.Name, URL: url, Access: s.access, Lacks: s.lacks})
	s.access.SetSignInURL(url)
	s.signIns.at.Store(server)
	slog.Info("programs may ask to sign in", "url", url)
	return server
}

func (s *site) lacks(who agents.Principal, tool string, args rpc.Raw) error {
	return s.node.Lacks(who, tool, args)
}

// handlePublic returns the handler of a public name. Only programs that signed in are known there.
func (s *site) handlePublic(name string) http.Handler {
	server := s.signInAt("https://" + name + "/mcp")
	return web.Handler(web.Options{
		Hosts: []string{name}, NamesOnly: true, Callers: oauth.Callers{Callers: s.node},
		Routes: s.publicRoutes(server), SignIn: server.SignIn(),
	})
}

// publicRoutes returns the routes of a public name, which are MCP and how to sign in; none before there is a name.
func (s *site) publicRoutes(server *oauth.Server) []web.Route {
	if server == nil {
		return nil
	}
	routes := append(server.Routes(), server.Bind(s.messages))
	if slices.Contains(s.config.Protocols, "catalog") {
		routes = append(routes, catalog.PublicRoutes(s.Version, server.SignIn().Host)...)
	}
	return routes
}

var errNoName error = device.Faultf(device.Invalid, "the site has no public name yet, at which programs sign in")

func (s *signIns) Waiting() []acts.SignIn {
	if server := s.at.Load(); server != nil {
		return server.Waiting()
	}
	return nil
}

// handles lists those of the programs that wait.
func (s *signIns) handles() (all []string) {
	for _, in := range s.Waiting() {
		all = append(all, in.Handle)
	}
	return all
}

// Arrivals lists the last steps of programs that sign in.
func (s *signIns) Arrivals() []acts.PublicStep {
	if server := s.at.Load(); server != nil {
		return server.Arrivals()
	}
	return nil
}

func (s *signIns) Allow(handle, name string, grant []byte) error {
	if server := s.at.Load(); server != nil {
		return server.Allow(handle, name, grant)
	}
	return errNoName
}

func (s *signIns) Deny(handle string) error {
	if server := s.at.Load(); server != nil {
		return server.Deny(handle)
	}
	return errNoName
}
