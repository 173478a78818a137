//go:build conformance

package site

import (
	"context"

	"agentsite/agents"
	"agentsite/agents/conformance"
)

func extraAgents(announce func(agents.Change)) ([]agents.Agent, func(context.Context)) {
	a := conformance.New(announce)
	return []agents.Agent{a}, a.Run
}
