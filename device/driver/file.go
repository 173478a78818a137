package driver

import (
	"os"
	"strings"
)

// File is the YAML of a file's path: absolute, or beside the configuration.
type File string

// Secret returns the content of the file, a key or a password, without the line break at its end.
func (f File) Secret() (string, error) {
	text, err := os.ReadFile(string(f))
	return strings.TrimRight(string(text), "\r\n"), err
}
