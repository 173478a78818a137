package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"agentsite/device"
	"agentsite/node/identity"
)

const (
	// lanTimeout bounds a dial on the network, with the search for the site.
	lanTimeout = 10 * time.Second
	// fallbackDelay bounds the silence of an address before the next one is dialled, too.
	fallbackDelay = 250 * time.Millisecond
	// maxDials bounds the known addresses that are dialled, and the announced ones at a time: any
	// peer on the network can announce addresses for the site.
	maxDials = 64
	// maxReasons bounds the failures that an error names, of which any peer can cause thousands.
	maxReasons = 64
)

// keepAliveDialer makes connections that end when the site has vanished: soon after a write,
// and otherwise within 25 seconds.
var keepAliveDialer = &net.Dialer{
	KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3},
	Control:         setUserTimeout,
}

// lanDialer dials one site on the network.
type lanDialer struct {
	site      identity.ID
	addresses []string // host:port, the best first
	secured   *tls.Config
	moved     func(at []string) // gets the address that answered, if not the first; may be nil
}

// lanConn is a connection to a site and the address that answered.
type lanConn struct {
	net.Conn
	address string
}

// dial connects to the first address at which the site answers. It dials the addresses
// concurrently, each fallbackDelay after the one before. With the second it also browses for
// the site, unless that is on this machine, and dials each address that is announced.
func (d lanDialer) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, lanTimeout)
	defer cancel()
	known := slices.Clone(d.addresses[:min(len(d.addresses), maxDials)])
	var groups [][]attempt[lanConn]
	for _, at := range known {
		groups = append(groups, []attempt[lanConn]{d.dialAddress(network, at)})
	}
	if len(known) == 0 || slices.ContainsFunc(known, mayBeRemote) {
		second := min(len(groups), 1)
		if second == len(groups) {
			groups = append(groups, nil)
		}
		groups[second] = append(groups[second], d.browse(network, known))
	}
	conn, err := race(ctx, fallbackDelay, func(c lanConn) { c.Close() }, groups...)
	if err != nil {
		return nil, err
	}
	if d.moved != nil && slices.Index(d.addresses, conn.address) != 0 {
		d.moved([]string{conn.address})
	}
	return conn.Conn, nil
}

// dialAddress dials one address and verifies the site's key there.
func (d lanDialer) dialAddress(network, at string) attempt[lanConn] {
	return func(ctx context.Context, _ func(attempt[lanConn])) (lanConn, error) {
		return d.connect(ctx, network, at, func() {})
	}
}

// connect connects to an address and verifies the site's key there. It calls accepted once there is
// a machine that accepts the connection.
func (d lanDialer) connect(ctx context.Context, network, at string, accepted func()) (lanConn, error) {
	conn, err := keepAliveDialer.DialContext(ctx, network, at)
	if err == nil {
		accepted()
		secured := tls.Client(conn, d.secured)
		if err = secured.HandshakeContext(ctx); err == nil {
			return lanConn{secured, at}, nil
		}
		conn.Close()
	}
	if ctx.Err() != nil {
		return lanConn{}, fmt.Errorf("%s does not answer", at)
	}
	return lanConn{}, fmt.Errorf("%s: %v", at, err) // not wrapped: nothing was asked yet
}

// browse adds an attempt for each announced address that is not in known. It fails when the
// search ends.
func (d lanDialer) browse(network string, known []string) attempt[lanConn] {
	return func(ctx context.Context, add func(attempt[lanConn])) (lanConn, error) {
		heard := false
		var dials announcedDials
		browse(ctx, d.site, func(at []string) {
			heard = true
			for _, a := range at {
				if slices.Contains(known, a) {
					continue
				}
				admitted := dials.admit(ctx, a)
				if admitted == nil {
					continue
				}
				var wait time.Duration
				if isLinkLocal(a) && len(at) > 1 { // the others stay valid elsewhere and are worth storing
					wait = fallbackDelay
				}
				add(admitted.attempt(func(ctx context.Context, accepted func()) (lanConn, error) {
					device.Sleep(ctx, wait)
					return d.connect(ctx, network, a, accepted)
				}))
			}
		})
		if !heard {
			return lanConn{}, errors.New("it is not found on this network")
		}
		return lanConn{}, errors.New("no announced address leads to it")
	}
}

// isLinkLocal reports whether host:port is an address of one link, such as fe80::1%eth0.
func isLinkLocal(address string) bool {
	a, err := netip.ParseAddrPort(address)
	return err == nil && a.Addr().IsLinkLocalUnicast()
}

// mayBeRemote reports whether an address may be another machine's.
func mayBeRemote(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && !loopback(host)
}
