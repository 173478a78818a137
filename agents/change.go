package agents

import "strings"

// scheme addresses the points of a site as resources.
const scheme = "agentsite:///"

// PointURI returns the URI of a point as a resource.
func PointURI(address string) string { return scheme + address }

// Change says what a watcher is told: that an offer changed, or that a resource
// has new contents.
type Change struct {
	Tools, Prompts, Resources bool
	Approvals                 bool   // which calls wait for an owner's approval
	Permissions               bool   // somebody's came or went; whose offer that changes finds out for itself
	URI                       string // a resource that was updated
}

// Point returns the address of the point whose resource has new contents. Any other URI is returned as
// it is, and ok is false, also for an address that is not a URI.
func (c Change) Point() (address string, ok bool) { return strings.CutPrefix(c.URI, scheme) }
