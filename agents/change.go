package agents

import "strings"

// scheme addresses the points of a site as resources.
const scheme = "agentsite:///"

// PointURI returns the URI of a point as a resource.
func PointURI(address string) string { return scheme + address }

// PointOf returns the address of a point by its URI. Any other text stays as it is, and ok is false: a
// bare address is no URI.
func PointOf(uri string) (address string, ok bool) { return strings.CutPrefix(uri, scheme) }

// Change says what a watcher is told: that an offer changed, or that a resource
// has new contents.
type Change struct {
	Tools, Prompts, Resources bool
	Approvals                 bool   // which calls wait for an owner's approval
	Permissions               bool   // somebody's came or went; whose offer that changes finds out for itself
	URI                       string // a resource that was updated
}
