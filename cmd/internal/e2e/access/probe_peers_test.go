//go:build e2e

package access

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/discovery"
	"agentsite/discovery/card"
	"agentsite/discovery/discoverytest"
	"agentsite/node/acts"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/p2p"
	"agentsite/transport/rpc"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/multiformats/go-multiaddr"
)

// probedRealm is the realm of a probed site, with its secret.
const probedRealm = "zorilla:aaaaaaaaaaaaaaaaaaaaaaaaaa"

// spoken are the protocols that a host speaks with anybody, and what each tells.
var spoken = map[string]string{
	"/ipfs/id/1.0.0":                   "key, addresses, protocols and version of the program",
	"/ipfs/id/push/1.0.0":              "hears the same of others",
	"/ipfs/ping/1.0.0":                 "returns what it is sent",
	"/libp2p/autonat/2/dial-request":   "dials back whoever asks",
	"/libp2p/autonat/2/dial-back":      "hears that somebody dialled back",
	"/libp2p/circuit/relay/0.2.0/stop": "hears from relays",
	"/libp2p/dcutr":                    "punches holes",
	"/agentsite/meshsub/1.2.0":         "announcements, whose topic only the realm can name",
	"/agentsite/card/1":                "a site's card, for its realm",
	"/agentsite/file/1":                "a bundle that a site with an owner shares, for its realm",
	"/agentsite/newer/1":               "hears of a newer record, from its realm",
	"/agentsite/mcp/1/json":            "messages",
	"/agentsite/mcp/1/cbor":            "messages",
}

// overPeers probes libp2p. Each protocol has to be known here, and messages are answered as over
// HTTPS to a caller with any key.
func (p *probed) overPeers(t *testing.T, c acts.Carrier) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	id, err := state.Folder(p.Folder).Identity()
	if err != nil {
		t.Fatal(err)
	}
	there, err := peer.AddrInfoFromString(c.Address + "/p2p/" + id.Peer)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range c.Routes {
		if spoken[name] == "" {
			t.Errorf("the protocol %s is spoken: say in the probe what it tells, and ask it", name)
		}
	}
	stranger := func() *p2p.Host {
		h, err := p2p.New(p2p.Options{Key: identity.New()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		if err := h.Connect(ctx, *there); err != nil {
			t.Fatal(err)
		}
		return h
	}
	h := stranger()
	p.shownToPeers(t, h, there.ID)
	for _, secret := range []string{"zorilla:aaaaaaaaaaaaaaaaaaaaaaaaae", "public", "quagga:aaaaaaaaaaaaaaaaaaaaaaaaaa"} {
		realm, err := discovery.ParseRealm(secret)
		if err != nil {
			t.Fatal(err)
		}
		p.probes++
		if got, err := card.Fetch(ctx, h, realm, *there); err == nil {
			t.Errorf("somebody of another realm is shown %q", got.Capabilities)
		}
		p.probes++
		if card.SendNewer(ctx, h, realm, *there, discoverytest.Record(identity.New(), 1)) == nil {
			t.Error("somebody of another realm is believed to know a newer record")
		}
	}
	begun := p.probes
	for _, m := range p.messages(t) {
		name := map[string]protocol.ID{"JSON": "/agentsite/mcp/1/json", "CBOR": "/agentsite/mcp/1/cbor"}[m.form]
		if name == "" || !slices.Contains(c.Routes, string(name)) {
			continue
		}
		s, err := h.NewStream(ctx, there.ID, name)
		if err != nil { // a stranger may not stay for long, and comes again
			h.Close()
			h = stranger()
			if s, err = h.NewStream(ctx, there.ID, name); err != nil {
				t.Fatal(err)
			}
		}
		s.SetDeadline(time.Now().Add(10 * time.Second))
		p.probes++
		body := m.body
		if m.form == "JSON" {
			body += "\n"
		}
		if _, err := s.Write([]byte(body)); err != nil {
			t.Fatal(m.name, err)
		}
		s.CloseWrite()
		answer := p.heard(t, s, m.form)
		s.Close()
		p.tellsNothing(t, m.name, answer)
		note := strings.HasPrefix(m.name, "notifications/")
		challenge := !p.claimed && strings.HasPrefix(m.name, "claim/challenge ") && strings.Contains(answer, "challenge")
		if !note && !challenge && (!refused.MatchString(answer) || strings.Contains(answer, `"result":`)) {
			t.Errorf("%s: %s", m.name, answer)
		}
	}
	if asked := p.probes - begun; asked < 50 {
		t.Errorf("%d messages were sent, which shows too little", asked)
	}
}

// heard is all that comes back on a stream, as JSON.
func (p *probed) heard(t *testing.T, s interface{ Read([]byte) (int, error) }, form string) (all string) {
	t.Helper()
	if form == "CBOR" {
		for items := rpc.NewSequence(s); ; {
			item, err := items.Next()
			if err != nil {
				return all
			}
			all += inJSON("\r\n\r\n" + string(item))
		}
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := s.Read(buf)
		if all += string(buf[:n]); err != nil {
			return all
		}
	}
}

// shownToPeers: identify tells peers nothing about the site.
func (p *probed) shownToPeers(t *testing.T, h *p2p.Host, who peer.ID) {
	t.Helper()
	p.probes++
	agent, _ := h.Peerstore().Get(who, "AgentVersion")
	protocols, _ := h.Peerstore().GetProtocols(who)
	shown := []string{agent.(string)}
	for _, name := range protocols {
		if spoken[string(name)] == "" {
			t.Errorf("%s is shown, and owner/routes does not say so", name)
		}
	}
	for _, a := range h.Peerstore().Addrs(who) {
		multiaddr.ForEach(a, func(c multiaddr.Component) bool {
			if c.Protocol().Code != multiaddr.P_CIRCUIT {
				shown = append(shown, c.Value())
			}
			return true
		})
	}
	for _, text := range shown {
		p.tellsNothing(t, "identify", text)
	}
}
