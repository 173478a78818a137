// Package protocols is the table of protocol adapters.
package protocols

import (
	"agentsite/transport/a2a"
	"agentsite/transport/adapter"
	"agentsite/transport/agora"
	"agentsite/transport/openapi"
	"agentsite/transport/web"
	"agentsite/transport/wot"
)

// adapters are the adapters by their names in the configuration.
var adapters = map[string]func(*adapter.Site) []web.Route{
	"a2a":     a2a.Routes,
	"agora":   agora.Routes,
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
