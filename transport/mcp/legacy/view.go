package legacy

import (
	"context"

	"agentsite/transport/mcp/view"

	"github.com/go-json-experiment/json"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// shows reports whether the client of a session has declared that it has the view.
func shows(ss *sdk.ServerSession) bool {
	p := ss.InitializeParams()
	if p == nil || p.Capabilities == nil {
		return false
	}
	var s view.Settings
	text, err := json.Marshal(p.Capabilities.Extensions[view.Extension])
	return err == nil && json.Unmarshal(text, &s) == nil && s.Shows()
}

// shown returns a list of tools as a session's client is to have it: a host's sessions share the tools, and only some
// of their clients have the view.
func shown(list *sdk.ListToolsResult, ss *sdk.ServerSession) *sdk.ListToolsResult {
	if shows(ss) {
		return list
	}
	for i, t := range list.Tools {
		if t.Meta != nil {
			without := *t
			without.Meta = nil
			list.Tools[i] = &without
		}
	}
	return list
}

// readView returns the view to a principal that may call one of its tools.
func (h *host) readView(ctx context.Context, uri string) (sdk.Result, error) {
	all, err := h.srv.catalog.Tools(ctx, h.who)
	switch {
	case err != nil:
		return nil, asError(err)
	case !view.Of(all):
		return nil, sdk.ResourceNotFoundError(uri)
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{
		{URI: uri, MIMEType: view.MIME, Text: view.HTML, Meta: sdk.Meta{"ui": view.Contents().UI}},
	}}, nil
}
