//go:build unix

package update

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestPipe: the folder's user replaces a file by a pipe, at any moment, and nothing blocks on it.
func TestPipe(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := syscall.Mkfifo(path("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFile(root, "pipe"); err == nil {
		t.Error("it is opened")
	}
	if err := os.WriteFile(path("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var swapping sync.WaitGroup
	defer swapping.Wait()
	stop := make(chan struct{})
	defer close(stop)
	swapping.Go(func() {
		for {
			for _, name := range []string{"file", "pipe"} {
				os.Remove(path("new"))
				os.Link(path(name), path("new"))
				os.Rename(path("new"), path("next"))
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range 5000 {
			if f, err := OpenFile(root, "next"); err == nil {
				f.Close()
			}
		}
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		if w, err := os.OpenFile(path("pipe"), os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			w.Close()
		}
		t.Fatal("somebody waits for the pipe")
	}
}
