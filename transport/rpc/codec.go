package rpc

import "bytes"

// Limits of one message, whatever the encoding. They are far above the needs of an honest caller
// and far below the memory of a board with 512 MB.
const (
	MaxMessage = 256 << 10 // bytes of an inbound message
	maxDepth   = 32        // nested arrays and objects
	maxValues  = 16 << 10  // elements and members, of the message in JSON, of one list or map in CBOR
)

// Codec encodes and decodes Go values by their json tags. Both codecs are strict: names are
// case-sensitive, they refuse duplicate names, trailing bytes and invalid UTF-8, and bound
// depth and size.
type Codec interface {
	// ContentType is the codec's media type.
	ContentType() string
	// Encode appends v to w.
	Encode(w *bytes.Buffer, v any) error
	// Decode fills the struct that v points to, passing over unknown fields.
	Decode(b []byte, v any) error
	// DecodeStrict is Decode, but an unknown field is an error that names it.
	DecodeStrict(b []byte, v any) error
}
