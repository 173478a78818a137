//go:build unix

package state

import (
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// Owner returns the user that a file belongs to, and whether that is this process's.
func Owner(info fs.FileInfo) (user uint32, ours bool) {
	s := info.Sys().(*syscall.Stat_t)
	return s.Uid, int(s.Uid) == os.Geteuid()
}

// CopyOwner gives a file the group, and with user also the owner, of the file that like
// describes. It fails only for the superuser: others may not be allowed to.
func CopyOwner(file string, like fs.FileInfo, user bool) error {
	s, uid := like.Sys().(*syscall.Stat_t), -1
	if user {
		uid = int(s.Uid)
	}
	if err := os.Chown(file, uid, int(s.Gid)); err != nil && os.Geteuid() == 0 {
		return err
	}
	return nil
}

// Group returns the name of a file's group, "" where it is not known.
func Group(file string) string {
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
