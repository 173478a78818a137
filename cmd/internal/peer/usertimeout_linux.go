package peer

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// userTimeout is in milliseconds. A site that has lost its power or its address acknowledges
// nothing; the kernel of a busy one does (tcp(7), TCP_USER_TIMEOUT).
const userTimeout = 2000

// setUserTimeout sets TCP_USER_TIMEOUT, so that a write to a vanished site fails.
func setUserTimeout(_, _ string, c syscall.RawConn) error {
	var err error
	wrong := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, userTimeout)
	})
	if wrong != nil {
		return wrong
	}
	return err
}
