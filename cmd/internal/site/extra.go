//go:build !conformance

package site

import (
	"context"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/agents/tools"
)

// extraAgents are none in a site; the conformance build has the public suite's.
func extraAgents(func(agents.Change), func() task.Host) ([]tools.Agent, func(context.Context)) {
	return nil, func(context.Context) {}
}
