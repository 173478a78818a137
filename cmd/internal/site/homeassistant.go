package site

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/node/config"
	"agentsite/node/state"
	"agentsite/transport/page"
	"agentsite/transport/supervisor"
	"agentsite/transport/web"

	"golang.org/x/sync/errgroup"
)

// HomeAssistant connects a site with the Home Assistant whose app it is.
type HomeAssistant struct {
	App    *supervisor.App
	Listen string // the address that Home Assistant calls
	Owner  string // a did:key, which owns a site without an owner; "" for the configuration's
}

// app returns the app that the site is, nil for none.
func (s *site) app() *supervisor.App {
	if s.HomeAssistant == nil {
		return nil
	}
	app := s.HomeAssistant.App
	app.Read = func() string {
		text, err := s.Folder.ReadAtMost(state.AnnouncedFile, 256)
		if err != nil {
			slog.Warn("it is not known what Home Assistant was told of", "err", err)
		}
		return strings.TrimSpace(string(text))
	}
	app.Write = func(uuid string) error {
		return state.WriteAtomic(s.Folder.Path(state.AnnouncedFile), []byte(uuid+"\n"), 0o600)
	}
	return app
}

// hostAddresses returns where others reach the app's HTTPS: at the names of the machine in the configuration, and the
// port, which the app has there, too.
func (s *site) hostAddresses() (all []string) {
	_, port, _ := net.SplitHostPort(s.https.Addr().String())
	for _, name := range s.listen.Hosts {
		all = append(all, net.JoinHostPort(name, port))
	}
	return all
}

// listenIngress opens the listener for Home Assistant.
func (s *site) listenIngress() (err error) {
	if s.HomeAssistant == nil {
		return nil
	}
	if s.ingress, err = net.Listen("tcp", s.HomeAssistant.Listen); err != nil {
		return fmt.Errorf("the page cannot be shown in Home Assistant: %w", err)
	}
	s.onCleanUp(func() { s.ingress.Close() })
	return nil
}

// ingressRoutes returns the routes for Home Assistant.
func (s *site) ingressRoutes() []web.Route {
	shown := page.New(agents.Principal{}, func() []page.Site { return []page.Site{{Name: s.config.Name, URL: "mcp"}} })
	return append(shown.BehindRoutes(), web.HealthRoute(), web.MCP(s.dispatcher, s.legacy.ServeHTTP))
}

// serveIngress serves the page in Home Assistant, and MCP to it. Nothing else of the site is there.
func (s *site) serveIngress(ctx context.Context, group *errgroup.Group) {
	if s.ingress == nil {
		return
	}
	app, routes := s.HomeAssistant.App, s.ingressRoutes()
	pages := web.Handler(web.Options{Behind: true, Callers: app, Routes: routes})
	programs := web.Handler(web.Options{Hosts: []string{app.Host()}, Callers: app, Routes: routes[len(routes)-1:]})
	if !slices.ContainsFunc(s.config.Agents, func(a config.Agent) bool { return a.Kind == supervisor.KindName }) {
		group.Go(func() error { app.Forget(ctx); return nil })
	}
	group.Go(func() error { return web.Serve(ctx, s.ingress, app.Handler(pages, programs)) })
}
