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
	moved     func(at []string) // is told where the site was found; nil for nobody
}

type reached struct {
	conn net.Conn
	at   string
	err  error
}

// dial connects to the first address at which the site answers, all of them at once but
// for a moment between. Where none has answered by then, the site is looked for, unless
// it is on this machine.
func (r route) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, reachPatience)
	defer cancel()
	addresses, here := r.addresses, !slices.ContainsFunc(r.addresses, elsewhere)
	racing, end := context.WithCancel(ctx)
	results := make(chan reached)
	running := 0
	try := func(at string) {
		running++
		go func() {
			conn, err := (&tls.Dialer{NetDialer: alive, Config: r.secured}).DialContext(racing, network, at)
			results <- reached{conn, at, err}
		}()
	}
	found := make(chan []string, 1)
	looking := false
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
	var news []string
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case res := <-results:
			running--
			if res.err == nil {
				if slices.Contains(news, res.at) && r.moved != nil {
					r.moved(news)
				}
				return res.conn, nil
			}
			all = errors.Join(all, fmt.Errorf("%s: %v", res.at, res.err)) // what it is of is not for callers: nothing was asked yet
		case news = <-found:
			looking = false
			if len(news) == 0 {
				all = errors.Join(all, errors.New("it is not found on this network"))
			}
			for _, at := range news {
				try(at)
			}
		case <-ctx.Done():
			return nil, errors.Join(all, errors.New("it does not answer"))
		}
		switch {
		case len(addresses) > 0:
			try(addresses[0])
			addresses = addresses[1:]
			next.Reset(nextAfter)
		case !here:
			here, looking = true, true
			go func() { found <- find(racing, r.site) }()
		case running == 0 && !looking:
			return nil, all
		}
	}
}

// elsewhere reports whether an address may be another machine's.
func elsewhere(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && !loopback(host)
}
