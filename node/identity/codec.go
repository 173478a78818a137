package identity

import (
	"bytes"
	"errors"

	"github.com/fxamacker/cbor/v2"
)

// Codec encodes values in RFC 8949's core deterministic encoding, in which every value has one
// form, so that it can be signed. It is safe for concurrent use.
type Codec struct {
	encoding cbor.EncMode
	decoding cbor.DecMode
}

// NewCodec returns a codec for values that nest at most depth levels.
func NewCodec(depth int) Codec {
	to := cbor.CoreDetEncOptions()
	to.TagsMd = cbor.TagsForbidden
	return Codec{must(to.EncMode()), must(cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField, UTF8: cbor.UTF8RejectInvalid, MaxNestedLevels: depth,
		NaN: cbor.NaNDecodeForbidden, Inf: cbor.InfDecodeForbidden,
	}.DecMode())}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // the options are constant: a defect of the build
	}
	return v
}

// Encode returns the encoding of v.
func (c Codec) Encode(v any) ([]byte, error) { return c.encoding.Marshal(v) }

// Decode decodes b into v. It refuses all but the deterministic encoding, and fields that v
// does not have.
func (c Codec) Decode(b []byte, v any) error {
	if err := c.DecodeAny(b, v); err != nil {
		return err
	}
	if again, err := c.Encode(v); err != nil || !bytes.Equal(again, b) {
		return errors.New("it is not in the deterministic encoding")
	}
	return nil
}

// DecodeAny is Decode that accepts every encoding of a value, for input whose bytes the caller
// has authenticated.
func (c Codec) DecodeAny(b []byte, v any) error { return c.decoding.Unmarshal(b, v) }
