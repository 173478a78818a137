//go:build unix

package site

import (
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
)

// keepOwn has no child inherit what this process was started with beyond its standard
// streams: whatever that is connected to would wait for the guard's end, or a camera
// program's, as well.
func keepOwn() {
	folder := "/dev/fd"
	if runtime.GOOS == "linux" {
		folder = "/proc/self/fd" // small systems have no other
	}
	all, _ := os.ReadDir(folder)
	for _, f := range all {
		if fd, err := strconv.Atoi(f.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}

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
