package rpc

import (
	"bytes"
	"errors"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// refuseNulls refuses null for an optional number, bool or text: it would pass for one that
// was left out, and what is done then may be something else than its sender meant.
var refuseNulls = json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, v any) error {
	if t := reflect.TypeOf(v).Elem(); dec.PeekKind() == 'n' && isOptional(t) {
		return &nullError{t}
	}
	return errors.ErrUnsupported
}))

// nullError is a null where a value of a type belongs.
type nullError struct{ instead reflect.Type }

func (e *nullError) Error() string {
	return "must be " + typeName(e.instead) + ", and not null"
}

// isOptional tells a pointer to a number, a bool or a text.
func isOptional(t reflect.Type) bool {
	if t.Kind() != reflect.Pointer {
		return false
	}
	k := t.Elem().Kind()
	return k == reflect.String || reflect.Bool <= k && k <= reflect.Float64
}

// checkNulls looks for nulls in JSON that fits v, where there may be any.
func checkNulls(text []byte, v any) error {
	if !bytes.Contains(text, []byte("null")) {
		return nil
	}
	return json.Unmarshal(text, reflect.New(reflect.TypeOf(v).Elem()).Interface(), refuseNulls)
}

// checkNullsCBOR is checkNulls for CBOR.
func checkNullsCBOR(b []byte, v any) error {
	if bytes.IndexByte(b, cborNull) < 0 {
		return nil
	}
	text, err := toJSON(b)
	if err == nil {
		err = checkNulls(text, v)
	}
	return err
}
