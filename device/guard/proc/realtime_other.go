//go:build !linux

package proc

import "errors"

// StartRealtime runs start.
func StartRealtime(start func() error) error { return start() }

// Realtime says that this process is like any other.
func Realtime() error { return errors.New("no real-time priority on this system") }
