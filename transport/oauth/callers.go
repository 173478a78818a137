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

// Others are those of others that did not sign in: for a place that is not the one at which programs do.
type Others struct{ web.Callers }

var errSignedIn error = device.Faultf(device.Denied, "this token is for another address of this site alone")

// Bearer returns the principal of a token that no program got by signing in.
func (o Others) Bearer(token string, here bool) (p principal.Principal, err error) {
	if strings.HasPrefix(token, access.SignInPrefix) {
		return p, errSignedIn
	}
	return o.Callers.Bearer(token, here)
}
