// Package view holds the page by which hosts of MCP Apps show the results of a site's tools: a chart, an output
// and its way back to safe, readings, the state of the site.
//
// The page has no data. A host shows it beside a result, passes the result to it, and makes its calls. Its sources
// are in transport/page/src/view, and go generate makes view.html of them, which is committed.
//
// Specification: https://github.com/modelcontextprotocol/ext-apps, 2026-01-26
package view

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"slices"
	"strings"

	"agentsite/agents/tools"
)

//go:generate go test -run TestBundle -update

// HTML holds the page.
//
//go:embed view.html
var HTML string

const (
	// Extension is the name under which clients declare that they show such pages.
	Extension = "io.modelcontextprotocol/ui"
	// MIME is the type of the page.
	MIME = "text/html;profile=mcp-app"

	prefix = "ui://agentsite/view/"
)

// URI names the page for resources/read. It ends with a part of the page's hash, so that no host shows an older one
// from its cache.
var URI = func() string {
	sum := sha256.Sum256([]byte(HTML))
	return prefix + hex.EncodeToString(sum[:6])
}()

// Is reports whether the page is at a URI. It is also at those of other versions, whose results stay in conversations.
func Is(uri string) bool { return strings.HasPrefix(uri, prefix) }

// Of reports whether the page shows the results of one of these tools. Who may call none may not read it.
func Of(all []tools.Tool) bool {
	return slices.ContainsFunc(all, func(t tools.Tool) bool { return t.View })
}

// Settings are what a client declares under Extension.
type Settings struct {
	MIMETypes []string `json:"mimeTypes"`
}

// Shows reports whether the client shows pages of our type.
func (s Settings) Shows() bool { return slices.Contains(s.MIMETypes, MIME) }

// ToolMeta is the _meta of a tool whose results the page shows.
type ToolMeta struct {
	UI struct {
		URI string `json:"resourceUri"`
	} `json:"ui"`
}

// Tool returns the _meta of such a tool.
func Tool() *ToolMeta {
	m := new(ToolMeta)
	m.UI.URI = URI
	return m
}

// ContentsMeta is the _meta of the page's contents: it brings no frame of its own, and needs no network.
type ContentsMeta struct {
	UI struct {
		Border bool `json:"prefersBorder"`
	} `json:"ui"`
}

// Contents returns the _meta of the page's contents.
func Contents() *ContentsMeta {
	m := new(ContentsMeta)
	m.UI.Border = true
	return m
}
