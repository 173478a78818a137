//go:build !conformance

package hosting

import "agentsite/agents/agent"

// extraKinds are none in a site; the conformance build has the public suite's.
func extraKinds() []agent.Kind { return nil }
