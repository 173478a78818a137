package identity

import (
	"bytes"
	"errors"

	"github.com/fxamacker/cbor/v2"
)

// Codec is how what is signed is written: RFC 8949's core deterministic encoding, of which
// every value has one form. It is safe for concurrent use.
type Codec struct {
	encoding cbor.EncMode
	decoding cbor.DecMode
}

// NewCodec is a form whose values nest at most so deep.
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
		panic(err) // the options are constant: this is a build that cannot work
	}
	return v
}

// Encode writes v.
func (f Codec) Encode(v any) ([]byte, error) { return f.encoding.Marshal(v) }

// Decode fills v from b, which has to be the one way to write it, without anything that v
// has no field for.
func (f Codec) Decode(b []byte, v any) error {
	if err := f.decoding.Unmarshal(b, v); err != nil {
		return err
	}
	if again, err := f.Encode(v); err != nil || !bytes.Equal(again, b) {
		return errors.New("it is written in another form than it has to be")
	}
	return nil
}
