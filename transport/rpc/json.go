package rpc

import (
	"bytes"
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// JSON is RFC 8259, as MCP speaks it.
var JSON Codec = jsonCodec{}

type jsonCodec struct{}

// We write no duplicate names: not checking for them saves a fifth.
var jsonEncode = json.JoinOptions(jsontext.AllowDuplicateNames(true), json.Deterministic(true))

var jsonStrict = json.RejectUnknownMembers(true)

func (jsonCodec) ContentType() string { return "application/json" }

func (jsonCodec) Encode(w *bytes.Buffer, v any) error { return json.MarshalWrite(w, v, jsonEncode) }

func (jsonCodec) Decode(b []byte, v any) error {
	if m, ok := v.(*message); ok && m.walk(Raw{JSON, b}) {
		return nil
	}
	return decodeJSON(b, v)
}

func (jsonCodec) DecodeStrict(b []byte, v any) error { return decodeJSON(b, v, jsonStrict) }

func decodeJSON(b []byte, v any, opts ...json.Options) error {
	err := json.Unmarshal(b, v, opts...)
	if err == nil {
		err = checkNulls(b, v)
	}
	if err != nil {
		return jsonError(err)
	}
	return nil
}

// decodeJSONRequest decodes a message of a client.
func decodeJSONRequest(b []byte, m *message) error {
	if m.walk(Raw{JSON, b}) {
		return nil
	}
	if err := checkJSONBounds(b); err != nil {
		return err
	}
	if first := bytes.TrimLeft(b, " \t\r\n"); len(first) > 0 && first[0] == '[' {
		return Errorf(CodeInvalidRequest, "batches are not served: send one message at a time")
	}
	return decodeJSON(b, m)
}

// checkJSONBounds refuses a text that nests too deep or holds too many values, before it is
// decoded. It only counts brackets and commas.
func checkJSONBounds(b []byte) error {
	depth, values := 0, 1
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			if depth++; depth > maxDepth {
				return Errorf(CodeInvalidRequest, "the message nests deeper than %d", maxDepth)
			}
		case ']', '}':
			depth--
		case ',':
			if values++; values > maxValues {
				return Errorf(CodeInvalidRequest, "the message holds more than %d values", maxValues)
			}
		}
	}
	return nil
}

// FieldError says which field of a message is wrong, and how.
type FieldError struct {
	Field string // dotted path; "" for the whole message
	Msg   string
}

func (e *FieldError) Error() string {
	if e.Field == "" {
		return e.Msg
	}
	return e.Field + ": " + e.Msg
}

// jsonError rewords the library's errors.
func jsonError(err error) error {
	var ours *Error
	var semantic *json.SemanticError
	var null *nullError
	switch {
	case errors.As(err, &ours):
		return ours
	case errors.Is(err, jsontext.ErrDuplicateName):
		return &FieldError{Msg: "a name stands twice in one object"}
	case errors.Is(err, json.ErrUnknownName) && errors.As(err, &semantic):
		return &FieldError{Field: fieldPath(semantic.JSONPointer), Msg: "there is no such field"}
	case errors.As(err, &null) && errors.As(err, &semantic):
		return &FieldError{Field: fieldPath(semantic.JSONPointer), Msg: null.Error()}
	case errors.As(err, &semantic):
		msg := "wrong type"
		if semantic.GoType != nil {
			msg = "must be " + typeName(semantic.GoType)
		}
		return &FieldError{Field: fieldPath(semantic.JSONPointer), Msg: msg}
	}
	return &FieldError{Msg: "not valid JSON: " + strings.TrimPrefix(err.Error(), "jsontext: ")}
}

func fieldPath(p jsontext.Pointer) string {
	return strings.ReplaceAll(strings.TrimPrefix(string(p), "/"), "/", ".")
}
