package state

import (
	"os"
	"time"
)

// FileVersion tells one state of a file from another, by its time and size. It compares
// with ==; the zero one is that of no file.
type FileVersion struct {
	modified time.Time
	size     int64
}

// VersionOf returns the version of a file. ok is false where the file is not there or
// cannot be looked at.
func VersionOf(file string) (v FileVersion, ok bool) {
	info, err := os.Stat(file)
	if err != nil {
		return v, false
	}
	return FileVersion{info.ModTime(), info.Size()}, true
}
