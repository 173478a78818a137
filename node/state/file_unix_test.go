//go:build unix

package state

import (
	"os"
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

// TestWriteLike: a file keeps its mode and, for the superuser, its owner and group, and the one that a user
// calls so with .new stays.
func TestWriteLike(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a")
	for name, text := range map[string]string{file: "old", file + ".new": "draft"} {
		if err := os.WriteFile(name, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(file, 12345, 23456); err != nil {
			t.Fatal(err)
		}
	}
	was, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteLike(file, []byte("new"), was); err != nil {
		t.Fatal(err)
	}
	is, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	user, _ := Owner(is)
	if like, _ := Owner(was); user != like || !sameGroup(is, was) || is.Mode() != was.Mode() {
		t.Errorf("%v, was %v", is, was)
	}
	for name, want := range map[string]string{file: "new", file + ".new": "draft"} {
		if text, err := os.ReadFile(name); err != nil || string(text) != want {
			t.Errorf("%s %v", text, err)
		}
	}
	if all, err := os.ReadDir(filepath.Dir(file)); err != nil || len(all) != 2 {
		t.Errorf("%v %v", all, err)
	}
}
