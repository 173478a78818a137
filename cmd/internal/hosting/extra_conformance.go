//go:build conformance

package hosting

import (
	"agentsite/agents/agent"
	"agentsite/agents/conformance"
)

func extraKinds() []agent.Kind { return []agent.Kind{conformance.Kind} }
