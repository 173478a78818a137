// Package web has drivers of JSON documents, W3C Things and MCP servers elsewhere, as devices.
package web

import "agentsite/device/driver"

// Drivers returns the drivers of this package.
func Drivers() []driver.Driver {
	return []driver.Driver{
		{Name: "http", Doc: "values in JSON documents of a web server, and outputs that a request sets",
			Also: "rest json shelly-http tasmota-http",
			Entry: "{ driver: http, url: 'http://192.168.1.20/status', inputs: { power: { path: power, unit: W, range: " +
				"0..3680 } } }",
			Config: func() driver.Config { return &documentConfig{} }},
		{Name: "mcp", Doc: "values in results of an MCP server's tools, and outputs that a tool sets", Also: "evcc",
			Entry: "{ driver: mcp, url: 'http://192.168.1.20:7070/mcp', inputs: { soc: { tool: get_state, path: soc, unit: " +
				"'%', range: 0..100 } } }",
			Config: func() driver.Config { return &mcpConfig{} }},
		{Name: "thing", Doc: "properties of a W3C Thing, by its description", Also: "wot webthing",
			Entry: "{ driver: thing, url: 'http://192.168.1.20:8080/lamp', inputs: { brightness: { unit: '%', range: 0..100 " +
				"} } }",
			Config: func() driver.Config { return &thingConfig{} }, Seek: seekThings},
	}
}
