//go:build unix

package site

import (
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// owned says whose a file is, and whether it is ours.
func owned(info fs.FileInfo) (user uint32, ours bool) {
	s := info.Sys().(*syscall.Stat_t)
	return s.Uid, int(s.Uid) == os.Geteuid()
}

// giveTo gives a file the owner and the group of another one, as far as we may.
func giveTo(file string, like fs.FileInfo, user bool) error {
	s, uid := like.Sys().(*syscall.Stat_t), -1
	if user {
		uid = int(s.Uid)
	}
	if err := os.Chown(file, uid, int(s.Gid)); err != nil && os.Geteuid() == 0 {
		return err
	}
	return nil
}

// groupOf is the name of a file's group, "" where it is not known.
func groupOf(file string) string {
	info, err := os.Stat(file)
	if err != nil {
		return ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	g, err := user.LookupGroupId(strconv.FormatUint(uint64(stat.Gid), 10))
	if err != nil {
		return ""
	}
	return g.Name
}
