//go:build conformance

package conformance

import (
	"context"
	"encoding/json"
	"strings"

	"agentsite/agents"
	"agentsite/agents/tools"
)

const (
	watchedURI     = "test://watched-resource"
	templateBefore = "test://template/"
	templateAfter  = "/data"
)

// stored are the resources with their contents.
var stored = []struct {
	tools.Resource
	content tools.ResourceContent
}{
	{tools.Resource{URI: "test://static-text", Name: "static-text", Description: "A text", MIME: "text/plain"},
		tools.ResourceContent{Text: "This is the content of the static text resource."}},
	{tools.Resource{URI: "test://static-binary", Name: "static-binary", Description: "A picture", MIME: "image/png"},
		tools.ResourceContent{Blob: pixel}},
	{tools.Resource{URI: watchedURI, Name: "watched-resource", Description: "A text that changes every three seconds", MIME: "text/plain"},
		tools.ResourceContent{Text: "Watched resource content"}},
}

func (a *Agent) Resources() []tools.Resource {
	list := make([]tools.Resource, len(stored))
	for i, s := range stored {
		list[i] = s.Resource
	}
	return list
}

func (a *Agent) Templates() []tools.Template {
	return []tools.Template{{
		URITemplate: templateBefore + "{id}" + templateAfter, Name: "template", Description: "A resource per id", MIME: "application/json",
	}}
}

func (a *Agent) ReadResource(_ context.Context, _ agents.Principal, uri string) ([]tools.ResourceContent, error) {
	for _, s := range stored {
		if s.URI == uri {
			c := s.content
			c.URI, c.MIME = uri, s.MIME
			return []tools.ResourceContent{c}, nil
		}
	}
	id, begins := strings.CutPrefix(uri, templateBefore)
	id, ends := strings.CutSuffix(id, templateAfter)
	if !begins || !ends || id == "" || strings.Contains(id, "/") {
		return nil, tools.ErrNotFound
	}
	data, err := json.Marshal(map[string]any{"id": id, "templateTest": true, "data": "Data for ID: " + id})
	return []tools.ResourceContent{{URI: uri, MIME: "application/json", Text: string(data)}}, err
}
