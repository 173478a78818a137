// Package attribute stands in for go.opentelemetry.io/otel/attribute. Attributes are empty.
package attribute

import "fmt"

type (
	// Key names an attribute.
	Key string
	// KeyValue is an attribute.
	KeyValue struct{}
	// Set is several.
	Set struct{}
)

func (Key) String(string) KeyValue           { return KeyValue{} }
func String(string, string) KeyValue         { return KeyValue{} }
func Stringer(string, fmt.Stringer) KeyValue { return KeyValue{} }
func StringSlice(string, []string) KeyValue  { return KeyValue{} }
func Bool(string, bool) KeyValue             { return KeyValue{} }
func Int(string, int) KeyValue               { return KeyValue{} }
func Int64(string, int64) KeyValue           { return KeyValue{} }
func NewSet(...KeyValue) Set                 { return Set{} }
