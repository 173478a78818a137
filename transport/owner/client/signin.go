package client

import (
	"strings"

	"agentsite/device"
	"agentsite/node/acts"
)

// SignInName returns the name for the token of a program that asks to sign in: that of the same program's token, or
// one that nothing has at the site, made of what the program calls itself.
func SignInName(on Access, in acts.SignIn) string {
	if in.Replaces != "" {
		return in.Replaces
	}
	return on.freeName(strings.Trim(device.SuggestName(in.Client), "-"), "program")
}
