//go:build unix

package devices

import (
	"os"
	"runtime"
	"strconv"
	"syscall"
)

// CloseOnExec keeps children from inheriting open files that this process was started with, except
// its standard streams. Otherwise a reader at the far end of such a pipe would also wait for the
// guard, or for a camera's program, to exit.
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

// openInherited returns a file that this process was started with. It has another number,
// because a write to a broken pipe with the standard ones ends the program; and Close ends a
// Read.
func openInherited(f *os.File) (*os.File, error) {
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(fd)
	if err := syscall.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}
