// Package log stands in for the part of github.com/ipfs/go-log/v2 that kad-dht and kbucket
// name. As there, errors alone are shown unless somebody asks for more, which nobody does
// here; they go to log/slog with the library's name. See the README one folder up.
package log

import (
	"fmt"
	"log/slog"

	"go.uber.org/zap"
)

// ZapEventLogger logs for a part of a library. It is safe for concurrent use.
type ZapEventLogger struct{ system string }

// StandardLogger is the type of logger that the libraries use.
type StandardLogger = *ZapEventLogger

// Logger returns the logger of a part.
func Logger(system string) *ZapEventLogger { return &ZapEventLogger{system} }

func (l *ZapEventLogger) Debug(...any)                 {}
func (l *ZapEventLogger) Debugf(string, ...any)        {}
func (l *ZapEventLogger) Debugw(string, ...any)        {}
func (l *ZapEventLogger) Debugln(...any)               {}
func (l *ZapEventLogger) Info(...any)                  {}
func (l *ZapEventLogger) Infof(string, ...any)         {}
func (l *ZapEventLogger) Infow(string, ...any)         {}
func (l *ZapEventLogger) Warn(...any)                  {}
func (l *ZapEventLogger) Warnf(string, ...any)         {}
func (l *ZapEventLogger) Warnw(string, ...any)         {}
func (l *ZapEventLogger) Error(args ...any)            { l.Errorw(fmt.Sprint(args...)) }
func (l *ZapEventLogger) Errorf(f string, args ...any) { l.Errorw(fmt.Sprintf(f, args...)) }

// Errorw logs a message with pairs of a key and a value.
func (l *ZapEventLogger) Errorw(msg string, pairs ...any) {
	slog.With("library", l.system).Error(msg, pairs...)
}

// Desugar returns a logger that shows nothing.
func (l *ZapEventLogger) Desugar() *zap.Logger { return nil }
