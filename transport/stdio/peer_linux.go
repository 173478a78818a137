package stdio

import (
	"fmt"
	"net"
	"syscall"
)

// peerUID is the user at the other end of a Unix socket (unix(7), SO_PEERCRED).
func peerUID(conn net.Conn) (int, error) {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *syscall.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err != nil || credErr != nil {
		return 0, fmt.Errorf("no peer credentials: %w", credErr)
	}
	return int(cred.Uid), nil
}
