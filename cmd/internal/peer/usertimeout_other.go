//go:build !linux

package peer

import "syscall"

// setUserTimeout does nothing: keep-alives find a vanished site, later.
func setUserTimeout(string, string, syscall.RawConn) error { return nil }
