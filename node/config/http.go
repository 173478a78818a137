package config

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// DefaultListen is where HTTP listens when the file does not say.
const DefaultListen = "127.0.0.1:8473"

// HTTP is the http section.
type HTTP struct {
	Listen string   `json:"listen,omitempty" jsonschema:"the loopback address and port that HTTP listens on; 127.0.0.1:8473 when not written"`
	Hosts  []string `json:"hosts,omitempty" jsonschema:"further names and IP addresses under which clients may call the site, exactly as they write them, without a port"`
}

// http checks the values of the section; what is not written holds its default,
// which is right.
func (r *report) http(e entry, h HTTP) {
	if listen, ok := find(e.value.entries, "listen"); ok && listen.value.shape == scalar {
		if err := CheckListen(h.Listen); err != nil {
			r.fail(listen.value.at, "http", "listen %w", err)
		}
	}
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

// CheckListen accepts a loopback address with a port. Port 0 takes any free one.
func CheckListen(listen string) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("takes an address and a port such as %s, not %q", DefaultListen, clip(listen))
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("takes a port from 0 to 65535, not %q", clip(port))
	}
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("%s would let the network in over plain HTTP, where anyone can read along; use 127.0.0.1:%s", clip(listen), port)
}

var hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)

// checkHost accepts one exact host name or IP address, as a Host header spells
// it.
func checkHost(host string) error {
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.String() != host {
			return fmt.Errorf("write %s as %s", clip(host), ip)
		}
		return nil
	}
	if len(host) <= 253 && hostName.MatchString(host) {
		return nil
	}
	if lower := strings.ToLower(host); lower != host && hostName.MatchString(lower) {
		return fmt.Errorf("write %s as %s", clip(host), clip(lower))
	}
	return fmt.Errorf("%q is not a host name or an IP address; write it as greenhouse.local or 192.168.1.20, without http://, port or wildcard", clip(host))
}
