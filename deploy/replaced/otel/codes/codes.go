// Package codes stands in for go.opentelemetry.io/otel/codes.
package codes

// Code is how a span ended.
type Code uint32

const (
	Unset Code = iota
	Error
	Ok
)
