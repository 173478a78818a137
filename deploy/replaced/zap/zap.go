// Package zap stands in for the parts of go.uber.org/zap that kad-dht and fx name. kad-dht uses it
// for debugging messages, which are dropped; tests link fx. See the README one folder up.
package zap

import (
	"time"

	"go.uber.org/zap/zapcore"
)

type (
	Logger struct{}
	Field  struct{}
	// CheckedEntry is never made.
	CheckedEntry struct{}
)

// DebugLevel is that of zapcore.
const DebugLevel = zapcore.DebugLevel

// Check returns nil: nothing is to be written.
func (*Logger) Check(zapcore.Level, string) *CheckedEntry { return nil }

func (*Logger) Log(zapcore.Level, string, ...Field) {}

func (*CheckedEntry) Write(...Field) {}

func Bool(string, bool) Field              { return Field{} }
func Strings(string, []string) Field       { return Field{} }
func Skip() Field                          { return Field{} }
func Binary(string, []byte) Field          { return Field{} }
func Duration(string, time.Duration) Field { return Field{} }
func Error(error) Field                    { return Field{} }
func Int32(string, int32) Field            { return Field{} }
func String(string, string) Field          { return Field{} }
