//go:build unix

package devices

import (
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
)

// CloseOnExec keeps children from inheriting open files that this process was started with,
// except its standard streams: what those are connected to would wait for the end of the
// guard, or of a camera's program, as well.
func CloseOnExec() {
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

// ownProcessGroup keeps a terminal's Ctrl-C from the guard, which ends after the site.
func ownProcessGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// connectChild makes one end of a pair of sockets the command's input and output, and
// returns the other.
func connectChild(cmd *exec.Cmd) (io.ReadWriteCloser, error) {
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

// GuardConn returns the guard's end of the connection to the site.
func GuardConn() (io.ReadWriteCloser, error) { return net.FileConn(os.Stdin) }

// closeChildEnds closes this process's copies of the child's end.
func closeChildEnds(cmd *exec.Cmd) { cmd.Stdin.(*os.File).Close() }
