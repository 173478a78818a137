package config

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"agentsite/device"
)

// DefaultListen is HTTP's default address and DefaultHTTPS that of HTTPS; ListenNone turns
// HTTPS off.
const (
	DefaultListen = "127.0.0.1:8473"
	DefaultHTTPS  = ":8474"
	ListenNone    = "none"
)

// HTTP is the http section.
type HTTP struct {
	Listen string   `json:"listen,omitempty" jsonschema:"the loopback address and port that HTTP listens on; 127.0.0.1:8473 when not written"`
	HTTPS  string   `json:"https,omitempty" jsonschema:"the address and port that HTTPS listens on, for the network; :8474 when not written, on all addresses; none for nowhere"`
	Hosts  []string `json:"hosts,omitempty" jsonschema:"further names and IP addresses under which clients may call the site, exactly as they write them, without a port"`
}

// Protocols are those that HTTP can speak beside MCP. A site speaks DefaultProtocols unless its
// configuration lists some.
var (
	Protocols        = []string{"a2a", "openapi", "agora", "wot", "aitp", "anp"}
	DefaultProtocols = []string{"a2a", "openapi", "wot"}
)

// protocols decodes the section of that name, a list of names.
func (r *report) protocols(e entry) (names []string) {
	if e.value.shape != list {
		r.fail(e.value.at, e.key, "takes a list such as [%s], or [] for none but MCP, not %s", strings.Join(Protocols, ", "), e.value.what())
		return nil
	}
	for _, item := range e.value.items {
		switch {
		case item.shape != scalar || !slices.Contains(Protocols, item.text):
			r.fail(item.at, e.key, "there is no protocol %q%s", clip(item.text), device.Suggest(item.text, Protocols, "protocol"))
		case slices.Contains(names, item.text):
			r.fail(item.at, e.key, "%s is listed twice", item.text)
		default:
			names = append(names, item.text)
		}
	}
	return names
}

// Discovery is the section of that name: how the network finds the site.
type Discovery struct {
	MDNS   bool `json:"mdns,omitempty" jsonschema:"whether the site is announced on its own network (mDNS), as long as HTTPS listens there; on when not written"`
	Public bool `json:"public,omitempty" jsonschema:"whether the kinds and the names of its points are announced, too, once somebody owns it; off when not written"`
}

// http checks the written values of the section.
func (r *report) http(e entry) {
	r.checkKey(e, "listen", CheckListen)
	r.checkKey(e, "https", CheckHTTPS)
	hosts, ok := find(e.value.entries, "hosts")
	if !ok {
		return
	}
	for _, item := range hosts.value.items {
		if item.shape != scalar {
			continue
		}
		if err := checkHost(item.text); err != nil {
			r.fail(item.at, "http", "hosts: %w", err)
		}
	}
}

// checkKey checks a key of a section that is written as a scalar.
func (r *report) checkKey(e entry, key string, check func(string) error) {
	if at, text, ok := e.scalar(key); ok {
		if err := check(text); err != nil {
			r.fail(at, e.key, key+" %w", err)
		}
	}
}

// CheckListen accepts a loopback address with a port. Port 0 takes any free one.
func CheckListen(listen string) error {
	host, port, err := hostAndPort(listen, DefaultListen)
	if err != nil {
		return err
	}
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("%s would serve the network over plain HTTP, which anyone can read; use 127.0.0.1:%s", clip(listen), port)
}

// CheckHTTPS accepts any address of this machine with a port, a port alone for all of
// them, and none. Port 0 takes any free one.
func CheckHTTPS(listen string) error {
	if listen == ListenNone {
		return nil
	}
	return checkAddress(listen, DefaultHTTPS, "localhost")
}

// checkAddress accepts an IP address or one other host, with a port, and a port alone.
func checkAddress(listen, example, other string) error {
	host, _, err := hostAndPort(listen, example)
	if err != nil || host == "" || host == other {
		return err
	}
	if _, err := netip.ParseAddr(host); err != nil {
		return fmt.Errorf("takes an address of this machine before the port, or nothing for all of them, not %q", clip(host))
	}
	return nil
}

func hostAndPort(listen, example string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(listen)
	if err != nil {
		return "", "", fmt.Errorf("takes an address and a port such as %s, not %q", example, clip(listen))
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", "", fmt.Errorf("takes a port from 0 to 65535, not %q", clip(port))
	}
	return host, port, nil
}

var hostName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)
})

// checkHost accepts one exact host name or IP address, as in a Host header.
func checkHost(host string) error {
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.String() != host {
			return fmt.Errorf("write %s as %s", clip(host), ip)
		}
		return nil
	}
	if len(host) <= 253 && hostName().MatchString(host) {
		return nil
	}
	if lower := strings.ToLower(host); lower != host && hostName().MatchString(lower) {
		return fmt.Errorf("write %s as %s", clip(host), clip(lower))
	}
	return fmt.Errorf("%q is not a host name or an IP address; write it as greenhouse.local or 192.168.1.20, without http://, port or wildcard", clip(host))
}
