package config

import "net/netip"

// DefaultInternet is the default address for peers.
const DefaultInternet = ":8475"

// Internet is the section of that name: how the site is reached from anywhere. Without the
// section it is not.
type Internet struct {
	Listen       string   `json:"listen,omitempty" jsonschema:"the address and port for peers, TCP and UDP; :8475 when not written, on all addresses"`
	Relays       []string `json:"relays,omitempty" jsonschema:"where relays are, as agentsite relay prints it; through them the site is found, and reached where nothing else leads to it"`
	Realm        string   `json:"realm,omitempty" jsonschema:"who can find the site: a realm and its secret, as agentsite realm new prints it, or public for everybody; nobody when not written"`
	PortMap      bool     `json:"port_map,omitempty" jsonschema:"whether the router is asked for a port (UPnP, NAT-PMP); on when not written"`
	Server       bool     `json:"server,omitempty" jsonschema:"whether the site keeps others' entries in the table by which sites are found; off when not written, and only for a machine with memory to spare"`
	Public       string   `json:"public,omitempty" jsonschema:"a name under which everybody reaches the site's /mcp by HTTPS, and programs ask to sign in (OAuth): on for one that its relays give, or a name of your own, such as board.example.org; none when not written. It gets a certificate by ACME, whose authority's terms of service you accept by this line"`
	ACME         string   `json:"acme,omitempty" jsonschema:"the authority for the public name's certificate: staging for trials, or the URL of its directory; Let's Encrypt when not written"`
	PublicListen string   `json:"public_listen,omitempty" jsonschema:"the address and port where the site itself takes callers of its public name, such as :8443, for a router that forwards port 443 to it; only relays bring them when not written"`
	CT           string   `json:"ct,omitempty" jsonschema:"the search of the public logs of certificates (Certificate Transparency), such as https://crt.sh/: it is asked once a day whether somebody else has a certificate for the public name; not asked when not written"`
	Proxies      []string `json:"proxies,omitempty" jsonschema:"the IP addresses of reverse proxies or tunnels in front of public_listen, which have the certificate of the public name: only they may connect there, and what they say of their callers in X-Forwarded-For is believed; none when not written"`
	IPFS         bool     `json:"ipfs,omitempty" jsonschema:"whether the site is entered in the public table of IPFS too; off when not written"`
}

const (
	relayPattern = `^/(ip4|ip6|dns|dns4|dns6|dnsaddr)/[^/\s]+(/[^\s/]+)*/p2p/[1-9A-HJ-NP-Za-km-z]{40,60}$`
	realmPattern = `^(public|` + nameForm + `:[a-z2-7]{26})$`
	maxRelays    = 16
	maxProxies   = 16

	publicOn      = "on"
	publicPattern = `^(on|([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?)$`
	ctPattern     = `^https://[^\s?#]+$`
	acmeStaging   = "staging"
	acmePattern   = `^(staging|https://[^\s]+)$`
)

var relayForm, realmForm, publicForm, acmeForm, ctForm = lazy(relayPattern), lazy(realmPattern), lazy(publicPattern), lazy(acmePattern), lazy(ctPattern)

// PublicName returns the owner's own public name, "" where the relays give one or there is none.
func (n *Internet) PublicName() string {
	if n.Public == publicOn {
		return ""
	}
	return n.Public
}

// Staging reports whether certificates are for trials.
func (n *Internet) Staging() bool { return n.ACME == acmeStaging }

// checkInternet accepts any address of this machine with a port, or a port alone for all
// of them. Port 0 takes any free one.
func checkInternet(listen string) error { return checkAddress(listen, DefaultInternet, "") }

// internet decodes and checks the section.
func (r *report) internet(e entry) *Internet {
	n := &Internet{Listen: DefaultInternet, PortMap: true}
	r.section(e, n)
	r.checkKey(e, "listen", checkInternet)
	if at, realm, ok := e.scalar("realm"); ok && !realmForm().MatchString(realm) { // which may hold the secret
		r.fail(at, "internet", "realm takes a name and its secret, as agentsite realm new prints them, "+
			"or public for everybody")
	}
	r.public(e)
	for _, n := range r.scalars(e, "relays", maxRelays) {
		if !relayForm().MatchString(n.text) {
			r.fail(n.at, "internet", "relays: \"%s\" is no relay; write the address that agentsite relay prints, "+
				"such as /dns4/relay.example/udp/8475/quic-v1/p2p/12D3KooW…", clip(n.text))
		}
	}
	return n
}

// public checks the keys of the public name.
func (r *report) public(e entry) {
	_, relays := find(e.value.entries, "relays")
	_, _, listens := e.scalar("public_listen")
	_, proxied := find(e.value.entries, "proxies")
	at, name, ok := e.scalar("public")
	switch {
	case ok && (!publicForm().MatchString(name) || len(name) > 253):
		r.fail(at, "internet", "public takes on, for a name that a relay gives, or a name of your own such as "+
			"board.example.org, not %q", clip(name))
	case ok && proxied && (name == publicOn || !listens || relays):
		r.fail(at, "internet", "proxies bring the callers of a name of your own to public_listen: write both, and no relays")
	case ok && !relays && (name == publicOn || !listens):
		r.fail(at, "internet", "public needs relays:, which bring its callers; or a name of your own and public_listen:, "+
			"for a router that forwards port 443")
	}
	for _, key := range []string{"acme", "ct", "public_listen", "proxies"} {
		if of, written := find(e.value.entries, key); written && !ok {
			r.fail(of.at, "internet", "%s is of a public name: write public:, too", key)
		}
	}
	for _, n := range r.scalars(e, "proxies", maxProxies) {
		if ip, err := netip.ParseAddr(n.text); err != nil || ip.String() != n.text || ip.IsUnspecified() {
			r.fail(n.at, "internet", "proxies takes IP addresses such as 127.0.0.1, not %q", clip(n.text))
		}
	}
	if at, _, written := e.scalar("acme"); written && proxied {
		r.fail(at, "internet", "acme: the proxies have the certificate, so that the site needs none: leave it out")
	}
	if at, text, ok := e.scalar("ct"); ok && !ctForm().MatchString(text) {
		r.fail(at, "internet", "ct takes an https URL such as https://crt.sh/, not %q", clip(text))
	}
	if at, text, ok := e.scalar("acme"); ok && !acmeForm().MatchString(text) {
		r.fail(at, "internet", "acme takes staging or the https URL of an authority's directory, not %q", clip(text))
	}
	r.checkKey(e, "public_listen", checkInternet)
}
