package conformance

import (
	"context"
	"encoding/base64"
	"errors"

	"agentsite/agents/tools"
)

var contentFixtures = []fixture{
	{name: "test_simple_text", description: "Answers a text",
		call: answers(tools.Content{Text: "This is a simple text response for testing."})},
	{name: "test_image_content", description: "Answers a picture", call: answers(picture)},
	{name: "test_audio_content", description: "Answers a sound", call: answers(sound)},
	{name: "test_embedded_resource", description: "Answers a resource",
		call: answers(embedded("test://embedded-resource"))},
	{name: "test_multiple_content_types", description: "Answers a text, a picture and a resource", call: answers(
		tools.Content{Text: "Multiple content types test:"}, picture, embedded("test://mixed-content-resource"),
	)},
	{name: "test_error_handling", description: "Fails",
		call: func(context.Context, tools.Call) (tools.Result, error) {
			return tools.Result{}, errors.New("this tool intentionally returns an error for testing")
		}},
	{name: "json_schema_2020_12_tool", description: "Has a schema that uses what JSON Schema 2020-12 brought", input: richSchema,
		call: answers(tools.Content{Text: "called"})},
}

func answers(c ...tools.Content) func(context.Context, tools.Call) (tools.Result, error) {
	return func(context.Context, tools.Call) (tools.Result, error) { return tools.Result{Content: c}, nil }
}

var (
	picture = tools.Content{Image: &tools.Blob{MIME: "image/png", Data: pixel}}
	sound   = tools.Content{Audio: &tools.Blob{MIME: "audio/wav", Data: silence}}

	// pixel is a red picture of one pixel, silence one sample of 8 kHz audio.
	pixel   = decoded("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==")
	silence = decoded("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=")
)

func embedded(uri string) tools.Content {
	return tools.Content{Resource: &tools.ResourceContent{
		URI: uri, MIME: "text/plain", Text: "This is an embedded resource content.",
	}}
}

func decoded(s string) []byte {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		panic(err) // the constants above are at fault
	}
	return b
}

// richSchema holds every keyword that must come through a list unchanged.
const richSchema = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"$defs": {
		"address": {
			"$anchor": "addressDef",
			"type": "object",
			"properties": {"street": {"type": "string"}, "city": {"type": "string"}}
		}
	},
	"properties": {
		"name": {"type": "string"},
		"address": {"$ref": "#/$defs/address"},
		"contactMethod": {"type": "string", "enum": ["phone", "email"]},
		"phone": {"type": "string"},
		"email": {"type": "string"}
	},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
	"then": {"required": ["phone"]},
	"else": {"required": ["email"]},
	"additionalProperties": false
}`
