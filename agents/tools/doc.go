// Package tools renders the operations on a site as tools for models, and its points as
// resources: names, descriptions, schemas, decoding and results, written once for every
// agents.Site. There is a tool for each operation and an enum of points in it, so that the
// number of tools depends on the kinds wired up and not on how many devices there are.
//
// A schema names what its principal may name, and nothing else. What a call may do is
// decided by the site.
package tools
