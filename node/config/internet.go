package config

// DefaultInternet is the default address for peers.
const DefaultInternet = ":8475"

// Internet is the section of that name: how the site is reached from anywhere. Without the
// section it is not.
type Internet struct {
	Listen  string   `json:"listen,omitempty" jsonschema:"the address and port for peers, TCP and UDP; :8475 when not written, on all addresses"`
	Relays  []string `json:"relays,omitempty" jsonschema:"where relays are, as agentsite relay prints it; through them the site is found, and reached where nothing else leads to it"`
	Realm   string   `json:"realm,omitempty" jsonschema:"who can find the site: a realm and its secret, as agentsite realm new prints it, or public for everybody; nobody when not written"`
	PortMap bool     `json:"port_map,omitempty" jsonschema:"whether the router is asked for a port (UPnP, NAT-PMP); on when not written"`
	Server  bool     `json:"server,omitempty" jsonschema:"whether the site keeps others' entries in the table by which sites are found; off when not written, and only for a machine with memory to spare"`
	IPFS    bool     `json:"ipfs,omitempty" jsonschema:"whether the site is entered in the public table of IPFS too; off when not written"`
}

const (
	relayPattern = `^/(ip4|ip6|dns|dns4|dns6|dnsaddr)/[^/\s]+(/[^\s/]+)*/p2p/[1-9A-HJ-NP-Za-km-z]{40,60}$`
	realmPattern = `^(public|` + nameForm + `:[a-z2-7]{26})$`
	maxRelays    = 16
)

var relayForm, realmForm = lazy(relayPattern), lazy(realmPattern)

// CheckInternet accepts any address of this machine with a port, or a port alone for all
// of them. Port 0 takes any free one.
func CheckInternet(listen string) error { return checkAddress(listen, DefaultInternet, "") }

// internet decodes and checks the section.
func (r *report) internet(e entry) *Internet {
	n := &Internet{Listen: DefaultInternet, PortMap: true}
	r.section(e, n)
	r.checkKey(e, "listen", CheckInternet)
	if at, realm, ok := e.scalar("realm"); ok && !realmForm().MatchString(realm) { // which may hold the secret
		r.fail(at, "internet", "realm takes a name and its secret, as agentsite realm new prints them, "+
			"or public for everybody")
	}
	for _, n := range r.scalars(e, "relays", maxRelays) {
		if !relayForm().MatchString(n.text) {
			r.fail(n.at, "internet", "relays: \"%s\" is no relay; write the address that agentsite relay prints, "+
				"such as /dns4/relay.example/udp/8475/quic-v1/p2p/12D3KooW…", clip(n.text))
		}
	}
	return n
}
