//go:build linux || darwin

package stdio

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"strconv"
	"sync"
)

// checkPeer refuses the peer of a Unix socket unless it is root, this process's user or, with
// ownGroup, in its group. The file's permissions should say the same, but may have been
// changed.
func checkPeer(conn net.Conn) error {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return err
	}
	var uid int
	var in func(gid int) bool
	var credErr error
	if err := errors.Join(raw.Control(func(fd uintptr) { uid, in, credErr = credentials(int(fd)) }), credErr); err != nil {
		return fmt.Errorf("no peer credentials: %w", err)
	}
	if uid == 0 || uid == os.Geteuid() || ownGroup() && in(os.Getegid()) {
		return nil
	}
	return fmt.Errorf("user %d is not ours, and not in a group that is", uid)
}

// mode returns a socket's permissions: its group can open it if ownGroup is true.
func mode() fs.FileMode {
	if ownGroup() {
		return 0o660
	}
	return 0o600
}

// ownGroup reports whether our group is the user's own group, of which only an administrator can
// add members: it has the user's number or name. Many users share a group such as staff, in which
// all of macOS are, and are not to share a site by that.
var ownGroup = sync.OnceValue(func() bool {
	uid, gid := os.Geteuid(), os.Getegid()
	if uid == gid {
		return true
	}
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return false
	}
	g, err := user.LookupGroupId(strconv.Itoa(gid))
	return err == nil && u.Username == g.Name
})
