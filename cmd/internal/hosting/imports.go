package hosting

import (
	"context"
	"log/slog"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/discovery"
	"agentsite/discovery/card"
	"agentsite/node/bundle"
	"agentsite/node/hosted"
	"agentsite/node/imports"
	"agentsite/node/state"
)

// openImports reads the agents that came as bundles, for the site that agents ask. A site whose file of them
// is damaged runs without them.
func openImports(o Options, site agents.Site, m *hosted.Manager, listed func()) (*imports.Store, error) {
	file, err := o.Folder.ReadAtMost(state.ImportsFile, bundle.MaxImports)
	if err != nil {
		return nil, o.Folder.Unusable(err)
	}
	shared, err := o.Folder.ReadAtMost(state.SharedFile, bundle.MaxShared)
	if err != nil {
		return nil, o.Folder.Unusable(err)
	}
	store, err := imports.New(imports.Options{
		Hosted: m, File: file, Shared: shared, MayShare: o.mayShare, MayPublish: o.mayPublish, OnShare: listed,
		WriteShared: func(b []byte) error { return state.WriteAtomic(o.Folder.Path(state.SharedFile), b, 0o600) },
		Points: func(ctx context.Context, who agents.Principal) ([]agents.Point, error) {
			list, err := site.Points(ctx, who, agents.SiteRequest{})
			return list.Points, err
		},
		Write: func(b []byte) error { return state.WriteAtomic(o.Folder.Path(state.ImportsFile), b, 0o600) },
	})
	if err == nil && store.Damage() != nil {
		slog.Error("imported agents do not run", "err", store.Damage())
	}
	if err == nil && store.SharedDamage() != nil {
		slog.Error("no bundles are shared", "err", store.SharedDamage())
	}
	return store, err
}

// mayShare returns why the site cannot share: only members of a realm with a secret prove that they
// are in it.
func (o *Options) mayShare() error {
	if o.Internet == nil || o.Internet.Realm == "" || o.Internet.Realm == discovery.PublicRealm().Name {
		return device.Faultf(device.Invalid, "this site is in no realm with a secret, so that nobody could fetch it; "+
			"write one under internet: realm:, or give the file away in another way")
	}
	return nil
}

// mayPublish returns why the site cannot publish: nobody finds a site that is in no realm.
func (o *Options) mayPublish() error {
	if o.Internet == nil || o.Internet.Realm == "" {
		return device.Faultf(device.Invalid, "this site is in no realm, so that nobody would find it: "+
			"write one under internet: realm:, with a secret, or public for everybody")
	}
	return nil
}

// SharedFile returns a file that the site gives to its realm, or the list of those that are published;
// nil for none, and before the site has an owner.
func (h *Hosting) SharedFile(id card.FileID) []byte {
	if !h.claimed() {
		return nil
	}
	if id == card.Catalog {
		return h.Imports.Catalog()
	}
	return h.Imports.SharedFile(bundle.FileID(id))
}

// List returns the agents of the configuration, the imports that run, and the drafts.
func (h *Hosting) List(ctx context.Context) []hosted.Agent {
	return append(h.Manager.List(ctx), h.Imports.List()...)
}
