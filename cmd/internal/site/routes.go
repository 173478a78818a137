package site

import (
	"context"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/node"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
)

// RoutesMethod lists every way into the site.
const RoutesMethod = "owner/routes"

// Routes answers RoutesMethod.
type Routes struct {
	Carriers []Carrier `json:"carriers"`
	Methods  []string  `json:"methods"` // of all carriers
}

// Carrier is something that listens. Each has its own way to be spoken to, by its kind.
type Carrier struct {
	Kind    string   `json:"kind"`
	Address string   `json:"address"`         // a URL without a path, or a socket's file
	Routes  []string `json:"routes,omitzero"` // over HTTP: "GET /healthz", or "/mcp" for every verb; over libp2p: protocols
}

// The kinds of carriers.
const (
	HTTPCarrier   = "http"
	HTTPSCarrier  = "https"
	OwnerCarrier  = "owner socket"
	AgentsCarrier = "agents socket"
	P2PCarrier    = "libp2p"
)

func addRoutes(methods map[string]rpc.Method, door *node.Node, all func() Routes) {
	methods[RoutesMethod] = ownersOnly(door, "doctor", func(context.Context, agents.Principal, string) (any, error) { return all(), nil })
}

// ways is where the site that runs from a folder can be reached, none where it does not
// say in time.
func (f Folder) ways(ctx context.Context) []Carrier {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	c, conn, err := Dial(Target{Folder: f})
	if err != nil {
		return nil
	}
	defer conn.Close()
	var all Routes
	text, err := c.Owner(ctx, RoutesMethod, nil)
	if err != nil || json.Unmarshal(text, &all) != nil {
		return nil
	}
	return all.Carriers
}

// listens says the same in words, "" for none.
func (f Folder) listens(ctx context.Context) string {
	var addresses []string
	for _, c := range f.ways(ctx) {
		addresses = append(addresses, c.Address)
	}
	if addresses == nil {
		return ""
	}
	return " and listens at " + strings.Join(addresses, ", ")
}
