// Package anp renders the site's tools by the Agent Network Protocol. It serves an agent
// description (ANP-07) under a well-known name (ANP-08), an OpenRPC document of the methods that
// its reader may call, and JSON-RPC. The negotiation of ANP-06 needs no language model. Callers are
// authenticated by the site's tokens and keys, and by signatures of their requests (ANP-02). A site
// with a domain has a did:wba (ANP-03).
package anp

import (
	"context"

	"agentsite/agents"
	"agentsite/transport/adapter"
	"agentsite/transport/anp/did"
	"agentsite/transport/web"
)

// Routes returns the routes.
func Routes(s *adapter.Site) []web.Route {
	return routes(s, did.NewResolver(s.Callers, did.NewClient()))
}

func routes(s *adapter.Site, keys *did.Resolver) []web.Route {
	a := server{s}
	all := []web.Route{
		s.Document("/.well-known/agent-descriptions", "application/ld+json", a.descriptions),
		s.Document("/anp/ad.json", "application/json", a.description),
		s.Document("/anp/interface.json", "application/json", func(ctx context.Context, c *adapter.Call) (any, error) { return a.document(ctx, c, false) }),
		s.Route("GET /anp/confirmed.json", web.Principals, func(ctx context.Context, c *adapter.Call) (any, error) { return a.document(ctx, c, true) }),
		s.Route("POST /anp/rpc", web.Principals, a.call),
	}
	all[len(all)-1].Refuse = web.RefuseRPC // that of JSON-RPC
	signed := newSignatures(keys, s.Now)
	for i := range all {
		all[i].Signed = signed
	}
	if s.Domain != "" {
		all = append(all, s.Document("/.well-known/did.json", jsonType, a.identity))
	}
	return all
}

type server struct{ *adapter.Site }

// collection lists the descriptions under a name.
type collection struct {
	Context map[string]string `json:"@context"`
	Type    string            `json:"@type"`
	URL     string            `json:"url"`
	Items   []item            `json:"items"`
}

type item struct {
	Type string `json:"@type"`
	Name string `json:"name"`
	ID   string `json:"@id"`
}

// title returns the site's name, for a stranger only that of the program.
func (a server) title(who agents.Principal) string {
	if who == (agents.Principal{}) {
		return "agentsite"
	}
	return a.Name
}

func (a server) descriptions(_ context.Context, c *adapter.Call) (any, error) {
	base := c.Base()
	return collection{
		Context: map[string]string{"@vocab": "https://schema.org/", "did": "https://w3id.org/did#", "ad": "https://agent-network-protocol.com/ad#"},
		Type:    "CollectionPage", URL: base + "/.well-known/agent-descriptions",
		Items: []item{{"ad:AgentDescription", a.title(c.Who), base + "/anp/ad.json"}},
	}, nil
}

// identity is the DID document of the domain.
func (a server) identity(_ context.Context, c *adapter.Call) (any, error) {
	if c.Request.Host != a.Domain {
		return nil, adapter.ErrNotFound("a DID document is under the domain that it is of")
	}
	return did.Own(a.Domain, a.Key.ID()), nil
}

// description is an agent description.
type description struct {
	ProtocolType        string                       `json:"protocolType"`
	ProtocolVersion     string                       `json:"protocolVersion"`
	Type                string                       `json:"type"`
	URL                 string                       `json:"url"`
	DID                 string                       `json:"did,omitzero"`
	Name                string                       `json:"name"`
	Description         string                       `json:"description"`
	SecurityDefinitions map[string]map[string]string `json:"securityDefinitions"`
	Security            string                       `json:"security"`
	Interfaces          []iface                      `json:"interfaces"`
}

// iface is an interface of an agent.
type iface struct {
	ID                 string   `json:"id"`
	Type               string   `json:"type"`
	Protocol           string   `json:"protocol"`
	Version            string   `json:"version"`
	Profile            string   `json:"profile,omitzero"`
	Binding            string   `json:"binding,omitzero"`
	URL                string   `json:"url"`
	Methods            []string `json:"methods,omitzero"`
	SecurityProfiles   []string `json:"securityProfiles,omitzero"`
	Negotiates         []string `json:"negotiates,omitzero"`
	HumanAuthorization bool     `json:"humanAuthorization,omitzero"`
	Description        string   `json:"description"`
}

// The names of interfaces, profiles and methods.
const (
	operations = "operations"
	confirmed  = "confirmed"

	structured         = "StructuredInterface"
	rpcProfile         = "anp.rpc.v1"
	negotiationProfile = "anp.meta.negotiation.v1"
	transportProtected = "transport-protected"
	jsonType           = "application/json"

	bearer = "bearer_sc"
	didwba = "didwba_sc"

	capabilitiesMethod = "anp.get_capabilities"
	negotiateMethod    = "anp.negotiate"
)

func (a server) description(ctx context.Context, c *adapter.Call) (any, error) {
	base := c.Base()
	d := description{
		ProtocolType: "ANP", ProtocolVersion: "1.0.0", Type: "AgentDescription", URL: base + "/anp/ad.json", Name: a.title(c.Who),
		Description: "A board with sensors and outputs. An output is moved for a time and returns to its safe value by itself; its owner's limits hold whatever is asked.",
		SecurityDefinitions: map[string]map[string]string{
			bearer: {"scheme": "bearer", "in": "header", "name": "Authorization"}, didwba: {"scheme": "didwba", "in": "header", "name": "Authorization"},
		},
		Security: bearer,
		Interfaces: []iface{
			{ID: operations, Type: structured, Protocol: "openrpc", Version: "1.3.2", Profile: rpcProfile, URL: base + "/anp/interface.json", Description: "What you may call here, by JSON-RPC."},
			{
				ID: "negotiation", Type: "MetaProtocolInterface", Protocol: "ANP", Version: "1.0", Profile: negotiationProfile, Binding: "jsonrpc-2.0", URL: base + "/anp/rpc",
				Methods: []string{capabilitiesMethod, negotiateMethod}, SecurityProfiles: []string{transportProtected},
				Negotiates: []string{"profiles", "interfaces", "security_profiles", "content_types", "execution_modes"}, Description: "Finds the operation for an intent.",
			},
			{ID: "mcp", Type: structured, Protocol: "MCP", Version: "2026-07-28", URL: base + "/mcp", Description: "The same operations as tools."},
		},
	}
	if a.Domain != "" && (c.Request.Host == a.Domain || c.Who != (agents.Principal{})) {
		d.DID = did.Of(a.Domain)
	}
	if d.DID != "" || len(a.Callers) > 0 {
		d.Security = didwba
	}
	outputs, err := a.confirmed(ctx, c.Who)
	if err != nil {
		return nil, err
	}
	if len(outputs) > 0 {
		d.Interfaces = append(d.Interfaces, iface{
			ID: confirmed, Type: structured, Protocol: "openrpc", Version: "1.3.2", Profile: rpcProfile, URL: base + "/anp/confirmed.json", HumanAuthorization: true,
			Description: "Outputs whose moves the site's owner approves, each in a channel of the owner's own.",
		})
	}
	return d, nil
}

// confirmed returns the outputs whose moves an owner has to approve, as far as who sees them.
func (a server) confirmed(ctx context.Context, who agents.Principal) (outputs []string, err error) {
	if who == (agents.Principal{}) {
		return nil, nil
	}
	offer, err := a.Node.Offer(ctx, who)
	if err != nil || !offer.Points {
		return nil, err
	}
	list, err := a.Node.Points(ctx, who, agents.SiteRequest{})
	for _, p := range list.Points {
		if p.Confirm != "" {
			outputs = append(outputs, p.Point)
		}
	}
	return outputs, err
}
