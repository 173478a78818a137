//go:build !linux

// Package alarm waits with a timer of the kernel, on Linux alone.
package alarm

import (
	"context"
	"time"
)

// New returns nil: the system has no such timer.
func New(context.Context) func(context.Context, time.Duration) { return nil }
