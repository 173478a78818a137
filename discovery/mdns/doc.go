// Package mdns is the medium of the local link: multicast DNS and DNS-SD (RFC 6762 and 6763). It
// uses github.com/grandcat/zeroconf, and github.com/miekg/dns for functions that zeroconf lacks.
//
// A site is the service agentsite-k5qjb3xz._agentsite._tcp.local on the host
// agentsite-k5qjb3xz.local. Both are named after its key. It is also the host NAME.local, if that
// was free. The TXT record has the site's peer ID and its signed record without the public offer.
// Received records are emitted unverified: package discovery verifies and stores them.
package mdns
