package openapi

import (
	"context"
	"unicode"

	"agentsite/agents/op"
	"agentsite/transport/adapter"
	"agentsite/transport/web"

	"github.com/google/jsonschema-go/jsonschema"
)

// ownerPath returns the path of an operation for owners.
func ownerPath(row op.Row) string { return "/api/" + row.Name }

// ownerID returns the operation's name as an identifier: ownerTakeOver.
func ownerID(row op.Row) string {
	id, upper := "", false
	for _, r := range row.Name {
		switch {
		case r == '/' || r == '-':
			upper = true
		case upper:
			id, upper = id+string(unicode.ToUpper(r)), false
		default:
			id += string(r)
		}
	}
	return id
}

// ownerRoute returns the route of an operation for owners. Its body is the request, and for
// everybody else there is nothing at its path.
func (a api) ownerRoute(row op.Row) web.Route {
	return a.Route("POST "+ownerPath(row), web.Principals, func(ctx context.Context, c *adapter.Call) (any, error) {
		if a.Node.Owner(c.Who) != nil {
			return nil, adapter.ErrNotFound("there is no such operation here for you")
		}
		return row.Do(ctx, c.Who, c.Decode)
	})
}

// renderOwners adds the operations for owners to the paths of a document.
func (a api) renderOwners(paths object) error {
	for _, row := range a.Owners {
		request, err := schemaOf(row.Request, true)
		if err != nil {
			return err
		}
		answer, err := schemaOf(row.Answer, false)
		if err != nil {
			return err
		}
		json := func(schema *jsonschema.Schema) object {
			return object{"application/json": object{"schema": schema}}
		}
		paths[ownerPath(row)] = object{"post": object{
			"operationId": ownerID(row), "summary": row.Description,
			"description": "For owners. People use agentsite " + row.Command + ".",
			"requestBody": object{"required": row.Request.NumField() > 0, "content": json(request)},
			"responses": object{
				"200": object{"description": "It is done.", "content": json(answer)},
				"4XX": ref("responses", "Refused"), "5XX": ref("responses", "Refused"),
			},
		}}
	}
	return nil
}
