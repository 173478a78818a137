package web

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"agentsite/node/identity"
)

// ListenHTTPS listens at an address for HTTPS with the certificates of ServerTLS. Clients that ask
// for the domain's name get its certificate; domain may be nil.
func ListenHTTPS(address string, key identity.Key, names []string, now func() time.Time, domain *Domain) (net.Listener, error) {
	secured, err := ServerTLS(key, names, now)
	if err != nil {
		return nil, err
	}
	own := secured.GetCertificate
	secured.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if c := domain.get(hello.ServerName); c != nil {
			return c, nil
		}
		return own(hello)
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("HTTPS cannot listen: %w; choose another port with --listen-https, or under http: https: in the configuration (none is for nobody)", err)
	}
	return tls.NewListener(ln, secured), nil
}

// PageHost is a name of this machine for its own browsers, which have it apart from other programs on
// localhost, as all names below it. Safari and some systems do not resolve it.
const PageHost = "agentsite.localhost"

// HostNames returns the names that this machine is called by: its own and those that the
// system gives it.
func HostNames(own ...string) []string {
	all := append([]string{"localhost"}, own...)
	if name, err := os.Hostname(); err == nil && name != "" {
		all = append(all, strings.ToLower(name), strings.ToLower(name)+".local")
	}
	return all
}

// AllowedHosts returns the Host headers that are served at an address: the names with its
// port. The address that a connection came to is served besides.
func AllowedHosts(addr net.Addr, names []string) []string {
	host, port, _ := net.SplitHostPort(addr.String())
	var all []string
	for _, n := range append([]string{"127.0.0.1", "::1", host, PageHost}, names...) {
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

// IsLoopback reports whether an address is reached from this machine only.
func IsLoopback(at net.Addr) bool {
	a, err := netip.ParseAddrPort(at.String())
	return err != nil || a.Addr().IsLoopback()
}

// maxEndpoints is how many fit on a screen, as a QR code.
const maxEndpoints = 2

// Endpoints returns where others can reach a listener: at its own address. If that is unspecified,
// it returns addresses of this machine, and then its name, "" for none, maxEndpoints in all.
func Endpoints(at net.Addr, name string) (all []string) {
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
		slog.Warn("network interfaces cannot be listed", "err", err)
	}
	for _, want4 := range []bool{true, false} {
		for _, a := range addresses {
			p, err := netip.ParsePrefix(a.String())
			if err != nil || p.Addr().IsLoopback() || p.Addr().IsLinkLocalUnicast() || p.Addr().Is4() != want4 || len(all) == maxEndpoints-1 {
				continue
			}
			all = append(all, net.JoinHostPort(p.Addr().String(), port))
		}
	}
	if name != "" {
		all = append(all, net.JoinHostPort(name, port))
	}
	return all
}
