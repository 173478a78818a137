// Package sysfs reads the small files below /sys, /proc and /dev in which Linux shows its
// devices.
package sysfs

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Root is the folder that has sys, proc and dev in it, such as a test's. The zero Root is
// the machine's.
type Root string

// Path joins path elements below the root.
func (r Root) Path(path ...string) string {
	return filepath.Join(cmp.Or(string(r), "/"), filepath.Join(path...))
}

// Glob returns the paths below the root that match, in a constant order.
func (r Root) Glob(pattern string) []string {
	paths, _ := filepath.Glob(r.Path(pattern)) // fails for a bad pattern only
	return paths
}

// Exists reports whether there is something at a path below the root.
func (r Root) Exists(path ...string) bool {
	_, err := os.Stat(r.Path(path...))
	return err == nil
}

// Text returns the text of a file below the root; see Reader.Text.
func (r Root) Text(path ...string) string { return Text(r.Path(path...)) }

// Text returns the text of a file; see Reader.Text.
func Text(path string) string {
	var r Reader
	return r.Text(path)
}

// maxFile bounds a file; /proc/stat of a large server has 100 kB.
const maxFile = 1 << 20

// Reader reuses its buffer from file to file, so that a sample allocates next to nothing.
// It is not safe for concurrent use.
type Reader struct{ b []byte }

// Read returns the content of a file, which is valid until the next call. The kernel's
// files have no size beforehand.
func (r *Reader) Read(path string) ([]byte, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if r.b == nil {
		r.b = make([]byte, 4096)
	}
	n := 0
	for {
		m, err := f.Read(r.b[n:])
		n += m
		switch {
		case err == io.EOF:
			return r.b[:n], nil
		case err != nil:
			return nil, err
		case n == maxFile:
			return nil, fmt.Errorf("%s has more than %d bytes", path, maxFile)
		case n == len(r.b):
			r.b = append(r.b, make([]byte, len(r.b))...)
		}
	}
}

// open is os.Open without the runtime's poller. The kernel's files are always ready, so that
// the poller would wake another thread for each of them.
func open(path string) (*os.File, error) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Text returns the text of a file without the space and the zeros around it, or "" where
// the file cannot be read.
func (r *Reader) Text(path string) string {
	b, err := r.Read(path)
	if err != nil {
		return ""
	}
	return strings.Trim(strings.ToValidUTF8(string(b), ""), "\x00 \t\r\n")
}
