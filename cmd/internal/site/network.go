package site

import (
	"net"

	"agentsite/discovery"
	"agentsite/node/acts"
	"agentsite/node/state"
	"agentsite/transport/web"
)

// hostNames returns the names that the site is called by.
func (s *site) hostNames() []string {
	return web.HostNames(append([]string{discovery.HostName(s.key.ID())}, s.listen.Hosts...)...)
}

// localURL returns the URL of the site's HTTPS on its own network.
func (s *site) localURL() string {
	_, port, _ := net.SplitHostPort(s.https.Addr().String())
	return "https://" + net.JoinHostPort(discovery.HostName(s.key.ID()), port) + "/mcp"
}

// allowedHosts returns the values of the Host header that HTTP and HTTPS serve.
func (s *site) allowedHosts() []string {
	all := web.AllowedHosts(s.http.Addr(), s.hostNames())
	if s.https != nil {
		all = append(all, discovery.HostName(s.key.ID())) // a caller that knows the key names no port
		all = append(all, web.AllowedHosts(s.https.Addr(), s.hostNames())...)
		if s.listen.Domain != "" {
			all = append(all, s.listen.Domain)
		}
	}
	return all
}

// httpsEndpoints returns where others may reach the site by HTTPS.
func (s *site) httpsEndpoints() []string {
	if s.https == nil {
		return nil
	}
	if s.HomeAssistant != nil { // the addresses of its container are nobody's but Home Assistant's
		return s.hostAddresses()
	}
	name := ""
	if s.config.Discovery.MDNS { // otherwise nobody answers for it
		name = discovery.HostName(s.key.ID())
	}
	return web.Endpoints(s.https.Addr(), name)
}

// endpoints returns where others may reach the site.
func (s *site) endpoints() []string {
	all := s.httpsEndpoints()
	if s.network != nil {
		all = append(all, s.network.Addresses()...)
	}
	return all
}

// claimAddresses returns where the site is claimed: the HTTPS endpoints, without the name that
// derives from its key, and its first relay.
func (s *site) claimAddresses() []string {
	near := s.httpsEndpoints()
	if len(near) > 1 && s.HomeAssistant == nil {
		near = near[:len(near)-1]
	}
	if s.network != nil && s.network.RelayAddress() != "" {
		near = append(near, s.network.RelayAddress())
	}
	return near
}

// listCarriers returns everything that listens, with the routes of each.
func (s *site) listCarriers() []acts.Carrier {
	routes, public := web.Patterns(s.routes, web.Owners), web.Patterns(s.routes, web.Readers)
	all := []acts.Carrier{
		{Kind: acts.HTTPCarrier, Address: s.url(), Routes: routes, Public: public},
		{Kind: acts.OwnerCarrier, Address: s.Folder.SocketPath(state.OwnerSocket)},
		{Kind: acts.AgentsCarrier, Address: s.Folder.SocketPath(state.AgentSocket)},
	}
	if s.https != nil {
		all = append(all, acts.Carrier{
			Kind: acts.HTTPSCarrier, Address: "https://" + s.https.Addr().String(), Routes: routes, Public: public,
		})
	}
	if s.ingress != nil {
		own := s.ingressRoutes()
		all = append(all, acts.Carrier{
			Kind: acts.HTTPCarrier, Address: "http://" + s.ingress.Addr().String(), Routes: web.Patterns(own, web.Owners),
			Public: web.Patterns(own, web.Readers),
		})
	}
	if s.network != nil {
		addresses, protocols := s.network.Listening()
		for _, a := range addresses {
			all = append(all, acts.Carrier{Kind: acts.P2PCarrier, Address: a, Routes: protocols})
		}
	}
	if s.public != nil {
		all = append(all, s.publicCarriers()...)
	}
	return all
}
