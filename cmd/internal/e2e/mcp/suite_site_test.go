//go:build e2e

package mcp

import (
	"testing"

	"agentsite/agents/conformance"
	"agentsite/agents/principal"
	"agentsite/agents/task"
	"agentsite/cmd/internal/e2e/harness/npm"
	"agentsite/node/hosted"
	"agentsite/node/tasks"
	"agentsite/transport/adapter/adaptertest"
	"agentsite/transport/mcp"
	"agentsite/transport/mcp/legacy"
	"agentsite/transport/rpc"
	"agentsite/transport/web"
)

// startSuiteSite starts a site with the fixtures of the public suite, behind the node, the catalog, the
// tasks and the servers of the program. It returns the URL of its MCP endpoint.
func startSuiteSite(t *testing.T) string {
	s := adaptertest.New(t, nil)
	worker := hosted.Worker{
		Worker: conformance.Worker{}, Name: conformance.WorkerName,
		Self: principal.Agent("conformance", conformance.WorkerName),
	}
	host := tasks.New(tasks.Options{
		Folder: t.TempDir(), Node: s.Node, Site: s.Node, Now: s.Now,
		Workers: func() []hosted.Worker { return []hosted.Worker{worker} },
	})
	s.Go(func() { host.Run(s.Ending) })
	s.Tools.Tasks = host
	fixtures := conformance.New(s.Hub.Announce, func() task.Host { return host })
	s.Node.ReplaceTools(fixtures)
	s.Go(func() { fixtures.Run(s.Ending) })

	newest := mcp.New(s.Ending, s.Node, s.Tools, mcp.Implementation{Name: "suite", Version: "1"}, "")
	older := legacy.New(s.Node, s.Tools, "suite", "1", "")
	newest.Library, older.Library = conformance.Library{Catalog: s.Tools}, conformance.Library{Catalog: s.Tools}
	t.Cleanup(older.Close)
	s.Serve(t, append(web.PublicRoutes(), web.MCP(rpc.NewDispatcher(newest.Methods()), older.ServeHTTP)))
	return npm.StartProxy(t, s.URL, adaptertest.SiteToken, nil) + "/mcp"
}
