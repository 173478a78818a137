package stdio

import (
	"os/user"
	"slices"
	"strconv"
	"syscall"
)

// credentials returns the user and the group membership of the peer of a Unix socket.
func credentials(fd int) (uid int, in func(gid int) bool, err error) {
	cred, err := syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil {
		return 0, nil, err
	}
	return int(cred.Uid), func(gid int) bool { return int(cred.Gid) == gid || member(int(cred.Uid), gid) }, nil
}

// member reports whether a user is in a group, by /etc/group.
func member(uid, gid int) bool {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return false
	}
	groups, err := u.GroupIds()
	return err == nil && slices.Contains(groups, strconv.Itoa(gid))
}
