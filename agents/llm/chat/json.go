package chat

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Quote returns a text as JSON. What is no UTF-8 in it is replaced.
func Quote(text string) string {
	quoted, _ := jsontext.AppendQuote(nil, text) // its error is that something was replaced
	return string(quoted)
}

// decode reads the JSON of a server: what is not known is ignored.
func decode(text jsontext.Value, into any) bool {
	return json.Unmarshal(text, into, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) == nil
}

// Fields returns the members of a JSON object; nil for anything else. Servers and models differ in
// the types, so that each member is looked at by itself.
func Fields(v jsontext.Value) (f map[string]jsontext.Value) {
	if !decode(v, &f) {
		return nil
	}
	return f
}

// Elements returns those of a JSON array; none for anything else.
func Elements(v jsontext.Value) (all []jsontext.Value) {
	if !decode(v, &all) {
		return nil
	}
	return all
}

// Text returns a JSON text; "" for anything else.
func Text(v jsontext.Value) (text string) {
	decode(v, &text) // else it stays ""
	return text
}
