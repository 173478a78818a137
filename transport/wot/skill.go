package wot

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const maxSchemaDepth = 8

var (
	schemaTypes = []string{"boolean", "integer", "number", "string", "object", "array", "null"}
	// These terms of JSON Schema mean the same in a data schema.
	textTerms   = []string{"title", "description", "format", "pattern", "contentEncoding", "contentMediaType"}
	numberTerms = []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems"}
)

// inputOf returns the data schema of a skill's input, which is a JSON Schema of an object or, for
// a skill without arguments, a text.
func inputOf(input jsontext.Value) any {
	var in map[string]any
	if len(input) == 0 || json.Unmarshal(input, &in) != nil {
		return &schema{Type: "string", Description: "what is wanted, in words"}
	}
	return dataSchema(in, 0)
}

// dataSchema returns those terms of a JSON Schema that a data schema has too. Whatever it leaves
// out makes the description say less; the agent checks its arguments itself.
func dataSchema(in map[string]any, depth int) map[string]any {
	out := make(map[string]any)
	if t, ok := in["type"].(string); ok && slices.Contains(schemaTypes, t) {
		out["type"] = t
	}
	for _, term := range textTerms {
		if v, ok := in[term].(string); ok {
			out[term] = v
		}
	}
	for _, term := range numberTerms {
		if v, ok := in[term].(float64); ok {
			out[term] = v
		}
	}
	if all, ok := in["enum"].([]any); ok && len(all) > 0 {
		out["enum"] = all
	} else if v, ok := in["const"]; ok {
		out["const"] = v
	}
	if v, ok := in["default"]; ok {
		out["default"] = v
	}
	if depth == maxSchemaDepth {
		return out
	}
	if all, ok := in["properties"].(map[string]any); ok {
		properties := make(map[string]any)
		for name, v := range all {
			if of, ok := v.(map[string]any); ok {
				properties[name] = dataSchema(of, depth+1)
			}
		}
		out["properties"] = properties
		if all, ok := in["required"].([]any); ok && len(all) > 0 && !slices.ContainsFunc(all, isNoText) {
			out["required"] = all
		}
	}
	if of, ok := in["items"].(map[string]any); ok {
		out["items"] = dataSchema(of, depth+1)
	}
	return out
}

func isNoText(v any) bool { _, ok := v.(string); return !ok }
