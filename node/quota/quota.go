// Package quota counts the use of limited resources by remote callers: per key, per network
// that one caller may control, and in total.
//
// It knows addresses and numbers. Its callers define the resources and their limits.
package quota

import (
	"net/netip"
	"sync"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// Prefix returns the network that one caller may own: an IPv4 address, or the 56 bits of IPv6
// that a provider gives to a home.
func Prefix(ip netip.Addr) netip.Prefix {
	bits, ip := 32, ip.Unmap().WithZone("")
	if ip.Is6() {
		bits = 56
	}
	p, _ := ip.Prefix(bits)
	return p
}

// PrefixOf is Prefix for a multiaddr. All addresses through one relay share the relay's, and
// all without an IP address the zero one.
func PrefixOf(a ma.Multiaddr) netip.Prefix {
	b, err := manet.ToIP(a)
	if err != nil {
		return netip.Prefix{}
	}
	ip, _ := netip.AddrFromSlice(b)
	return Prefix(ip)
}

// Limit is the limit of a group. Callers can have different limits in one group: the part
// above the lower limit is reserved for the others.
type Limit struct {
	Group any // comparable
	Most  int
}

// Quota counts the slots that groups hold. The zero value is empty. It is safe for concurrent use.
type Quota struct {
	mu   sync.Mutex
	held map[any]int
}

// Take takes one in each group, or none if one of them is at its limit. Release with the same
// limits gives it back.
func (q *Quota) Take(limits ...Limit) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range limits {
		if q.held[l.Group] >= l.Most {
			return false
		}
	}
	if q.held == nil {
		q.held = make(map[any]int)
	}
	for _, l := range limits {
		q.held[l.Group]++
	}
	return true
}

// Release gives back one Take.
func (q *Quota) Release(limits ...Limit) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range limits {
		if q.held[l.Group]--; q.held[l.Group] == 0 {
			delete(q.held, l.Group)
		}
	}
}

// Held returns how many slots a group holds.
func (q *Quota) Held(group any) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held[group]
}
