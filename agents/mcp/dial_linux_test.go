package mcp

import (
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// TestEndUnit: Close waits a while for a child that does not end with its input. The service
// manager ends the processes that either kind of child leaves.
func TestEndUnit(t *testing.T) {
	t.Parallel()
	for _, deaf := range []bool{false, true} {
		dir := t.TempDir()
		path, end := filepath.Join(dir, "child"), filepath.Join(dir, "end")
		children, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer children.Close()
		ends, err := net.Listen("unix", end)
		if err != nil {
			t.Fatal(err)
		}
		defer ends.Close()
		u, err := dialUnit(t.Context(), "weather", path, end)
		if err != nil {
			t.Fatal(err)
		}
		child, err := children.Accept()
		if err != nil {
			t.Fatal(err)
		}
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			if conn, err := ends.Accept(); err == nil {
				child.Close()
				conn.Close()
			}
		}()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			io.Copy(io.Discard, child)
			if !deaf {
				child.Close()
			}
		}()
		begun := time.Now()
		u.Close()
		took := time.Since(begun)
		<-ended
		<-killed // fails by the test's timeout where nobody asked for it
		if deaf == (took < endTime) {
			t.Errorf("deaf %v: closed after %v", deaf, took)
		}
	}
}

// TestNoManager: without a service manager that ends children, a child's connection ends as well.
func TestNoManager(t *testing.T) {
	path := filepath.Join(t.TempDir(), "child")
	children, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer children.Close()
	u, err := dialUnit(t.Context(), "weather", path, path+".absent")
	if err != nil {
		t.Fatal(err)
	}
	child, err := children.Accept()
	if err != nil {
		t.Fatal(err)
	}
	go func() { io.Copy(io.Discard, child); child.Close() }()
	u.Close()
	if _, err := u.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is open")
	}
}
