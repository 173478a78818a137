package remote

import (
	"context"

	"agentsite/agents"
)

// Site is one site, called from here. Its methods are safe for concurrent use.
type Site interface {
	// Call calls a tool there. The result's Value is an agents.Args, nil where the tool
	// gave none, and its NeedInput says that an owner has to approve the call first. An
	// *Unreached was not asked; a refusal of the site's has a method FaultKind, as a
	// device.FaultKind has it; after any other error nobody knows what was done.
	agents.Door
	// Follow tells of what the site offers, first of all, and of what becomes of that and
	// of the resources among uris, from one goroutine. It blocks until ctx ends or the
	// site is gone, and nothing is missed meanwhile.
	Follow(ctx context.Context, uris []string, tell func(News)) error
}

// News is what a site tells: all its tools, of which names and inputs count, or a
// resource that has other contents now.
type News struct {
	Tools []agents.Tool // not nil, if maybe empty, where it is about tools
	URI   string
}

// Unreached is the error of a call that its site never saw.
type Unreached struct{ Err error }

func (u *Unreached) Error() string { return u.Err.Error() }
func (u *Unreached) Unwrap() error { return u.Err }

// Member is a site by the name that it has here.
type Member struct {
	Name string // matches the name pattern, and no other member has it
	Site Site
}
