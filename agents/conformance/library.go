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

// Library is a catalog with the fixtures that are resources and prompts beside its own.
type Library struct{ *tools.Catalog }

var _ tools.Library = Library{}

// stored are the resources with their contents.
var stored = []struct {
	tools.Resource
	content tools.ResourceContent
}{
	{tools.Resource{URI: "test://static-text", Name: "static-text", Description: "A text", MIME: "text/plain"},
		tools.ResourceContent{Text: "This is the content of the static text resource."}},
	{tools.Resource{URI: "test://static-binary", Name: "static-binary", Description: "A picture", MIME: "image/png"},
		tools.ResourceContent{Blob: pixel}},
	{tools.Resource{URI: watchedURI, Name: "watched-resource", MIME: "text/plain",
		Description: "A text that changes every three seconds"},
		tools.ResourceContent{Text: "Watched resource content"}},
}

// Resources lists the catalog's resources and those of the suite.
func (l Library) Resources(ctx context.Context, p agents.Principal) ([]tools.Resource, error) {
	list, err := l.Catalog.Resources(ctx, p)
	for _, s := range stored {
		list = append(list, s.Resource)
	}
	return list, err
}

// Templates lists the catalog's templates and that of the suite.
func (l Library) Templates(ctx context.Context, p agents.Principal) ([]tools.Template, error) {
	list, err := l.Catalog.Templates(ctx, p)
	return append(list, tools.Template{
		URITemplate: templateBefore + "{id}" + templateAfter, Name: "template",
		Description: "A resource per id", MIME: "application/json",
	}), err
}

// ReadResource reads a resource of the suite or of the catalog.
func (l Library) ReadResource(ctx context.Context, p agents.Principal, uri string) ([]tools.ResourceContent, error) {
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
		return l.Catalog.ReadResource(ctx, p, uri)
	}
	data, err := json.Marshal(map[string]any{"id": id, "templateTest": true, "data": "Data for ID: " + id})
	return []tools.ResourceContent{{URI: uri, MIME: "application/json", Text: string(data)}}, err
}
