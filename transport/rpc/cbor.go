package rpc

import (
	"bytes"
	"errors"
	"io"
	"reflect"

	"github.com/fxamacker/cbor/v2"
)

// CBOR is RFC 8949 in its core deterministic encoding: definite lengths, sorted text keys, no
// tags, shortest numbers. It is a private encoding of the same messages, not MCP.
var CBOR Codec = cborCodec{}

type cborCodec struct{}

var (
	cborEnc = must(cborEncOptions().UserBufferEncMode())
	cborDec = must(cborDecOptions().DecMode())
	// cborStrictDec also refuses unknown fields.
	cborStrictDec = must(func() cbor.DecOptions {
		o := cborDecOptions()
		o.ExtraReturnErrors = cbor.ExtraDecErrorUnknownField
		return o
	}().DecMode())
)

func cborEncOptions() cbor.EncOptions {
	o := cbor.CoreDetEncOptions()
	o.NaNConvert, o.InfConvert = cbor.NaNConvertReject, cbor.InfConvertReject
	o.NilContainers = cbor.NilContainerAsEmpty // as the JSON codec writes them
	o.TagsMd = cbor.TagsForbidden
	o.Time = cbor.TimeRFC3339Nano // as the JSON codec writes it
	o.JSONMarshalerTranscoder = jsonToCBOR{}
	return o
}

func cborDecOptions() cbor.DecOptions {
	return cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		MaxNestedLevels:   maxDepth,
		MaxArrayElements:  maxValues,
		MaxMapPairs:       maxValues,
		UTF8:              cbor.UTF8RejectInvalid,
		FieldNameMatching: cbor.FieldNameMatchingCaseSensitive,
		DefaultMapType:    reflect.TypeFor[map[string]any](),
		NaN:               cbor.NaNDecodeForbidden,
		Inf:               cbor.InfDecodeForbidden,

		JSONUnmarshalerTranscoder: cborToJSON{},
	}
}

// jsonToCBOR and cborToJSON transcode the values in structs that are kept as JSON text, such as
// a jsontext.Value, as they transcode a Raw.
type (
	jsonToCBOR struct{}
	cborToJSON struct{}
)

func (jsonToCBOR) Transcode(to io.Writer, from io.Reader) error { return transcode(to, from, toCBOR) }
func (cborToJSON) Transcode(to io.Writer, from io.Reader) error { return transcode(to, from, toJSON) }

func transcode(to io.Writer, from io.Reader, how func([]byte) ([]byte, error)) error {
	b, err := io.ReadAll(from)
	if err == nil {
		b, err = how(b)
	}
	if err == nil {
		_, err = to.Write(b)
	}
	return err
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // the options above are constant: this is a build that cannot work
	}
	return v
}

func (cborCodec) ContentType() string { return "application/cbor" }

func (cborCodec) Encode(w *bytes.Buffer, v any) error { return cborEnc.MarshalToBuffer(v, w) }

func (cborCodec) Decode(b []byte, v any) error {
	if m, ok := v.(*message); ok { // its parts are decoded later, and are checked here
		err := cborDec.Wellformed(b)
		if err == nil {
			if m.walk(Raw{CBOR, b}) {
				return nil
			}
			err = checkCBOR(b)
		}
		if err != nil {
			return cborError(b, v, err)
		}
	}
	return decodeCBOR(cborDec, b, v)
}

func (cborCodec) DecodeStrict(b []byte, v any) error { return decodeCBOR(cborStrictDec, b, v) }

func decodeCBOR(mode cbor.DecMode, b []byte, v any) error {
	if err := mode.Unmarshal(b, v); err != nil {
		return cborError(b, v, err)
	}
	if err := checkNullsCBOR(b, v); err != nil {
		return jsonError(err)
	}
	return nil
}

// cborError names the wrong field. The library often cannot, so the bytes are transcoded to
// JSON and decoded again for its errors.
func cborError(b []byte, v any, err error) error {
	var ours *Error
	var strict *FieldError
	switch {
	case errors.As(err, &ours):
		return ours
	case errors.As(err, &strict):
		return strict
	}
	var unknown *cbor.UnknownFieldError
	var mistyped *cbor.UnmarshalTypeError
	if errors.As(err, &unknown) || errors.As(err, &mistyped) {
		if text, terr := toJSON(b); terr == nil {
			again := reflect.New(reflect.TypeOf(v).Elem()).Interface()
			if jerr := JSON.DecodeStrict(text, again); jerr != nil {
				return jerr
			}
		}
	}
	return &FieldError{Msg: "not valid here: " + err.Error()}
}
