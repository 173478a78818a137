package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"agentsite/device"
)

// maxFile bounds a file of the kernel's; /proc/stat of a large server has 100 kB.
const maxFile = 1 << 20

// buffer is reused from file to file, so that a sample allocates next to nothing.
type buffer struct{ b []byte }

// read returns the file's content, which is valid until the next read. The
// kernel's files have no size beforehand.
func (buf *buffer) read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if buf.b == nil {
		buf.b = make([]byte, 4096)
	}
	n := 0
	for {
		m, err := f.Read(buf.b[n:])
		n += m
		switch {
		case err == io.EOF:
			return buf.b[:n], nil
		case err != nil:
			return nil, err
		case n == maxFile:
			return nil, fmt.Errorf("%s has more than %d bytes", path, maxFile)
		case n == len(buf.b):
			buf.b = append(buf.b, make([]byte, len(buf.b))...)
		}
	}
}

// file makes a source of one file, or none when the machine has no such file. One
// that is there and cannot be read today stays a source: it may recover.
func file(path string, parse func(b []byte, values []float64) error, points ...device.Point) []source {
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	read := func(buf *buffer, values []float64) error {
		b, err := buf.read(path)
		if err != nil {
			return err
		}
		if err := parse(b, values); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	}
	return []source{{points: points, read: read}}
}

// glob returns the paths under root that match, in a constant order.
func glob(root, pattern string) []string {
	paths, _ := filepath.Glob(filepath.Join(root, pattern)) // fails for a bad pattern only
	return paths
}

// label returns what a file of one word says, or "".
func label(path string) string {
	var buf buffer
	b, err := buf.read(path)
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(b))
}

// errFormat is a file that a kernel wrote differently.
var errFormat = errors.New("not in the form that it has on Linux")
