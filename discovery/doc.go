// Package discovery says where sites are: a Record (signed: identity, sequence,
// addresses, a digest of the offer, lifetime), a Directory of those that hold, and a
// Medium that announces and finds them, one package each below this one.
//
// A record says where a site is, never that it may be trusted: whoever connects has to
// see that the site there has the record's key. Nothing may enter here that knows a
// tool, a device, a principal or a permission, and what comes off a network is data
// until its signature, sequence and lifetime are checked.
package discovery
