package hosting

import (
	"context"
	"log/slog"

	"agentsite/agents"
	"agentsite/node/bundle"
	"agentsite/node/hosted"
	"agentsite/node/imports"
	"agentsite/node/state"
)

// openImports reads the agents that came as bundles. A site whose file of them is damaged runs
// without them.
func openImports(o Options, m *hosted.Manager) (*imports.Store, error) {
	file, err := state.ReadUntrusted(o.Folder.Path(state.ImportsFile), bundle.MaxImports)
	if err != nil {
		return nil, o.Folder.Unusable(err)
	}
	store, err := imports.New(imports.Options{
		Hosted: m, File: file,
		Points: func(ctx context.Context, who agents.Principal) ([]agents.Point, error) {
			list, err := o.Node.Points(ctx, who, agents.SiteRequest{})
			return list.Points, err
		},
		Write: func(b []byte) error { return state.WriteAtomic(o.Folder.Path(state.ImportsFile), b, 0o600) },
	})
	if err == nil && store.Damage() != nil {
		slog.Error("imported agents do not run", "err", store.Damage())
	}
	return store, err
}

// List returns the agents of the configuration, the imports that run, and the drafts.
func (h *Hosting) List(ctx context.Context) []hosted.Agent {
	return append(h.Manager.List(ctx), h.Imports.List()...)
}
