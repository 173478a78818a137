// Package protocols is the table of protocol adapters.
package protocols

import (
	"agentsite/discovery/mdns"
	"agentsite/node/config"
	"agentsite/transport/a2a"
	"agentsite/transport/adapter"
	"agentsite/transport/agora"
	"agentsite/transport/aitp"
	"agentsite/transport/anp"
	"agentsite/transport/catalog"
	"agentsite/transport/openapi"
	"agentsite/transport/web"
	"agentsite/transport/wot"
)

// adapters are the adapters by their names in the configuration.
var adapters = map[string]func(*adapter.Site) []web.Route{
	"a2a":     a2a.Routes,
	"agora":   agora.Routes,
	"aitp":    aitp.Routes,
	"anp":     anp.Routes,
	"catalog": catalog.Routes,
	"openapi": openapi.Routes,
	"wot":     wot.Routes,
}

// Routes returns the routes of the protocols with these names, which the configuration checked.
func Routes(names []string, s *adapter.Site) (routes []web.Route) {
	for _, name := range names {
		routes = append(routes, adapters[name](s)...)
	}
	return routes
}

// services are the DNS-SD services by which adapters are found on the local network.
var services = map[string]mdns.Service{
	"a2a": {Type: "_a2a._tcp", Text: []string{"card=/.well-known/agent-card.json"}},                 // no standard yet; the key is that of draft-zhao-a2a-dns-sd
	"wot": {Type: "_wot._tcp", Text: []string{"td=/.well-known/wot", "type=Thing", "scheme=https"}}, // WoT Discovery, DNS-Based Service Discovery
}

// directory is the service of a site that is a directory of things.
var directory = mdns.Service{Type: "_wot._tcp", Subtype: "_directory", Text: []string{"td=/.well-known/wot", "type=Directory", "scheme=https"}}

// Services returns the DNS-SD services of a configuration's protocols.
func Services(c *config.Site) (all []mdns.Service) {
	for _, name := range c.Protocols {
		if s, ok := services[name]; ok {
			if name == "wot" && c.WoT.Directory {
				s = directory
			}
			all = append(all, s)
		}
	}
	return all
}
