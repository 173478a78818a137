//go:build unix

package driver

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestAuthoritiesOfAPipe: a file that would be waited for is refused, because the guard's process reads it.
func TestAuthoritiesOfAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "ca.pem")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := File(pipe).Authorities()
		failed <- err
	}()
	select {
	case err := <-failed:
		if err == nil {
			t.Error("a pipe has certificates")
		}
	case <-time.After(5 * time.Second):
		t.Fatal("it waits for the pipe")
	}
}
