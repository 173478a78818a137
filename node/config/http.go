package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"agentsite/device"
	"agentsite/node/identity"
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

	Domain         string   `json:"domain,omitempty" jsonschema:"the public name of the site, such as garden.example.org, with a port where clients do not reach it at 443; the certificate is for it, and ANP's did:wba is of it"`
	Certificate    string   `json:"certificate,omitempty" jsonschema:"the file with the domain's certificate and its chain (PEM), beside the configuration or as a whole path; read again when it changes"`
	CertificateKey string   `json:"certificate_key,omitempty" jsonschema:"the file with the private key of the certificate (PEM)"`
	Callers        []string `json:"callers,omitempty" jsonschema:"did:wba names of callers whose keys the site may look up, to know their signatures (ANP); what each may is in the grant of its key"`
	OAuth          bool     `json:"oauth,omitempty" jsonschema:"whether programs that know only the site's URL may ask to sign in (OAuth), at the domain or, without one, at the site's name on its network; an owner allows each; off when not written. A site with a public name (internet: public) has this under that name, without this line"`
	PushHosts      []string `json:"push_hosts,omitempty" jsonschema:"the hosts, with a port where it is not 443, that callers may have events (MCP) and push notifications of their tasks (A2A) sent to, such as hooks.example.com; none when not written"`
}

const maxCallers = 32

var callerForm = lazy(identity.WBAPattern)

// Protocols are those that HTTP can speak beside MCP. A site speaks DefaultProtocols unless its
// configuration lists some.
var (
	Protocols        = []string{"a2a", "openapi", "agora", "wot", "aitp", "anp", "catalog"}
	DefaultProtocols = []string{"a2a", "openapi", "wot", "catalog"}
)

// protocols decodes the section of that name, a list of names.
func (r *report) protocols(e entry) (names []string) {
	if e.value.shape != list {
		r.fail(e.value.at, e.key, "takes a list such as [%s], or [] for none but MCP, not %s",
			strings.Join(Protocols, ", "), e.value.what())
		return nil
	}
	for _, item := range e.value.items() {
		switch n := item.value; {
		case n.shape != scalar || !slices.Contains(Protocols, n.text):
			r.fail(n.at, e.key, "there is no protocol %q%s", clip(n.text), device.Suggest(n.text, Protocols, "protocol"))
		case slices.Contains(names, n.text):
			r.fail(n.at, e.key, "%s is listed twice", n.text)
		default:
			names = append(names, n.text)
		}
	}
	return names
}

// Identified returns the domain of the site's did:wba, which ANP shows; "" for none.
func (s *Site) Identified() string {
	if !slices.Contains(s.Protocols, "anp") {
		return ""
	}
	return s.HTTP.Domain
}

// Discovery is the section of that name: how the network finds the site.
type Discovery struct {
	MDNS   bool `json:"mdns,omitempty" jsonschema:"whether the site is announced on its own network (mDNS), as long as HTTPS listens there; on when not written"`
	Public bool `json:"public,omitempty" jsonschema:"whether the kinds and the names of its points are announced, too, once somebody owns it; off when not written"`
}

// http checks the written values of the section.
func (r *report) http(e entry) {
	r.checkKey(e, "listen", checkListen)
	r.checkKey(e, "https", checkHTTPS)
	r.checkKey(e, "domain", checkDomain)
	r.certificate(e)
	for _, n := range r.scalars(e, "hosts", 0) {
		if err := checkHost(n.text); err != nil {
			r.fail(n.at, "http", "hosts: %w", err)
		}
	}
	for _, n := range r.scalars(e, "callers", maxCallers) {
		if len(n.text) > 256 || !callerForm().MatchString(n.text) {
			r.fail(n.at, "http", "callers takes names such as did:wba:example.com or did:wba:example.com:user:ann:e1_…, "+
				"not %q; a did:key needs no line here", clip(n.text))
		}
	}
	for _, n := range r.scalars(e, "push_hosts", maxPushHosts) {
		host, port, err := net.SplitHostPort(n.text)
		if err != nil {
			host, port = strings.Trim(n.text, "[]"), "443"
		}
		_, err = strconv.ParseUint(port, 10, 16)
		if err != nil || !pushHostForm().MatchString(n.text) || checkHost(host) != nil {
			r.fail(n.at, "http", "push_hosts takes hosts such as hooks.example.com, 192.168.1.20:8443 or [fd00::20]:8443, "+
				"in small letters and without https://, not %q", clip(n.text))
		}
	}
}

const maxPushHosts = 16

// pushHostPattern is a name or an address with a port, as far as a pattern can say.
const pushHostPattern = `^([a-z0-9][a-z0-9.-]{0,252}|\[[0-9a-f:.]{2,45}\])(:[1-9][0-9]{0,4})?$`

var pushHostForm = lazy(pushHostPattern)

// certificate checks that a domain has its certificate, and that nothing else has one.
func (r *report) certificate(e entry) {
	domain, _, named := e.scalar("domain")
	for _, key := range []string{"certificate", "certificate_key"} {
		switch at, _, ok := e.scalar(key); {
		case ok && !named:
			r.fail(at, "http", "%s is of a domain: write domain: with the name that it is for", key)
		case !ok && named:
			r.fail(domain, "http", "a domain needs certificate: and certificate_key:, the files with its certificate and "+
				"the key of that; an authority such as Let's Encrypt gives them")
		}
	}
}

// checkDomain accepts a name in the public DNS, with a port.
func checkDomain(domain string) error {
	host, port, err := net.SplitHostPort(domain)
	if err != nil {
		host, port = domain, "443"
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || host != domain && port == "443" || !callerForm().MatchString("did:wba:"+host) {
		return fmt.Errorf("takes a name such as garden.example.org, or garden.example.org:8474 where the port is not 443, "+
			"not %q", clip(domain))
	}
	return nil
}

// checkKey checks a key of a section that is written as a scalar.
func (r *report) checkKey(e entry, key string, check func(string) error) {
	if at, text, ok := e.scalar(key); ok {
		if err := check(text); err != nil {
			r.fail(at, e.key, key+" %w", err)
		}
	}
}

// checkListen accepts a loopback address with a port. Port 0 takes any free one.
func checkListen(listen string) error {
	host, port, err := hostAndPort(listen, DefaultListen)
	if err != nil {
		return err
	}
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("%s would serve the network over plain HTTP, which anyone can read; use 127.0.0.1:%s",
		clip(listen), port)
}

// checkHTTPS accepts any address of this machine with a port, a port alone for all of
// them, and none. Port 0 takes any free one.
func checkHTTPS(listen string) error {
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

var hostName = lazy(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)

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
	return fmt.Errorf("%q is not a host name or an IP address; write it as greenhouse.local or 192.168.1.20, "+
		"without http://, port or wildcard", clip(host))
}
