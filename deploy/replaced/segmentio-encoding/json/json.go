// Package json stands in for the part of github.com/segmentio/encoding/json that the MCP SDK
// names: a decoder that tells upper from lower case. See the README two folders up.
package json

import (
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decoder decodes JSON values from a stream. Unlike the upstream's it refuses invalid UTF-8
// and a name that an object has twice.
type Decoder struct{ from *jsontext.Decoder }

func NewDecoder(r io.Reader) *Decoder { return &Decoder{jsontext.NewDecoder(r)} }

// DontMatchCaseInsensitiveStructFields is how it is in any case.
func (d *Decoder) DontMatchCaseInsensitiveStructFields() {}

// Decode decodes the next value.
func (d *Decoder) Decode(v any) error { return json.UnmarshalDecode(d.from, v) }
