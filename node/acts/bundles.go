package acts

import (
	"context"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/device"
	"agentsite/node/bundle"
	"agentsite/node/imports"
)

// The operations on agents that travel as bundles.
const (
	ExportAgentAct op.Name[Name, bundle.Content]              = "owner/export-agent" // answers the content of a hosted agent's bundle, unsigned
	ImportAgentAct op.Name[imports.Request, imports.Draft]    = "owner/import-agent"
	AcceptAgentAct op.Name[imports.Acceptance, imports.Draft] = "owner/accept-agent"
	RemoveAgentAct op.Name[Name, None]                        = "owner/remove-agent"

	ShareAgentAct   op.Name[imports.Sharing, imports.SharedBundle] = "owner/share-agent"
	UnshareAgentAct op.Name[Name, None]                            = "owner/unshare-agent"
	SharedAgentsAct op.Name[None, sharedBundles]                   = "owner/shared-agents"
)

// sharedBundles lists the bundles that a site shares with its realm, and those that came to it.
type sharedBundles struct {
	Shared   []imports.SharedBundle `json:"shared"`
	Imported []imports.Draft        `json:"imported"`
}

func (s *Site) aboutBundles() []op.Row {
	return []op.Row{
		op.ForOwners(ExportAgentAct, agents.Reads, "agents export",
			"Answer the content of a hosted agent's bundle, unsigned.",
			func(ctx context.Context, who agents.Principal, agent Name) (bundle.Content, error) {
				return s.Bundles.Export(ctx, who, agent.Name)
			}),
		op.ForOwners(ImportAgentAct, agents.Acts, "agents import", "Keep a bundle as a draft.", s.importAgent),
		op.ForOwners(AcceptAgentAct, agents.Acts, "agents accept", "Have a draft run.",
			func(_ context.Context, who agents.Principal, a imports.Acceptance) (d imports.Draft, err error) {
				err = s.Node.Own(who, "accept-agent", a.Name, func() (err error) { d, err = s.Bundles.Accept(a); return err })
				return d, err
			}),
		op.ForOwners(RemoveAgentAct, agents.Acts, "agents remove", "Remove a draft, or an import that runs.",
			func(_ context.Context, who agents.Principal, agent Name) (None, error) {
				return s.noted(who, "remove-agent", agent.Name, func() error { return s.Bundles.Remove(agent.Name) })
			}),
		op.ForOwners(ShareAgentAct, agents.Acts, "agents share",
			"Give a bundle to members of the realm that know its ID, or that search it.", s.shareAgent),
		op.ForOwners(UnshareAgentAct, agents.Acts, "agents unshare", "End that, by the ID.",
			func(_ context.Context, who agents.Principal, id Name) (None, error) {
				return s.noted(who, "unshare-agent", id.Name, func() error { return s.Bundles.Unshare(id.Name) })
			}),
		op.ForOwners(SharedAgentsAct, agents.Reads, "agents share", "List the bundles that are shared, and those that came.",
			func(context.Context, agents.Principal, None) (sharedBundles, error) {
				return sharedBundles{s.Bundles.Shared(), append([]imports.Draft{}, s.Bundles.Imported()...)}, nil
			}),
	}
}

// tooLarge refuses what is no bundle before the journal is told of it.
func tooLarge(file []byte) error {
	if len(file) > bundle.MaxBytes {
		return device.Faultf(device.Invalid, "it is larger than %d bytes, which no bundle is", bundle.MaxBytes)
	}
	return nil
}

func (s *Site) importAgent(ctx context.Context, who agents.Principal, q imports.Request) (d imports.Draft, err error) {
	if err := tooLarge(q.Bundle); err != nil {
		return d, err
	}
	err = s.Node.Own(who, "import-agent", q.As, func() (err error) { d, err = s.Bundles.Import(ctx, who, q); return err })
	return d, err
}

func (s *Site) shareAgent(
	ctx context.Context, who agents.Principal, q imports.Sharing,
) (b imports.SharedBundle, err error) {
	if err := tooLarge(q.Bundle); err != nil {
		return b, err
	}
	act, what := "share-agent", q.Name
	if q.Publish {
		act = "publish-agent"
	}
	if len(q.Bundle) > 0 {
		what = bundle.IDOf(q.Bundle).String()
	}
	err = s.Node.Own(who, act, what, func() (err error) {
		b, err = s.Bundles.Share(ctx, who, q)
		return err
	})
	return b, err
}
