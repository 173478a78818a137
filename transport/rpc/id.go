package rpc

import (
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/fxamacker/cbor/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxIDLength bounds the text of an id, which is kept while a request runs.
const maxIDLength = 128

// ID identifies a request, a progress or a subscription: a text or an integer from -2^63 to
// 2^64-1. Codecs preserve its type. The zero ID is none. IDs are comparable.
type ID struct {
	kind idKind
	text string
	num  uint64 // the bits of an int64 when kind is idNegative
}

type idKind uint8

const (
	idNone idKind = iota
	idText
	idPositive
	idNegative
)

// TextID and NumberID make ids.
func TextID(s string) ID { return ID{kind: idText, text: s} }

func NumberID(n uint64) ID { return ID{kind: idPositive, num: n} }

func intID(n int64) ID {
	if n < 0 {
		return ID{kind: idNegative, num: uint64(n)}
	}
	return NumberID(uint64(n))
}

func (id ID) IsZero() bool { return id.kind == idNone }

func (id ID) String() string {
	switch id.kind {
	case idText:
		return id.text
	case idPositive:
		return strconv.FormatUint(id.num, 10)
	case idNegative:
		return strconv.FormatInt(int64(id.num), 10)
	}
	return ""
}

// appendJSON appends a non-zero id.
func (id ID) appendJSON(b []byte) []byte {
	switch id.kind {
	case idText:
		b, _ = jsontext.AppendQuote(b, id.text) // valid UTF-8, or it would not have been decoded
		return b
	case idPositive:
		return strconv.AppendUint(b, id.num, 10)
	}
	return strconv.AppendInt(b, int64(id.num), 10)
}

func (id ID) MarshalJSONTo(enc *jsontext.Encoder) error {
	switch id.kind {
	case idText:
		return enc.WriteToken(jsontext.String(id.text))
	case idPositive:
		return enc.WriteToken(jsontext.Uint(id.num))
	case idNegative:
		return enc.WriteToken(jsontext.Int(int64(id.num)))
	}
	return enc.WriteToken(jsontext.Null)
}

func (id *ID) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	v, err := dec.ReadValue()
	if err != nil {
		return err
	}
	switch v.Kind() {
	case '"':
		var s string
		if err := json.Unmarshal(v, &s); err != nil {
			return err
		}
		return id.setText(s)
	case '0':
		if id.setNumber(string(v)) {
			return nil
		}
	}
	return errID
}

// appendCBOR appends an id.
func (id ID) appendCBOR(b []byte) []byte {
	switch id.kind {
	case idText:
		return append(AppendCBORText(b, len(id.text)), id.text...)
	case idPositive:
		return appendHead(b, cborUint, id.num)
	case idNegative:
		return appendHead(b, cborNegative, ^id.num)
	}
	return append(b, cborNull)
}

func (id ID) MarshalCBOR() ([]byte, error) { return id.appendCBOR(nil), nil }

// UnmarshalCBOR decodes a well-formed item.
func (id *ID) UnmarshalCBOR(b []byte) error {
	switch kind, n, rest := cutHead(b); {
	case kind == cborUint:
		*id = NumberID(n)
		return nil
	case kind == cborNegative && n <= math.MaxInt64:
		*id = intID(-1 - int64(n))
		return nil
	case kind == cborText && utf8.Valid(rest):
		return id.setText(string(rest))
	}
	return errID
}

// setNumber sets an integer in decimals, or returns false.
func (id *ID) setNumber(text string) bool {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		*id = intID(n)
		return true
	}
	n, err := strconv.ParseUint(text, 10, 64)
	*id = NumberID(n)
	return err == nil
}

func (id *ID) setText(s string) error {
	if len(s) > maxIDLength {
		return Errorf(CodeInvalidRequest, "an id has at most %d bytes", maxIDLength)
	}
	*id = TextID(s)
	return nil
}

var errID = Errorf(CodeInvalidRequest, "an id is a text or an integer from %d to %d", int64(math.MinInt64), uint64(math.MaxUint64))

var (
	_ json.MarshalerTo     = ID{}
	_ json.UnmarshalerFrom = (*ID)(nil)
	_ cbor.Marshaler       = ID{}
	_ cbor.Unmarshaler     = (*ID)(nil)
)
