package stdio

import (
	"slices"

	"golang.org/x/sys/unix"
)

// credentials returns the user and the group membership of the peer of a Unix socket.
func credentials(fd int) (uid int, in func(gid int) bool, err error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, nil, err
	}
	groups := cred.Groups[:max(0, min(int(cred.Ngroups), len(cred.Groups)))]
	return int(cred.Uid), func(gid int) bool { return slices.Contains(groups, uint32(gid)) }, nil
}
