// Package zapcore stands in for the part of go.uber.org/zap/zapcore that fx names, which tests
// link and the program does not.
package zapcore

// Level is how much a message matters.
type Level int8

// Levels, as the upstream numbers them.
const (
	DebugLevel Level = iota - 1
	InfoLevel
	WarnLevel
	ErrorLevel
)
