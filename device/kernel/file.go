package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"unicode"

	"agentsite/device"
	"agentsite/device/sysfs"
)

// reader is a sysfs.Reader that also parses numbers.
type reader struct{ sysfs.Reader }

// number reads a file of one number.
func (r *reader) number(path string) (float64, error) {
	b, err := r.Read(path)
	if err != nil {
		return 0, err
	}
	n, err := parseNumber(b)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return n, nil
}

// write writes a value to one of the kernel's files. A missing permission is a fault that
// says how to get it.
func write(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission):
		return device.Faultf(device.Offline, "no permission to write %s; give it to the site's user by a udev rule: %w", path, err)
	}
	return device.Faultf(device.Offline, "%s cannot be written: %w", path, err)
}

var (
	errEmpty  = errors.New("the file is empty")
	errNumber = errors.New("not a decimal number")
)

// parseNumber parses one decimal number, with space around it. It refuses exponents, NaN
// and Inf, which the kernel does not write, and numbers of more than 64 bits.
func parseNumber(b []byte) (float64, error) {
	b = bytes.TrimSpace(b)
	if len(b) == 0 {
		return 0, errEmpty
	}
	for _, c := range b {
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' {
			return 0, errNumber
		}
	}
	n, err := strconv.ParseFloat(string(b), 64)
	if err != nil || math.Abs(n) > 1<<64 {
		return 0, errNumber
	}
	return n, nil
}

// printable returns a label in at most 40 printable ASCII characters without quotes.
func printable(label string) string {
	const most = 40
	var b strings.Builder
	for _, r := range label {
		if b.Len() >= most {
			break
		}
		if r >= ' ' && r < 127 && r != '"' {
			b.WriteRune(r)
		}
	}
	return strings.TrimSpace(b.String())
}

// listed joins the first few names for a message.
func listed(names []string) string {
	const most = 8
	if len(names) == 0 {
		return "none"
	}
	for i := range names {
		names[i] = printable(names[i])
	}
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// checkFileName refuses a name that is not a single path element.
func checkFileName(key, name string) error {
	const most = 80
	if name == "" || len(name) > most || name == "." || name == ".." || strings.ContainsFunc(name, odd) {
		return device.Faultf(device.Invalid, "%s: %q is not a valid name; write it as the kernel does, without a path", key, printable(name))
	}
	return nil
}

func odd(r rune) bool { return r < ' ' || r == '/' || r == '\\' || r == unicode.ReplacementChar }
