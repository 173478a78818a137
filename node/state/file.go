package state

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// OthersCanRead reports whether users other than the owner can read or change a file with
// that mode.
func OthersCanRead(mode fs.FileMode) bool {
	return runtime.GOOS != "windows" && mode.Perm()&0o077 != 0
}

// WriteAtomic replaces a file: a crash leaves the old one or the new one, never a part. It
// blocks until the data is on the disk, and follows no link. The next write replaces the
// temporary file of a crash, so that only one process at a time may write. With mode 0 the
// file has the file system's default, as on FAT, which has no modes.
func WriteAtomic(path string, b []byte, mode fs.FileMode) error {
	if err := os.Remove(path + ".new"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	tmp, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(b)
	if mode != 0 {
		err = errors.Join(err, os.Chmod(tmp.Name(), mode))
	}
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	SyncFolder(filepath.Dir(path)) // best effort: the file is whole
	return nil
}

// WriteLike does what WriteAtomic does, and gives the file the mode of the one that like describes and,
// where this user may, its owner and group. Without that group, a group may do nothing.
func WriteLike(path string, b []byte, like fs.FileInfo) error {
	tmp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".agentsite") // path.new may be somebody's
	if err := WriteAtomic(tmp, b, 0o600); err != nil {
		return err
	}
	err := CopyOwner(tmp, like, true)
	is, gone := os.Stat(tmp)
	if err = cmp.Or(err, gone); err == nil {
		mode := like.Mode().Perm()
		if !sameGroup(is, like) {
			mode &^= 0o070
		}
		err = errors.Join(os.Chmod(tmp, mode), os.Rename(tmp, path))
	}
	if err != nil {
		os.Remove(tmp) // and not after a rename, when it may be the next one's
		return err
	}
	SyncFolder(filepath.Dir(path))
	return nil
}

// Before is at the end of the name of the file with the text before; see Rewrite.
const Before = ".before"

// ErrChanged says that a file has another text than the one to replace.
var ErrChanged = errors.New("it was changed meanwhile")

// Rewrite replaces the text of a file that this user may write, as WriteLike does, and keeps the text before
// beside it. A file with another text stays as it is, as does one that another process rewrites.
func Rewrite(path string, before, text []byte) error {
	return rewriting(path, before, func(like fs.FileInfo, unchanged func() error) error {
		err := WriteLike(path+Before, before, like)
		if err == nil {
			err = unchanged() // after that, which takes its time
		}
		if err == nil {
			err = WriteLike(path, text, like)
		}
		return err
	})
}

// Restore puts the text that Rewrite kept in the place of text, which needs no room on the disk. It fails with
// ErrChanged where one of both is another.
func Restore(path string, text, before []byte) error {
	return rewriting(path, text, func(fs.FileInfo, func() error) error {
		kept, err := os.ReadFile(path + Before)
		if err == nil && !bytes.Equal(kept, before) {
			err = ErrChanged
		}
		if err == nil {
			err = os.Rename(path+Before, path)
		}
		SyncFolder(filepath.Dir(path))
		return err
	})
}

// rewriting calls change while no other process rewrites the file, which has the text.
func rewriting(path string, text []byte, change func(like fs.FileInfo, unchanged func() error) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0) // the folder's permissions would be enough to replace it
	if err != nil {
		return err
	}
	defer f.Close()
	like, err := f.Stat()
	if err != nil {
		return err
	}
	if runtime.GOOS == "windows" {
		f.Close() // which replaces no open file
	} else if errors.Is(TryLock(f), syscall.EWOULDBLOCK) { // and go on where the file system has no locks
		return ErrChanged
	}
	unchanged := func() error {
		now, err := os.ReadFile(path)
		is, gone := os.Stat(path)
		if err = cmp.Or(err, gone); err == nil && (!bytes.Equal(now, text) || !os.SameFile(is, like)) {
			err = ErrChanged
		}
		return err
	}
	if err := unchanged(); err != nil {
		return err
	}
	return change(like, unchanged)
}

// SyncFolder makes renames and removals in a folder survive a loss of power. It does nothing
// on a disk that cannot.
func SyncFolder(folder string) error {
	dir, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// ReadUntrusted reads a file that another user may have written. It returns nil if there is no
// file, and an error if it is a link, not a regular file, or longer than limit bytes. It does not
// block on a pipe.
func ReadUntrusted(path string, limit int64) ([]byte, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not used, because it is not a regular file", path)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be a pipe meanwhile
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if opened, err := f.Stat(); err != nil || !os.SameFile(info, opened) {
		return nil, errors.Join(err, fmt.Errorf("%s was changed meanwhile", path))
	}
	return readAtMost(f, limit)
}
