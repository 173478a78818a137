package tools

import (
	"bytes"
	"reflect"
	"slices"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"
)

// inputSchema is the schema of arguments, of which field is one of names and numbers are within
// agents.Ranges.
func inputSchema(of reflect.Type, field string, names []string) ([]byte, error) {
	s, err := schemaOf(of)
	if err != nil {
		return nil, err
	}
	for name, p := range s.Properties {
		if name == field {
			into := p
			if p.Items != nil {
				into = p.Items
			}
			for _, e := range names {
				into.Enum = append(into.Enum, e)
			}
		}
		if r, ok := agents.Ranges[name]; ok {
			p.Minimum, p.Maximum = &r.Min, &r.Max
		}
	}
	if len(s.Properties) > 0 {
		s.AdditionalProperties = nil // a call with more is refused all the same
	}
	return json.Marshal(s, json.Deterministic(true))
}

// groupOnly are the properties that only results of a group have. siteOnly are those that a group
// does not pass on, because they are texts of a site's owner.
var (
	groupOnly = []string{"not_answered"}
	siteOnly  = []string{"description", "name"}
)

// outputOf returns the schema of an operation's results: those of a site or of a group. Those of
// OpWhy explain themselves.
func outputOf(o *op.Operation, group bool) ([]byte, error) {
	switch {
	case o == op.Why:
		return []byte(`{"type":"object"}`), nil
	case o.One != nil && group:
		return outputSchema(o.Answer, nil)
	case o == op.Stop:
		return outputSchema(o.One, []string{"site"}) // which only says whose it is in a group
	case o.One != nil:
		return outputSchema(o.One, nil)
	case group:
		return outputSchema(o.Answer, siteOnly)
	}
	return outputSchema(o.Answer, groupOnly)
}

// outputSchema returns the schema of a result with the names of its members, but without
// additionalProperties, required and types. MCP requires only the type of the whole. Each byte of
// it takes space in the context of a client's model.
func outputSchema(of reflect.Type, unwanted []string) ([]byte, error) {
	s, err := schemaOf(of)
	if err != nil {
		return nil, err
	}
	loosen(s, unwanted)
	s.Type = "object"
	b, err := json.Marshal(s, json.Deterministic(true))
	return bytes.ReplaceAll(b, []byte(":true"), []byte(":{}")), err // not every client knows true for a schema
}

func loosen(s *jsonschema.Schema, unwanted []string) {
	s.Type, s.Required, s.AdditionalProperties = "", nil, nil
	drop(s, unwanted)
	for _, p := range s.Properties {
		loosen(p, unwanted)
	}
	if s.Items != nil {
		loosen(s.Items, unwanted)
	}
}

// anyValue maps device.Value to a schema for a number, a bool, a text or null, and jsontext.Value
// to a schema for an object.
var anyValue = &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[device.Value](): {}, reflect.TypeFor[jsontext.Value](): {Type: "object"},
}}

// schemaOf is the library's schema without the nulls that it allows for pointers and lists: we send
// none. A received null, as models send for missing members, counts as missing.
func schemaOf(t reflect.Type) (*jsonschema.Schema, error) {
	s, err := jsonschema.ForType(t, anyValue)
	if err != nil {
		return nil, err
	}
	dropNull(s)
	drop(s, terms)
	return s, nil
}

// terms are the properties of agents.Terms, which the library takes out of requests though
// these do not encode them.
var terms = []string{
	"agentsite/idempotency-key", "agentsite/expires-in", "agentsite/held", "agentsite/unconfirmed", "agentsite/via",
}

func drop(s *jsonschema.Schema, names []string) {
	for _, name := range names {
		delete(s.Properties, name)
	}
	s.PropertyOrder = slices.DeleteFunc(s.PropertyOrder, func(have string) bool { return slices.Contains(names, have) })
}

func dropNull(s *jsonschema.Schema) {
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for _, p := range s.Properties {
		dropNull(p)
	}
	if s.Items != nil {
		dropNull(s.Items)
	}
}
