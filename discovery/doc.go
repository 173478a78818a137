// Package discovery finds sites: a Record is a site's signed announcement (identity,
// sequence, addresses, a digest of the offer, lifetime), a Directory holds the valid ones,
// and a Medium announces and finds them; each medium has a package below this one.
//
// A record tells where a site is, and nothing about trust: a client has to verify that the
// site there has the record's key. This package imports nothing that knows a tool, a device, a
// principal or a permission, and treats network data as untrusted until its signature,
// sequence and lifetime are checked.
package discovery
