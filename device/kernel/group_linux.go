package kernel

import (
	"io/fs"
	"syscall"
)

func groupOf(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Gid)
	}
	return none
}
