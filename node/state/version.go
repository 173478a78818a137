package state

import (
	"os"
	"time"
)

// FileVersion identifies a version of a file by its time and size. It compares with ==; no file
// has the zero one.
type FileVersion struct {
	modified time.Time
	size     int64
}

// VersionOf returns the version of a file. ok is false for a file that does not exist or
// is not accessible.
func VersionOf(file string) (v FileVersion, ok bool) {
	info, err := os.Stat(file)
	if err != nil {
		return v, false
	}
	return FileVersion{info.ModTime(), info.Size()}, true
}
