package client

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"agentsite/node/acts"
)

// SignInName returns the name for the token of a program that asks to sign in: that of the same program's token, or
// one that no token has, made of what the program calls itself.
func SignInName(on Access, in acts.SignIn) string {
	if in.Replaces != "" {
		return in.Replaces
	}
	name := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, in.Client), "-")
	name = strings.TrimRight(cmp.Or(name[:min(len(name), 20)], "program"), "-")
	for n := 2; ; n++ {
		taken := func(g acts.Granted) bool { return g.Token == name }
		if !slices.ContainsFunc(on.Grants, taken) {
			return name
		}
		base, _, _ := strings.Cut(name, "_")
		name = fmt.Sprintf("%s_%d", base, n)
	}
}
