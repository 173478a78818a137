// Package discovery finds sites. A Record is a site's signed announcement: identity, sequence,
// addresses, a digest of the offer, lifetime. A Directory holds the valid records, and a Medium
// announces and finds them; each medium has a package below this one.
//
// A record tells where a site is, and nothing about trust: a client has to verify that the site
// there has the record's key. This package treats network data as untrusted until its signature,
// sequence and lifetime are checked. It imports nothing that knows a tool, a device, a principal or
// a permission.
package discovery
