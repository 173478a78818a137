package discovery

import (
	"fmt"
	"slices"
	"strings"

	ma "github.com/multiformats/go-multiaddr"
)

// hosts are the protocols that a site's multiaddr can begin with.
var hosts = []int{ma.P_IP4, ma.P_IP6, ma.P_DNS, ma.P_DNS4, ma.P_DNS6}

// isMultiaddr tells a multiaddr from a URL.
func isMultiaddr(text string) bool { return strings.HasPrefix(text, "/") }

// checkMultiaddr checks that a multiaddr leads to a site without its peer ID, which the
// record has.
func checkMultiaddr(text string) error {
	a, err := ma.NewMultiaddr(text)
	if err != nil || a.String() != text || strings.ContainsFunc(text, isNotPrintable) || !isSiteAddr(a) {
		return fmt.Errorf("%.160q is not the address of a site, such as /ip4/192.0.2.7/udp/8473/quic-v1, which does not end with the site's own /p2p/…", text)
	}
	return nil
}

// isSiteAddr reports whether an address leads from a host to the site, or through a relay
// that it names.
func isSiteAddr(a ma.Multiaddr) bool {
	if !slices.Contains(hosts, a[0].Code()) {
		return false
	}
	for i, c := range a {
		last := i == len(a)-1
		switch c.Code() {
		case ma.P_P2P:
			if last || a[i+1].Code() != ma.P_CIRCUIT {
				return false
			}
		case ma.P_CIRCUIT:
			if !last || a[i-1].Code() != ma.P_P2P {
				return false
			}
		}
	}
	return true
}

func isNotPrintable(c rune) bool { return c <= ' ' || c > '~' }
