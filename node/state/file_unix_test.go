//go:build unix

package state

import (
	"path/filepath"
	"syscall"
	"testing"
)

// TestReadUntrustedPipe: a pipe that somebody put there does not block the reader.
func TestReadUntrustedPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadUntrusted(pipe, 100); err == nil {
		t.Error("it is read")
	}
}
