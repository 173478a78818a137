// Package lan connects to devices of the home network: by address, by a name of the DNS, or by a name that ends in
// .local and is asked by mDNS (RFC 6762). It also lists what offers a service (RFC 6763), ends connections whose
// peer floods, and spaces attempts to connect.
package lan

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"time"

	"agentsite/device"
)

const (
	dialTimeout = 5 * time.Second
	headStart   = 250 * time.Millisecond // of one address before the next: RFC 8305, section 5
	keepAlive   = 15 * time.Second       // of the kernel, for a peer that has vanished
)

// Dial connects by TCP to "host:port" within five seconds, or until ctx ends. All addresses of a name are tried, in
// a random order, so that a second host that claims the name of a device cannot hide it from every attempt. What is
// unsent when the connection is closed is never sent: a command that was given up must not arrive when a cut network is
// back. The error is an Offline fault.
func Dial(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, device.Faultf(device.Invalid, "%q is not a host and a port, such as kitchen.local:6053",
			device.Clip(address, 80))
	}
	if !isLocal(host) {
		c, err := dialTCP(ctx, address)
		if err != nil {
			return nil, unreachable(ctx, address, err)
		}
		return c, nil
	}
	addrs, err := Lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	c, err := race(ctx, addrs, func(ctx context.Context, a netip.Addr) (net.Conn, error) {
		return dialTCP(ctx, net.JoinHostPort(a.String(), port))
	})
	if err != nil {
		names.forget(host)
		return nil, unreachable(ctx, address, err)
	}
	return c, nil
}

func dialTCP(ctx context.Context, address string) (net.Conn, error) {
	d := net.Dialer{KeepAlive: keepAlive}
	c, err := d.DialContext(ctx, "tcp", address)
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0) // it fails on a closed connection only
	}
	return c, err
}

func unreachable(ctx context.Context, address string, err error) error {
	if ctx.Err() != nil { // the dialer's own error does not say whether it was cancelled
		err = ctx.Err()
	}
	return device.Faultf(device.Offline, "%s does not answer; look whether it is switched on and in this network (%w)",
		address, err)
}

// race dials the addresses, each a moment after the one before it or at once when that failed, and returns the
// first connection. The others are closed.
func race(ctx context.Context, addrs []netip.Addr, dial func(context.Context, netip.Addr) (net.Conn, error)) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result)
	next := time.NewTimer(0)
	defer next.Stop()
	pending, err := 0, error(nil)
	var won net.Conn
	for {
		due := next.C
		if len(addrs) == 0 {
			due = nil
			if pending == 0 {
				break
			}
		}
		select {
		case <-due:
			a := addrs[0]
			addrs, pending = addrs[1:], pending+1
			go func() {
				c, err := dial(ctx, a)
				results <- result{c, err}
			}()
			next.Reset(headStart)
		case r := <-results:
			pending--
			switch {
			case r.err != nil:
				err = r.err
				next.Reset(0)
			case won == nil:
				won, addrs = r.conn, nil
				cancel()
			default:
				r.conn.Close()
			}
		}
	}
	if won != nil {
		return won, nil
	}
	return nil, err
}

// isLocal reports whether a name is asked by mDNS: RFC 6762, section 3.
func isLocal(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return strings.HasSuffix(host, ".local") && host != ".local"
}

// IsLoopback reports whether a host is this machine, whose traffic nobody in the network sees.
func IsLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// Lookup returns the addresses of a name that ends in .local, in a random order. They are cached for their TTL, at
// most a minute. The error is an Offline fault.
func Lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	addrs := names.get(host)
	if addrs == nil {
		var err error
		var ttl time.Duration
		if addrs, ttl, err = lookup(ctx, host); err != nil {
			return nil, err
		}
		names.put(host, addrs, ttl)
	}
	rand.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
	return addrs, nil
}

// lookup asks for the addresses of a name until there is an answer, and for a moment after it.
func lookup(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
	q, err := openQuery()
	if err != nil {
		return nil, 0, err
	}
	defer q.close()
	name, err := fqdn(host)
	if err != nil {
		return nil, 0, err
	}
	a := newAnswers()
	questions := addressQuestions(name)
	err = q.run(ctx, func() []question { return questions }, func(p packet) time.Duration {
		a.add(p, questions)
		if len(a.addrs[name]) > 0 {
			return settleTime
		}
		return 0
	})
	if addrs := a.addrs[name]; len(addrs) > 0 {
		return addrs, a.ttl, nil
	}
	if err == nil {
		err = context.DeadlineExceeded
	}
	return nil, 0, device.Faultf(device.Offline, "%s does not answer by mDNS; look whether it is switched on and in "+
		"this network, or write its address (%w)",
		host, err)
}

// fqdn returns a host's name as it is in packets.
func fqdn(host string) (string, error) {
	name := strings.ToLower(strings.TrimSuffix(host, ".")) + "."
	if !isHost(name) {
		return "", device.Faultf(device.Invalid, "%q is not the name of a host", device.Clip(host, 80))
	}
	return name, nil
}

// isHost reports whether a name with a dot at its end has letters, digits, '-' and '_' only.
func isHost(name string) bool {
	if len(name) > 254 || !strings.HasSuffix(name, ".") {
		return false
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, hostLetters) != "" {
			return false
		}
	}
	return true
}

const hostLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
