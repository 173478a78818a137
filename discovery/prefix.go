package discovery

import "net/netip"

// PrefixOf is whose an address counts as: what one may have is bounded by that, since who
// has one address of it has all. It is an IPv4 address itself and an IPv6 /56, without a
// zone; the zero Prefix for no address.
func PrefixOf(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := 56
	if a.Is4() {
		bits = 32
	}
	p, _ := a.Prefix(bits)
	return p
}
