// Package agents defines the vocabulary above devices: the operations on a site, and the agents
// hosted on it. It knows no chip, no protocol and no network.
package agents

import "agentsite/agents/principal"

// Principal is the caller of an operation.
type Principal = principal.Principal
