package config

import (
	"errors"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"unicode"

	"agentsite/device/driver"
)

var fileType = reflect.TypeFor[driver.File]()

// file is a file that a device's driver reads.
type file struct {
	at   pos
	name driver.File
}

// file decodes the name of a file. A relative one is beside the configuration. The node gets the absolute path, so
// that the plan of the guard's process has it, and the digest of its content.
func (d decoder) file(path string, n *node, v reflect.Value) {
	if !d.scalar(path, n, "the name of a file") {
		return
	}
	name := n.text
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		d.fail(n.at, "%s takes the name of a file, such as kitchen.key, not %q", path, clip(name))
		return
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(d.src.name), name)
	}
	name, err := filepath.Abs(name)
	if err != nil {
		d.fail(n.at, "%s: %w", path, err)
		return
	}
	v.SetString(name)
	if d.files != nil {
		n.text, n.digest = name, driver.File(name).Digest()
		*d.files = append(*d.files, file{n.at, driver.File(name)})
	}
}

// FileDoubts returns why files of the device cannot be read, each with its line. A file that only another user can read
// is no doubt: the site may run as that user.
func (d Device) FileDoubts() (doubts []error) {
	for _, f := range d.files {
		if err := f.name.Check(); err != nil && !errors.Is(err, fs.ErrPermission) {
			doubts = append(doubts, d.src.errorf(f.at, "%s: %w", d.Name, err))
		}
	}
	return doubts
}

// FilesElsewhere returns the mistakes of a device whose driver reads a file that is not beside the configuration, or
// that is hidden: it is not made for the site, and its content may be sent to the device.
func (d Device) FilesElsewhere() (mistakes []error) {
	folder, err := filepath.Abs(filepath.Dir(d.src.name))
	for _, f := range d.files {
		if of, name := filepath.Split(string(f.name)); err != nil || filepath.Clean(of) != folder || strings.HasPrefix(name, ".") {
			mistakes = append(mistakes, d.src.errorf(f.at, "%s: %s is not a file beside the configuration: name one there, "+
				"or write this to the configuration on the site's machine, and run agentsite reload there", d.Name, f.name))
		}
	}
	return mistakes
}
