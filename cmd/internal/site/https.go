package site

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"agentsite/discovery"
	"agentsite/node/config"
	"agentsite/node/identity"
	"agentsite/transport/web"
)

// listenHTTPS opens the site to the network. Where the configuration says that it is not to
// be, the listener and the error are nil. now returns the site's best-known time.
func listenHTTPS(key identity.Key, listen config.HTTP, now func() (t time.Time, sure bool)) (net.Listener, error) {
	if listen.HTTPS == config.Nowhere {
		return nil, nil
	}
	secured, err := web.ServerTLS(key, names(key.ID(), listen), func() time.Time { t, _ := now(); return t })
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", listen.HTTPS)
	if err != nil {
		return nil, fmt.Errorf("HTTPS cannot listen: %w; choose another port with --listen-https, or under http: https: in the configuration (none is for nobody)", err)
	}
	return tls.NewListener(ln, secured), nil
}

// addressOf is where a listener listens, nil for none.
func addressOf(ln net.Listener) net.Addr {
	if ln == nil {
		return nil
	}
	return ln.Addr()
}

// names are those that the site's machine has.
func names(id identity.ID, listen config.HTTP) []string {
	all := append([]string{"localhost", discovery.HostName(id)}, listen.Hosts...)
	if name, err := os.Hostname(); err == nil && name != "" {
		all = append(all, strings.ToLower(name), strings.ToLower(name)+".local")
	}
	return all
}

// hosts are the Host headers that are served at an address of ours: the names with its
// port. The address itself is served besides.
func hosts(addr net.Addr, names []string) []string {
	host, port, _ := net.SplitHostPort(addr.String())
	var all []string
	for _, n := range append([]string{"127.0.0.1", "::1", host}, names...) {
		at := net.JoinHostPort(n, port)
		all = append(all, at)
		for _, usual := range []string{":80", ":443"} {
			if bare, ok := strings.CutSuffix(at, usual); ok {
				all = append(all, bare)
			}
		}
	}
	return all
}

// shownAddresses is as many as fit on a screen, as a picture.
const shownAddresses = 2

// reachable is where others may find what listens at an address, nil for nowhere: there, or
// wherever this machine is.
func reachable(at net.Addr, id identity.ID) (all []string) {
	if at == nil {
		return nil
	}
	listens, err := netip.ParseAddrPort(at.String())
	if err != nil {
		return nil
	}
	port := fmt.Sprint(listens.Port())
	if !listens.Addr().IsUnspecified() {
		return []string{at.String()}
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		slog.Warn("this machine's addresses are not known", "err", err)
	}
	for _, want4 := range []bool{true, false} {
		for _, a := range addresses {
			p, err := netip.ParsePrefix(a.String())
			if err != nil || p.Addr().IsLoopback() || p.Addr().IsLinkLocalUnicast() || p.Addr().Is4() != want4 || len(all) == shownAddresses-1 {
				continue
			}
			all = append(all, net.JoinHostPort(p.Addr().String(), port))
		}
	}
	return append(all, net.JoinHostPort(discovery.HostName(id), port))
}
