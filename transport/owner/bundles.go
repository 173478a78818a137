package owner

import (
	"context"

	"agentsite/agents"
	"agentsite/node/bundle"
	"agentsite/node/imports"
	"agentsite/transport/rpc"
)

// Bundles are the methods about agents that travel as bundles.
var Bundles = struct {
	Export Method[Name, bundle.Content]              // returns the content of a hosted agent's bundle, unsigned
	Import Method[imports.Request, imports.Draft]    // keeps a bundle as a draft
	Accept Method[imports.Acceptance, imports.Draft] // has a draft run
	Remove Method[Name, None]                        // removes a draft or an import that runs

	Share   Method[imports.Request, imports.SharedBundle] // gives the bundle of a request to members of the realm that know its ID
	Unshare Method[Name, None]                            // ends that, by the ID
	Shared  Method[None, sharedBundles]                   // lists the shared bundles
}{"owner/export-agent", "owner/import-agent", "owner/accept-agent", "owner/remove-agent", "owner/share-agent", "owner/unshare-agent", "owner/shared-agents"}

// sharedBundles lists the bundles that a site shares with its realm.
type sharedBundles struct {
	Shared []imports.SharedBundle `json:"shared"`
}

// bundles are the agents that came to a site as bundles, as an imports.Store has them.
type bundles interface {
	Export(ctx context.Context, who agents.Principal, name string) (bundle.Content, error)
	Import(ctx context.Context, who agents.Principal, q imports.Request) (imports.Draft, error)
	Accept(a imports.Acceptance) (imports.Draft, error)
	Remove(name string) error
	Share(file []byte) (imports.SharedBundle, error)
	Unshare(id string) error
	Shared() []imports.SharedBundle
}

func (s *Site) addBundles(all methods) {
	forOwners(s, all, Bundles.Export, "agents export", func(ctx context.Context, who agents.Principal, agent Name) (bundle.Content, error) {
		c, err := s.Bundles.Export(ctx, who, agent.Name)
		return c, failed(err)
	})
	forOwners(s, all, Bundles.Import, "agents import", func(ctx context.Context, who agents.Principal, q imports.Request) (d imports.Draft, _ error) {
		if len(q.Bundle) > bundle.MaxBytes { // the journal is not told of it
			return d, rpc.Errorf(rpc.CodeInvalidParams, "it is larger than %d bytes, which no bundle is", bundle.MaxBytes)
		}
		err := s.Node.Own(who, "import-agent", q.As, func() (err error) { d, err = s.Bundles.Import(ctx, who, q); return err })
		return d, failed(err)
	})
	forOwners(s, all, Bundles.Accept, "agents accept", func(_ context.Context, who agents.Principal, a imports.Acceptance) (d imports.Draft, _ error) {
		err := s.Node.Own(who, "accept-agent", a.Name, func() (err error) { d, err = s.Bundles.Accept(a); return err })
		return d, failed(err)
	})
	forOwners(s, all, Bundles.Remove, "agents remove", func(_ context.Context, who agents.Principal, agent Name) (none None, _ error) {
		return none, failed(s.Node.Own(who, "remove-agent", agent.Name, func() error { return s.Bundles.Remove(agent.Name) }))
	})
	forOwners(s, all, Bundles.Share, "agents share", func(_ context.Context, who agents.Principal, f imports.Request) (b imports.SharedBundle, _ error) {
		if len(f.Bundle) > bundle.MaxBytes {
			return b, rpc.Errorf(rpc.CodeInvalidParams, "it is larger than %d bytes, which no bundle is", bundle.MaxBytes)
		}
		err := s.Node.Own(who, "share-agent", bundle.IDOf(f.Bundle).String(), func() (err error) { b, err = s.Bundles.Share(f.Bundle); return err })
		return b, failed(err)
	})
	forOwners(s, all, Bundles.Unshare, "agents unshare", func(_ context.Context, who agents.Principal, id Name) (none None, _ error) {
		return none, failed(s.Node.Own(who, "unshare-agent", id.Name, func() error { return s.Bundles.Unshare(id.Name) }))
	})
	forOwners(s, all, Bundles.Shared, "agents share", func(context.Context, agents.Principal, None) (sharedBundles, error) {
		return sharedBundles{s.Bundles.Shared()}, nil
	})
}
