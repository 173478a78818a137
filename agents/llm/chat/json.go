package chat

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Quote returns a text as JSON. What is no UTF-8 in it is replaced.
func Quote(text string) string {
	quoted, _ := jsontext.AppendQuote(nil, text) // its error is that something was replaced
	return string(quoted)
}

// lenient is how the JSON of servers is read.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// decode reads the JSON of a server: what is not known is ignored.
func decode(text jsontext.Value, into any) bool {
	return json.Unmarshal(text, into, lenient) == nil
}

// Fields returns the members of a JSON object; nil for anything else. Servers and models differ in
// the types, so that each member is looked at by itself.
func Fields(v jsontext.Value) (f map[string]jsontext.Value) {
	if !decode(v, &f) {
		return nil
	}
	return f
}

// maxElements bounds an array: each of its elements takes 30 times the bytes that it has in the answer
// of a hostile server.
const maxElements = 1024

// Elements returns the elements of a JSON array of at most maxElements; nil for any other value.
func Elements(v jsontext.Value) (all []jsontext.Value) {
	if v.Kind() != '[' {
		return nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(v), lenient)
	_, err := d.ReadToken()
	for err == nil && d.PeekKind() != ']' {
		var e jsontext.Value
		if e, err = d.ReadValue(); err != nil || len(all) == maxElements {
			return nil
		}
		all = append(all, e.Clone())
	}
	return all
}

// Text returns a JSON text; "" for anything else.
func Text(v jsontext.Value) (text string) {
	decode(v, &text) // else it stays ""
	return text
}
