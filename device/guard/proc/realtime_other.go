//go:build !linux

package proc

import "errors"

// Realtime has the kernel run this process before all that is not urgent, where it
// can do that.
func Realtime() error { return errors.New("no real-time priority on this system") }
