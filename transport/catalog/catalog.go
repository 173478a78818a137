// Package catalog tells everybody at a site's address what is spoken there, and nothing else: the MCP Server Card, the
// AI Catalog and the API catalog. They are the same for every reader and in every state of the site.
//
// Formats: Server Card of modelcontextprotocol/experimental-ext-server-card, schema v1 of 2026-07-24; AI Catalog 1.0,
// as that repository's docs/discovery.md has it; RFC 9727 and RFC 9264.
package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"time"

	"agentsite/transport/adapter"
	"agentsite/transport/mcp"
	"agentsite/transport/web"

	"github.com/go-json-experiment/json"
)

const (
	cardPath    = "/mcp/server-card"
	catalogPath = "/.well-known/ai-catalog.json"
	apiPath     = "/.well-known/api-catalog"

	cardType    = "application/mcp-server-card+json"
	catalogType = "application/ai-catalog+json"
	apiType     = `application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"`

	cardSchema = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
	title      = "agentsite"
	// description is that of server.json, which describes the program to registries.
	description = "A board's sensors and outputs as tools, within limits that its owner wrote down"
)

// Options say what the documents of one address contain.
type Options struct {
	Version   string   // of the program
	Publisher string   // the domain that anchors identifiers
	Card      string   // the name of the Server Card: a reverse domain, a slash and a name
	Name      string   // the name in identifiers
	Protocols []string // that are spoken beside MCP
	// Base is the URL without a path; nil for the address by which a request came, whose host was checked.
	Base func(r *http.Request) string
}

// Routes returns the routes of a site's own addresses. Its identifiers have the site's ID, which its certificate and
// its record have, too.
func Routes(s *adapter.Site) []web.Route {
	id := s.Key.ID().PeerID()
	return Of(Options{
		Version: s.Version, Publisher: "agentsite.local", Card: "local.agentsite/" + id, Name: id, Protocols: s.Protocols,
	})
}

// PublicRoutes returns those of a public name, of which only MCP is spoken. They name no ID: the name is the identity
// there.
func PublicRoutes(version, host string) []web.Route {
	labels := strings.Split(host, ".")
	slices.Reverse(labels)
	return Of(Options{
		Version: version, Publisher: host, Card: strings.Join(labels, ".") + "/" + title, Name: title,
		Base: func(*http.Request) string { return "https://" + host },
	})
}

// Of returns the routes of the three documents. Pages of any origin may read them where clients sign in, as
// web.Route.AnyOrigin has it: at other addresses a page that somebody visits would learn which site is on their
// machine or network.
func Of(o Options) []web.Route {
	if o.Base == nil {
		o.Base = web.Base
	}
	return []web.Route{
		o.document(cardPath, cardType, o.card),
		o.document(catalogPath, catalogType, o.catalog),
		o.document(apiPath, apiType, o.links),
	}
}

func (o Options) document(path, mediaType string, render func(base string) any) web.Route {
	return web.Route{Pattern: "GET " + path, Admission: web.Public, AnyOrigin: true, Serve: func(
		w http.ResponseWriter, r *http.Request, _ web.Caller,
	) {
		base := o.Base(r)
		text, _ := json.Marshal(render(base), json.Deterministic(true)) // it has a form in JSON
		sum := sha256.Sum256(text)
		h := w.Header()
		h.Set("Content-Type", mediaType)
		h.Set("ETag", `"`+base64.RawURLEncoding.EncodeToString(sum[:12])+`"`)
		h.Set("Cache-Control", "public, max-age=3600")
		h.Set("Access-Control-Allow-Origin", "*")
		if path == apiPath {
			h.Set("Link", "<"+base+apiPath+`>; rel="api-catalog", <`+base+`/mcp>; rel="item"`)
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
	}}
}

type card struct {
	Schema      string   `json:"$schema"`
	Name        string   `json:"name"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Version     string   `json:"version"`
	Remotes     []remote `json:"remotes"`
}

type remote struct {
	Type     string   `json:"type"`
	URL      string   `json:"url"`
	Headers  []header `json:"headers"`
	Versions []string `json:"supportedProtocolVersions"`
}

type header struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Required    bool   `json:"isRequired"`
	Secret      bool   `json:"isSecret"`
}

func (o Options) card(base string) any {
	return card{
		Schema: cardSchema, Name: o.Card, Title: title, Description: description, Version: o.Version,
		Remotes: []remote{{
			Type: "streamable-http", URL: base + "/mcp", Versions: mcp.Versions,
			Headers: []header{
				{Name: "Authorization", Description: "Bearer and a token of the site's owner", Required: true, Secret: true},
			},
		}},
	}
}

type catalog struct {
	Version string  `json:"specVersion"`
	Entries []entry `json:"entries"`
}

type entry struct {
	Identifier string `json:"identifier"`
	Name       string `json:"displayName"` // optional since July 2026, and required by validators of before
	Type       string `json:"type"`
	URL        string `json:"url"`
}

func (o Options) catalog(base string) any {
	all := []entry{{o.identifier("mcp"), title, cardType, base + cardPath}}
	if slices.Contains(o.Protocols, "a2a") {
		all = append(
			all, entry{o.identifier("a2a"), title, "application/a2a-agent-card+json", base + "/.well-known/agent-card.json"},
		)
	}
	return catalog{"1.0", all}
}

func (o Options) identifier(protocol string) string {
	return "urn:air:" + o.Publisher + ":" + protocol + ":" + o.Name
}

type linkset struct {
	Set []link `json:"linkset"`
}

// link describes one API (RFC 9727).
type link struct {
	Anchor string   `json:"anchor"`
	Desc   []target `json:"service-desc"`
}

type target struct {
	URL  string `json:"href"`
	Type string `json:"type"`
}

// described are the descriptions of the protocols' APIs.
var described = []struct{ protocol, anchor, path, mediaType string }{
	{"a2a", "/a2a", "/.well-known/agent-card.json", "application/json"},
	{"openapi", "/api", "/api/openapi.json", "application/json"},
	{"wot", "/things", "/.well-known/wot", "application/td+json"},
}

func (o Options) links(base string) any {
	all := []link{{base + "/mcp", []target{{base + cardPath, cardType}}}}
	for _, d := range described {
		if slices.Contains(o.Protocols, d.protocol) {
			all = append(all, link{base + d.anchor, []target{{base + d.path, d.mediaType}}})
		}
	}
	return linkset{all}
}
