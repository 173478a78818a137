package hosting

import (
	"context"

	"agentsite/agents"
	"agentsite/agents/rule"
	"agentsite/agents/rule/trial"
	"agentsite/device/guard"
	"agentsite/node"
	"agentsite/node/access"
	"agentsite/node/hosted"
	"agentsite/node/state"
	"agentsite/node/trials"
)

// Options are the parts of a site that hosted agents need.
type Options struct {
	Folder state.Folder
	Node   *node.Node
	Hub    *node.Hub
	Access *access.Store
	Past   trial.Source
	Policy func(output string) (guard.Policy, error)
}

// Hosting is the agents that a site hosts.
type Hosting struct {
	*hosted.Manager
	// Try tries rules over the past, for an owner.
	Try func(context.Context, agents.Principal, trial.Request) (trial.Result, error)
}

// New returns the hosting of a site, which runs nothing yet: Apply takes up a configuration, and
// Run runs its agents.
func New(o Options) (*Hosting, error) {
	paused, err := o.Folder.Paused()
	if err != nil {
		return nil, err
	}
	m := hosted.New(hosted.Options{
		Site: o.Node, Kinds: kinds(rule.World{Now: o.Access.Now, Untested: true}),
		Permit: o.Access.SetHosted, Tell: o.Node.SetHosted, Paused: paused, Keep: o.Folder.WritePaused,
	})
	return &Hosting{Manager: m, Try: trials.New(o.Node, o.Hub, m, o.Past, o.Policy).Try}, nil
}
