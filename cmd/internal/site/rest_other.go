//go:build !linux

package site

import "runtime/debug"

// rest gives back what only the start needed.
func rest() { debug.FreeOSMemory() }
