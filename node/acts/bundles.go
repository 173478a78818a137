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

	ShareAgentAct   op.Name[imports.Request, imports.SharedBundle] = "owner/share-agent"
	UnshareAgentAct op.Name[Name, None]                            = "owner/unshare-agent"
	SharedAgentsAct op.Name[None, sharedBundles]                   = "owner/shared-agents"

	PublishAgentAct   op.Name[imports.Publication, imports.SharedBundle] = "owner/publish-agent"
	ImportedAgentsAct op.Name[None, importedAgents]                      = "owner/imported-agents"
)

// importedAgents lists the agents that came to a site as bundles.
type importedAgents struct {
	Imported []imports.Draft `json:"imported"`
}

// sharedBundles lists the bundles that a site shares with its realm.
type sharedBundles struct {
	Shared []imports.SharedBundle `json:"shared"`
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
			"Give a bundle to members of the realm that know its ID.", s.shareAgent),
		op.ForOwners(UnshareAgentAct, agents.Acts, "agents unshare", "End that, by the ID.",
			func(_ context.Context, who agents.Principal, id Name) (None, error) {
				return s.noted(who, "unshare-agent", id.Name, func() error { return s.Bundles.Unshare(id.Name) })
			}),
		op.ForOwners(SharedAgentsAct, agents.Reads, "agents share", "List the shared bundles.",
			func(context.Context, agents.Principal, None) (sharedBundles, error) {
				return sharedBundles{s.Bundles.Shared()}, nil
			}),
		op.ForOwners(PublishAgentAct, agents.Acts, "agents publish",
			"Have others of the realm find a bundle by its words.", s.publishAgent),
		op.ForOwners(ImportedAgentsAct, agents.Reads, "agents updates", "List the agents that came as bundles.",
			func(context.Context, agents.Principal, None) (importedAgents, error) {
				return importedAgents{append([]imports.Draft{}, s.Bundles.Imported()...)}, nil
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
	_ context.Context, who agents.Principal, f imports.Request,
) (b imports.SharedBundle, err error) {
	if err := tooLarge(f.Bundle); err != nil {
		return b, err
	}
	err = s.Node.Own(who, "share-agent", bundle.IDOf(f.Bundle).String(), func() (err error) {
		b, err = s.Bundles.Share(f.Bundle)
		return err
	})
	return b, err
}

func (s *Site) publishAgent(
	ctx context.Context, who agents.Principal, p imports.Publication,
) (b imports.SharedBundle, err error) {
	if err := tooLarge(p.Bundle); err != nil {
		return b, err
	}
	what := p.Name
	if len(p.Bundle) > 0 {
		what = bundle.IDOf(p.Bundle).String()
	}
	err = s.Node.Own(who, "publish-agent", what, func() (err error) {
		b, err = s.Bundles.Publish(ctx, who, p)
		return err
	})
	return b, err
}
