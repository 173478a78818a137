package stdio

import (
	"fmt"
	"net"
	"os"
	"os/user"
	"slices"
	"strconv"
	"syscall"
)

// checkPeer asks the system who is at the other end of a Unix socket (unix(7),
// SO_PEERCRED), and refuses who is neither root, nor our own user, nor in our
// group: the file's permissions say so too, but may have been changed.
func checkPeer(conn net.Conn) error {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return err
	}
	var cred *syscall.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err != nil || credErr != nil {
		return fmt.Errorf("no peer credentials: %w", credErr)
	}
	if uid := int(cred.Uid); uid == 0 || uid == os.Geteuid() || int(cred.Gid) == os.Getegid() || member(uid, os.Getegid()) {
		return nil
	}
	return fmt.Errorf("user %d is not in group %d", cred.Uid, os.Getegid())
}

// member reports whether a user is in a group by /etc/group.
func member(uid, gid int) bool {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return false
	}
	groups, err := u.GroupIds()
	return err == nil && slices.Contains(groups, strconv.Itoa(gid))
}
