package oauth

import (
	"strings"

	"agentsite/agents/principal"
	"agentsite/device"
	"agentsite/node/access"
	"agentsite/transport/web"
)

// Callers are those of others that signed in, and nobody else: for a place where neither keys nor other tokens count.
type Callers struct{ web.Callers }

var errOthers error = device.Faultf(device.Denied, "only programs that signed in may use this address")

// Key refuses every key.
func (Callers) Key(string) (p principal.Principal, err error) { return p, errOthers }

// Bearer returns the principal of a token that a program got by signing in.
func (c Callers) Bearer(token string, _ bool) (p principal.Principal, err error) {
	if !strings.HasPrefix(token, access.SignInPrefix) {
		return p, errOthers
	}
	return c.Callers.Bearer(token, false)
}
