// Package discovery says where sites are: a Record (signed: identity, sequence,
// addresses, a digest of the offer, expiry), a Directory of those that hold, and
// a Medium that announces and finds them, one package each below this one.
//
// A record says where a site is, never that it may be trusted. Nothing may enter
// here that knows a tool, a device, a principal or a permission, and what comes
// off a network is data until its signature, sequence and expiry are checked.
//
// Nothing is implemented yet.
package discovery
