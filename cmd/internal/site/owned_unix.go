//go:build unix

package site

import (
	"io/fs"
	"os"
	"syscall"
)

// owned says whose a file is, and whether it is ours.
func owned(info fs.FileInfo) (user uint32, ours bool) {
	s := info.Sys().(*syscall.Stat_t)
	return s.Uid, int(s.Uid) == os.Geteuid()
}
