package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"agentsite/node/identity"
)

const (
	// lanTimeout bounds a dial on the network, with the search for the site.
	lanTimeout = 10 * time.Second
	// fallbackDelay is when the next address is dialled beside one that is silent.
	fallbackDelay = 250 * time.Millisecond
	// maxTries bounds the addresses that are dialled: anybody on the network can announce
	// others for the site.
	maxTries = 64
)

// keepAliveDialer makes connections that end when the site has vanished: soon after a write,
// and otherwise within half a minute.
var keepAliveDialer = &net.Dialer{
	KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
	Control:         setUserTimeout,
}

// lanDialer dials one site on the network.
type lanDialer struct {
	site      identity.ID
	addresses []string // host:port, the best first
	secured   *tls.Config
	moved     func(at []string) // gets the address that answered, if not the first; may be nil
}

type dialResult struct {
	conn net.Conn
	at   string
	err  error
}

// dial connects to the first address at which the site answers. It dials the addresses in
// parallel, each fallbackDelay after the one before. When the first does not answer in that
// time, it browses for the site, too, unless that is on this machine, and dials what it finds.
func (r lanDialer) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, lanTimeout)
	defer cancel()
	addresses, here := r.addresses, len(r.addresses) > 0 && !slices.ContainsFunc(r.addresses, elsewhere)
	racing, end := context.WithCancel(ctx)
	results := make(chan dialResult)
	running, tried := 0, make(map[string]bool)
	try := func(at string) {
		if tried[at] || len(tried) == maxTries {
			return
		}
		tried[at] = true
		running++
		go func() {
			conn, err := (&tls.Dialer{NetDialer: keepAliveDialer, Config: r.secured}).DialContext(racing, network, at)
			results <- dialResult{conn, at, err}
		}()
	}
	defer func() { // the losers
		end()
		go func() {
			for range running {
				if late := <-results; late.conn != nil {
					late.conn.Close()
				}
			}
		}()
	}()
	var all error
	var found chan []string // while the site is looked for
	seen := false
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case res := <-results:
			running--
			if res.err == nil {
				if r.moved != nil && slices.Index(r.addresses, res.at) != 0 {
					r.moved([]string{res.at})
				}
				return res.conn, nil
			}
			all = joinReasons(all, fmt.Errorf("%s: %v", res.at, res.err)) // what it is of is not for callers: nothing was asked yet
		case at, more := <-found:
			if seen = seen || more; !seen {
				all = joinReasons(all, errors.New("it is not found on this network"))
			}
			if !more {
				found = nil
			}
			for _, a := range at {
				try(a)
			}
		case <-ctx.Done():
			return nil, joinReasons(all, errors.New("it does not answer"))
		}
		first := len(tried) == 0
		if len(addresses) > 0 {
			try(addresses[0])
			addresses = addresses[1:]
			next.Reset(fallbackDelay)
		}
		switch {
		case first && running > 0:
		case !here:
			here, found = true, make(chan []string)
			go find(racing, r.site, found)
		case running == 0 && len(addresses) == 0 && found == nil:
			return nil, all
		}
	}
}

// elsewhere reports whether an address may be another machine's.
func elsewhere(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && !loopback(host)
}
