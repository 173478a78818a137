//go:build !linux

package proc

import "errors"

// StartRealtime runs start.
func StartRealtime(start func() error) error { return start() }

// Realtime returns an error: there is no real-time priority on this system.
func Realtime() error { return errors.New("no real-time priority on this system") }
