package site

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/node"
	"agentsite/node/state"
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

// carriersOf is where the site that runs from a folder can be reached, none where it does not
// say in time.
func carriersOf(ctx context.Context, f state.Folder) []Carrier {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var all Routes
	askOwner(ctx, f, RoutesMethod, &all) // or it stays empty
	return all.Carriers
}

// askOwner calls an owner's method of the site that runs from a folder.
func askOwner(ctx context.Context, f state.Folder, method string, answer any) error {
	c, err := Dial(Target{Folder: f})
	if err != nil {
		return err
	}
	defer c.Close()
	text, err := c.Owner(ctx, method, nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, answer)
}

// checkListens changes a URL's host to that at which the site that runs from the folder serves
// plain HTTP, which it asks through the site's own socket. It fails where that is another:
// then somebody else may listen there, who is not to be sent the folder's token.
func checkListens(f state.Folder, u *url.URL) error {
	ctx, cancel := context.WithTimeout(context.Background(), dialPatience)
	defer cancel()
	var all Routes
	err := askOwner(ctx, f, RoutesMethod, &all)
	for _, c := range all.Carriers {
		at, err := url.Parse(c.Address)
		if err == nil && c.Kind == HTTPCarrier && at.Port() == u.Port() && (at.Host == u.Host || u.Hostname() == "localhost") {
			u.Host = at.Host
			return nil
		}
	}
	if err == nil {
		err = fmt.Errorf("the site that runs from %s listens elsewhere", f)
	}
	return &url.Error{Op: "dial", URL: u.String(), Err: fmt.Errorf("%w, and its token is for nobody else (--token-file names another)", err)}
}

// listensWords says the same in words, "" for none.
func listensWords(ctx context.Context, f state.Folder) string {
	var addresses []string
	for _, c := range carriersOf(ctx, f) {
		addresses = append(addresses, c.Address)
	}
	if addresses == nil {
		return ""
	}
	return " and listens at " + strings.Join(addresses, ", ")
}
