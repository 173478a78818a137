//go:build unix

package site

import (
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
)

// apart keeps a terminal's Ctrl-C from the guard: it ends with the site, in order.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// connect makes one end of a pair of sockets the command's input and output, and
// returns the other.
func connect(cmd *exec.Cmd) (io.ReadWriteCloser, error) {
	syscall.ForkLock.RLock() // no other child may inherit them before they are closed on exec
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(ends[0])
		syscall.CloseOnExec(ends[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, err
	}
	ours, its := os.NewFile(uintptr(ends[0]), "guard"), os.NewFile(uintptr(ends[1]), "guard")
	cmd.Stdin, cmd.Stdout = its, its
	defer ours.Close() // FileConn has one of its own
	return net.FileConn(ours)
}

// GuardConn is the guard's end of it.
func GuardConn() (io.ReadWriteCloser, error) { return net.FileConn(os.Stdin) }

// closeChilds closes what only the child has any more.
func closeChilds(cmd *exec.Cmd) { cmd.Stdin.(*os.File).Close() }
