package devices

import (
	"os"
	"path/filepath"
	"strconv"
)

// hasOpen reports whether a process has a file open. It cannot tell of another user's process.
func hasOpen(pid int, file *os.File) bool {
	want, err := file.Stat()
	if err != nil {
		return false
	}
	folder := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	all, _ := os.ReadDir(folder)
	for _, e := range all {
		if info, err := os.Stat(filepath.Join(folder, e.Name())); err == nil && os.SameFile(info, want) {
			return true
		}
	}
	return false
}
