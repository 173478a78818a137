package state

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
)

// InUse is the error of a folder that another process holds.
type InUse struct {
	Folder Folder
	By     string // as the lock is signed; "" before a site has signed it
}

func (e InUse) Error() string {
	return fmt.Sprintf("%s is in use by %s: stop that one, or give this one a folder of its own with --data", e.Folder, e.By)
}

// Lock creates the folder where there is none and holds it for this process until unlock. It fails
// with InUse, without waiting, while another process holds it, and as Check does.
func (f Folder) Lock() (unlock func(), err error) {
	if err := f.Check(); err != nil { // also before folders are made, in those that are there
		return nil, err
	}
	if err := os.MkdirAll(string(f), 0o750); err != nil {
		return nil, f.Unusable(err)
	}
	if err := f.Check(); err != nil { // somebody else may have made it meanwhile
		return nil, err
	}
	lock, err := f.OpenLockFile(lockName)
	if err != nil {
		return nil, f.Unusable(err)
	}
	if err := TryLock(lock); err != nil {
		lock.Close()
		by, _ := f.Read(lockName)
		return nil, InUse{f, strings.TrimSpace(string(by))}
	}
	return func() { lock.Close() }, nil
}

// OpenLockFile opens a file of the folder for TryLock and creates it where there is none. A
// read-only disk has it already, and it can be locked there too. It refuses a file or a folder of
// somebody else, but not a folder whose mode somebody changed: the guard still has to take its
// outputs over.
func (f Folder) OpenLockFile(name string) (*os.File, error) {
	lock, err := f.open(name, os.O_RDWR|os.O_CREATE, true)
	if errors.Is(err, syscall.EROFS) {
		return f.open(name, os.O_RDONLY, true)
	}
	return lock, err
}

// Sign writes the holder into the lock file, for the next process that wants the folder.
// The caller holds the lock. Sign overwrites, so that a full disk has room for it. A write
// error is returned only before the first signature, because Token tells the first start by
// that; later it is logged.
func (f Folder) Sign(site string) error {
	text := fmt.Appendf(nil, "the site %q (process %d)\n", site, os.Getpid())
	lock, err := f.open(lockName, os.O_WRONLY|os.O_CREATE, false)
	if err == nil {
		_, err = lock.WriteAt(text, 0)
		err = errors.Join(err, lock.Truncate(int64(len(text))), lock.Close())
	}
	if mistake := (Mistake{}); err == nil || errors.As(err, &mistake) {
		return err
	}
	if info, statErr := os.Stat(f.Path(lockName)); statErr != nil || info.Size() == 0 {
		return f.Unusable(err)
	}
	slog.Warn("data folder not writable; no output moves away from safe", "err", err)
	return nil
}

// HasRun reports whether a site has ever run from the folder.
func (f Folder) HasRun() bool {
	by, err := f.Read(lockName)
	return err == nil && len(by) > 0
}
