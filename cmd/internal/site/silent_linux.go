package site

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// silentFor has what is said on a connection fail that nobody has acknowledged for so
// many milliseconds: the site has lost its power, or has another address by now. However
// busy a site is, its kernel acknowledges (tcp(7), TCP_USER_TIMEOUT).
const silentFor = 2000

func giveUpOnSilence(_, _ string, c syscall.RawConn) error {
	var err error
	wrong := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, silentFor)
	})
	if wrong != nil {
		return wrong
	}
	return err
}
