//go:build unix

package site

import (
	"os"
	"syscall"
)

// lockFile takes the file for this process or fails at once. The kernel gives it
// back when the process ends, however it ends.
func lockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
