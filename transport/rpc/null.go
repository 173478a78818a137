package rpc

import (
	"bytes"
	"errors"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// refuseNulls refuses null for an optional number, bool or text: it would be taken for an
// absent one, which may mean something else.
var refuseNulls = json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, v any) error {
	if t := reflect.TypeOf(v).Elem(); dec.PeekKind() == 'n' && isOptional(t) {
		return &nullError{t}
	}
	return errors.ErrUnsupported
}))

// nullError is a null in place of a value.
type nullError struct{ instead reflect.Type }

func (e *nullError) Error() string {
	return "must be " + typeName(e.instead) + ", and not null"
}

// isOptional reports whether t is a pointer to a number, a bool or a text.
func isOptional(t reflect.Type) bool {
	if t.Kind() != reflect.Pointer {
		return false
	}
	k := t.Elem().Kind()
	return k == reflect.String || reflect.Bool <= k && k <= reflect.Float64
}

// checkNulls refuses nulls in JSON that was decoded into v.
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
