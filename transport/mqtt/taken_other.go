//go:build !linux

package mqtt

import "syscall"

// limitUntaken does nothing: a write fails later, when the buffers are full.
func limitUntaken(string, string, syscall.RawConn) error { return nil }
