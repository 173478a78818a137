package openapi

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"agentsite/agents"
	"agentsite/transport/adapter"
)

const (
	documentPath = "/api/openapi.json"
	// version is the version of the described API, and grows when that changes.
	version = "1.0.0"
)

// object is an object of a document.
type object = map[string]any

func ref(kind, name string) object { return object{"$ref": "#/components/" + kind + "/" + name} }

// document returns the OpenAPI 3.1 document of the operations that its reader may use. A stranger
// reads that there is a site, and how a token is sent.
func (a api) document(ctx context.Context, c *adapter.Call) (any, error) {
	r, err := a.reader(ctx, c)
	if err != nil {
		return nil, err
	}
	components := object{"securitySchemes": object{"token": object{
		"type": "http", "scheme": "bearer", "description": "a token that an owner of the site gave; over HTTPS a key's certificate does as well",
	}}}
	document := object{
		"openapi": "3.1.0",
		"info": object{
			"title": title(r, a.Name), "version": version,
			"description": "Sensors and outputs of a physical site. Whoever shows a token reads here what it permits.",
			"license":     object{"name": "Apache 2.0", "identifier": "Apache-2.0"},
		},
		"servers":    []object{{"url": c.Base()}},
		"security":   []object{{"token": []string{}}},
		"paths":      object{},
		"components": components,
	}
	uses := r.uses()
	if len(uses) == 0 && (r == nil || !r.owner) {
		return document, nil
	}
	made, err := schemas()
	if err != nil {
		return nil, err
	}
	needed := object{"Problem": made["Problem"]}
	paths := object{}
	for _, o := range uses {
		for _, name := range []string{o.body, o.result} {
			if name != "" {
				needed[name] = made[name]
			}
		}
		at, ok := paths[o.path].(object)
		if !ok {
			at = object{}
			paths[o.path] = at
		}
		at[strings.ToLower(o.verb)] = o.render(r)
	}
	if r.owner {
		if err := a.renderOwners(paths); err != nil {
			return nil, err
		}
	}
	document["paths"] = paths
	components["schemas"] = needed
	components["responses"] = object{"Refused": refused()}
	if slices.ContainsFunc(uses, func(o *operation) bool { return o.tool != "" }) {
		components["parameters"] = termParameters()
	}
	return document, nil
}

// title returns the title of a document: a stranger is not told the site's name.
func title(r *reader, name string) string {
	if r == nil {
		return "agentsite"
	}
	return name
}

// refused returns the answer to a refused call. A request that is refused before it becomes a call
// gets an error of JSON-RPC, as everywhere else on the site.
func refused() object {
	return object{
		"description": "It is not done. fault is invalid, denied, unsafe, busy, offline, expired, unknown_outcome, unavailable or internal, and detail says what to do. " +
			"Where an owner has to approve it first, the same call is made again then, with approval in the header Agentsite-Approval.",
		"content": object{
			"application/problem+json": object{"schema": ref("schemas", "Problem")},
			"application/json": object{"schema": object{
				"type": "object", "description": "not admitted: the token is missing or does not count, or there are too many requests",
				"properties": object{"error": object{"type": "object"}}, "required": []string{"error"},
			}},
		},
	}
}

// termParameters returns the headers of calls that do something, by their names in the document.
func termParameters() object {
	return object{
		"Key": object{
			"name": "Idempotency-Key", "in": "header", "schema": object{"type": "string", "minLength": 1, "maxLength": 64},
			"description": "a call that is repeated with it acts once; printable ASCII, another one for each call",
		},
		"Expires": object{
			"name": "Agentsite-Expires-In", "in": "header", "schema": object{"type": "number", "exclusiveMinimum": 0, "maximum": 86400},
			"description": "for how many seconds after its coming the call may still begin",
		},
		"Approval": object{
			"name": "Agentsite-Approval", "in": "header", "schema": object{"type": "string"},
			"description": "the approval of the problem that this call was answered with before, once an owner has approved it",
		},
		"Via": object{
			"name": "Agentsite-Via", "in": "header", "schema": object{"type": "string"},
			"description": "the sites and agents through which somebody asks, the nearest last, separated by commas; at most " + strconv.Itoa(agents.MaxVia),
		},
	}
}

// render returns an operation as the document has it.
func (o *operation) render(r *reader) object {
	out := object{"operationId": o.id, "summary": o.summary}
	if o.describe != "" {
		out["description"] = o.describe
	}
	var parameters []object
	for _, p := range o.parameters(r) {
		parameters = append(parameters, p.render())
	}
	if o.tool != "" && o.id != stopID {
		for _, name := range []string{"Key", "Expires", "Approval", "Via"} {
			parameters = append(parameters, ref("parameters", name))
		}
	}
	if parameters != nil {
		out["parameters"] = parameters
	}
	if o.body != "" {
		out["requestBody"] = object{"required": o.needs, "content": object{"application/json": object{"schema": ref("schemas", o.body)}}}
	}
	content := object{"application/json": object{"schema": ref("schemas", o.result)}}
	if o.media != "" {
		content = object{o.media: object{}}
	}
	out["responses"] = object{
		strconv.Itoa(o.succeeds()): object{"description": "It is done.", "content": content},
		"4XX":                      ref("responses", "Refused"), "5XX": ref("responses", "Refused"),
	}
	return out
}

// described is a parameter of an operation as a reader may use it.
type described struct {
	parameter
	in    string   // path or query
	names []string // that it may be; nil for anything
}

// parameters returns those of the path and the query.
func (o *operation) parameters(r *reader) (all []described) {
	var names []string
	if o.names != nil {
		names = o.names(r.Offer)
	}
	in := func(name, describe string, names []string) {
		if strings.Contains(o.path, "{"+name+"}") {
			all = append(all, described{parameter{name: name, describe: describe, needed: true}, "path", names})
		}
	}
	in("device", "", part(names, 0))
	in("point", "one of the device's own; listPoints names them", part(names, 1))
	in("agent", "", r.agents)
	in("task", "the id of a task", nil)
	for _, p := range o.query {
		d := described{p, "query", nil}
		if p.name == "point" {
			d.names = names
		}
		all = append(all, d)
	}
	return all
}

// part returns the devices of addresses, or the names of their points, each once.
func part(addresses []string, i int) (all []string) {
	for _, a := range addresses {
		if parts := strings.SplitN(a, "/", 2); len(parts) == 2 && !slices.Contains(all, parts[i]) {
			all = append(all, parts[i])
		}
	}
	return all
}

func (d described) render() object {
	schema := object{"type": "string"}
	switch {
	case d.number:
		r := agents.Ranges[d.name]
		schema = object{"type": "number", "minimum": r.Min, "maximum": r.Max}
	case d.names != nil:
		schema["enum"] = d.names
	}
	if d.many {
		schema = object{"type": "array", "items": schema, "uniqueItems": true}
	}
	out := object{"name": d.name, "in": d.in, "schema": schema}
	if d.needed {
		out["required"] = true
	}
	if d.describe != "" {
		out["description"] = d.describe
	}
	return out
}
