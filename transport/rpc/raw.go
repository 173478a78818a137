package rpc

import (
	"errors"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Raw is an encoded value: parameters before their method is known, a schema rendered at start-up.
// In a message of the other encoding it is transcoded without loss. Supported are integers from
// -2^63 to 2^64-1, float64, texts, bools, null, arrays and objects, and bytes, which are base64 in
// JSON. Anything else is refused. The zero Raw is absent. A decoded Raw may share its message's
// bytes: that of a Call is valid until the method returns.
type Raw struct {
	codec Codec
	b     []byte
}

// RawJSON returns a Raw of valid JSON text.
func RawJSON(b []byte) Raw { return Raw{JSON, b} }

// ParseJSON returns a Raw of an untrusted text. It refuses a text that nests too deep or holds too
// many values; Decode checks whether it is valid.
func ParseJSON(b []byte) (Raw, error) {
	if err := checkJSONBounds(b); err != nil {
		return Raw{}, err
	}
	return Raw{JSON, b}, nil
}

func (r Raw) IsZero() bool { return r.codec == nil }

// Decode decodes into v, ignoring unknown fields.
func (r Raw) Decode(v any) error { return r.decode(v, Codec.Decode) }

// DecodeStrict is Decode, but an unknown field is an error that names it.
func (r Raw) DecodeStrict(v any) error { return r.decode(v, Codec.DecodeStrict) }

// Strict is a Raw whose Decode refuses an unknown field by its name.
type Strict struct{ Raw }

// Decode is DecodeStrict.
func (s Strict) Decode(v any) error { return s.DecodeStrict(v) }

func (r Raw) decode(v any, how func(Codec, []byte, any) error) error {
	if r.IsZero() {
		return how(JSON, []byte("{}"), v)
	}
	return how(r.codec, r.b, v)
}

// JSONText returns the value as JSON.
func (r Raw) JSONText() ([]byte, error) {
	switch r.codec {
	case nil:
		return []byte("null"), nil
	case JSON:
		return r.b, nil
	}
	return toJSON(r.b)
}

func (r Raw) MarshalJSONTo(enc *jsontext.Encoder) error {
	text, err := r.JSONText()
	if err != nil {
		return err
	}
	return enc.WriteValue(text)
}

func (r *Raw) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	v, err := dec.ReadValue()
	if err != nil {
		return err
	}
	*r = Raw{JSON, v.Clone()}
	return nil
}

func (r Raw) MarshalCBOR() ([]byte, error) {
	switch r.codec {
	case nil:
		return []byte{cborNull}, nil
	case CBOR:
		return r.b, nil
	}
	return toCBOR(r.b)
}

func (r *Raw) UnmarshalCBOR(b []byte) error {
	*r = Raw{CBOR, b}
	return nil
}

// toCBOR transcodes one JSON value.
func toCBOR(text []byte) ([]byte, error) {
	var tree any
	if err := json.Unmarshal(text, &tree, exactNumbers); err != nil {
		return nil, jsonError(err)
	}
	return cborEnc.Marshal(tree)
}

// toJSON transcodes one CBOR value. Bytes become base64, as in a struct.
func toJSON(b []byte) ([]byte, error) {
	var tree any
	if err := cborDec.Unmarshal(b, &tree); err != nil {
		return nil, &FieldError{Msg: "not valid CBOR: " + err.Error()}
	}
	if err := checkCBOR(b); err != nil {
		return nil, err
	}
	return json.Marshal(tree, jsonEncode)
}

// exactNumbers decodes a number into an int64 or a uint64 if it is one, and otherwise into a
// float64.
var exactNumbers = json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, v *any) error {
	if dec.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	text, err := dec.ReadValue()
	if err != nil {
		return err
	}
	*v, err = exactNumber(string(text))
	return err
}))

func exactNumber(text string) (any, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && text != "-0" {
		return n, nil
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || (isInteger(text) && strconv.FormatFloat(f, 'f', -1, 64) != text) {
		return nil, Errorf(CodeInvalidRequest, "the number %.40s needs more than 64 bits", text)
	}
	return f, nil
}

func isInteger(text string) bool { return !strings.ContainsAny(text, ".eE") }

// typeName names the encoded form of a Go type.
func typeName(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	if t.ConvertibleTo(reflect.TypeFor[int64]()) {
		return "an integer"
	}
	return "something else"
}
