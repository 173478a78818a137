//go:build unix

package state

import (
	"os"
	"syscall"
)

// TryLock locks an open file for this process or fails at once. The lock ends
// with the process, however that ends.
func TryLock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
