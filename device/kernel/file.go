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

// reader is a sysfs.Reader of the kernel's numbers.
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

// write gives the kernel a value. Where the kernel refuses for want of a right,
// the fault says so.
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
		return device.Faultf(device.Offline, "%s may not be written; give its group to the node's user, by a udev rule: %w", path, err)
	}
	return device.Faultf(device.Offline, "%s cannot be written: %w", path, err)
}

var (
	errEmpty  = errors.New("the kernel gave no value")
	errNumber = errors.New("not a number as the kernel writes them")
)

// parseNumber reads one decimal number and rejects anything around it but space.
// The kernel counts in 64 bits and knows no exponents, NaNs or infinities.
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

// printable is a label of the kernel's or of a chip's, fit for people and models.
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

// listed writes names for a message, a few of them.
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

// plain refuses a name that could not be the name of one of the kernel's things,
// or that would lead out of its folder.
func plain(key, name string) error {
	const most = 80
	if name == "" || len(name) > most || name == "." || name == ".." || strings.ContainsFunc(name, odd) {
		return device.Faultf(device.Invalid, "%s: %q is not the name of such a thing; write it as the kernel does, without a path", key, printable(name))
	}
	return nil
}

func odd(r rune) bool { return r < ' ' || r == '/' || r == '\\' || r == unicode.ReplacementChar }
