package site

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
	// reachPatience is how long it may take to reach a site, wherever it is.
	reachPatience = 10 * time.Second
	// nextAfter is when the next address is tried while the one before is silent.
	nextAfter = 250 * time.Millisecond
	// maxTries is how many addresses of a site are tried: anybody on the network can say
	// that it is somewhere else.
	maxTries = 64
)

// alive ends a connection to a site that is gone without a word: soon where something was
// said, and otherwise within half a minute.
var alive = &net.Dialer{
	KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
	Control:         giveUpOnSilence,
}

// route is the ways to one site.
type route struct {
	site      identity.ID
	addresses []string // host:port, the best first
	secured   *tls.Config
	moved     func(at []string) // is told where it answered, if not at the first; nil for nobody
}

type reached struct {
	conn net.Conn
	at   string
	err  error
}

// dial connects to the first address at which the site answers, all of them at once but
// for a moment between. Where the first does not answer in that, the site is looked for
// too, unless it is on this machine, and tried wherever it is said to be.
func (r route) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, reachPatience)
	defer cancel()
	addresses, here := r.addresses, len(r.addresses) > 0 && !slices.ContainsFunc(r.addresses, elsewhere)
	racing, end := context.WithCancel(ctx)
	results := make(chan reached)
	running, tried := 0, make(map[string]bool)
	try := func(at string) {
		if tried[at] || len(tried) == maxTries {
			return
		}
		tried[at] = true
		running++
		go func() {
			conn, err := (&tls.Dialer{NetDialer: alive, Config: r.secured}).DialContext(racing, network, at)
			results <- reached{conn, at, err}
		}()
	}
	defer func() { // those that come too late
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
			all = also(all, fmt.Errorf("%s: %v", res.at, res.err)) // what it is of is not for callers: nothing was asked yet
		case at, more := <-found:
			if seen = seen || more; !seen {
				all = also(all, errors.New("it is not found on this network"))
			}
			if !more {
				found = nil
			}
			for _, a := range at {
				try(a)
			}
		case <-ctx.Done():
			return nil, also(all, errors.New("it does not answer"))
		}
		first := len(tried) == 0
		if len(addresses) > 0 {
			try(addresses[0])
			addresses = addresses[1:]
			next.Reset(nextAfter)
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
