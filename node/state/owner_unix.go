//go:build unix

package state

import (
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"sync"
	"syscall"
)

// noFollow makes opening a link fail.
const noFollow = syscall.O_NOFOLLOW

func isSuperuser() bool { return os.Geteuid() == 0 }

// superuser returns the owner of "/", which is not 0 where a user namespace lacks that user.
var superuser = sync.OnceValue(func() uint32 {
	info, err := os.Lstat("/")
	if err != nil {
		return 0
	}
	user, _ := Owner(info)
	return user
})

// ownerIsForeign reports whether a file belongs to somebody else than this user and the superuser.
func ownerIsForeign(info fs.FileInfo) bool {
	user, ours := Owner(info)
	return !ours && user != superuser()
}

// othersCanWrite reports whether others than the owner can write to a file or folder. The group with
// the owner's own number is the owner's private one. Sockets are for others to connect to, and
// links have no mode.
func othersCanWrite(info fs.FileInfo) bool {
	if !info.IsDir() && !info.Mode().IsRegular() {
		return false
	}
	s := info.Sys().(*syscall.Stat_t)
	return info.Mode().Perm()&0o002 != 0 || info.Mode().Perm()&0o020 != 0 && s.Gid != s.Uid
}

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
	err := os.Chown(file, uid, int(s.Gid))
	if err != nil && os.Geteuid() == 0 {
		return err
	}
	if err != nil && user {
		os.Chown(file, -1, int(s.Gid)) // a user may give a file to a group of its own
	}
	return nil
}

func sameGroup(a, b fs.FileInfo) bool {
	return a.Sys().(*syscall.Stat_t).Gid == b.Sys().(*syscall.Stat_t).Gid
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
