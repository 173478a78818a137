//go:build unix

package board

import "golang.org/x/sys/unix"

// mayUse checks the permission without opening: opening a serial port moves its lines.
func mayUse(path string) bool { return unix.Access(path, unix.R_OK|unix.W_OK) == nil }
