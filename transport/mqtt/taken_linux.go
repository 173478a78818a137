package mqtt

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// limitUntaken sets TCP_USER_TIMEOUT, so that a connection ends to a broker that takes nothing for writeTimeout, also
// while what is told still fits into the buffers of this machine (tcp(7)).
func limitUntaken(_, _ string, c syscall.RawConn) error {
	var err error
	failed := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(writeTimeout.Milliseconds()))
	})
	if failed != nil {
		return failed
	}
	return err
}
