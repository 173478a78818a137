package state

import (
	"os"

	"golang.org/x/sys/windows"
)

// TryLock locks an open file for this process or fails at once. It locks a byte far
// beyond the text, which others may want to read.
func TryLock(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, &windows.Overlapped{Offset: 1 << 30})
}
