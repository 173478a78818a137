//go:build conformance

package site

import (
	"context"

	"agentsite/agents"
	"agentsite/agents/conformance"
	"agentsite/agents/tools"
)

func extraAgents(announce func(agents.Change)) ([]tools.Agent, func(context.Context)) {
	a := conformance.New(announce)
	return []tools.Agent{a}, a.Run
}
