//go:build conformance

package site

import (
	"context"

	"agentsite/agents"
	"agentsite/agents/conformance"
	"agentsite/agents/task"
	"agentsite/agents/tools"
)

func extraAgents(announce func(agents.Change), tasks func() task.Host) ([]tools.Agent, func(context.Context)) {
	a := conformance.New(announce, tasks)
	return []tools.Agent{a}, a.Run
}
