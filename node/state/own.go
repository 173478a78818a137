package state

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Check refuses a folder that somebody else could have filled. This user or the superuser owns the
// folder, all above it and all files in it, and nobody else can write there. In a sticky folder
// above, such as /tmp, others cannot replace what is not theirs. A folder that does not exist is not
// checked.
func (f Folder) Check() error {
	if err := f.checkPath(string(f)); err != nil {
		return err
	}
	entries, err := os.ReadDir(string(f))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return f.Unusable(err)
	}
	for _, e := range entries {
		if err := f.checkPath(f.Path(e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// maxLinks is the number of links in a path that the kernel follows.
const maxLinks = 40

// checkPath checks a path of the folder, or to it, and all folders that its links lead through.
func (f Folder) checkPath(path string) error {
	at, left := filepath.VolumeName(path)+string(filepath.Separator), pathElements(path)
	if err := f.checkOwner(at, len(left) == 0); err != nil {
		return err
	}
	for links := 0; len(left) > 0; {
		name := left[0]
		left = left[1:]
		if name == ".." {
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		if err := f.checkOwner(next, len(left) == 0); err != nil {
			return err
		}
		target, err := os.Readlink(next)
		if err != nil { // no link, or nothing
			at = next
			continue
		}
		if links++; links > maxLinks {
			return f.Unusable(&fs.PathError{Op: "open", Path: path, Err: syscall.ELOOP})
		}
		if filepath.IsAbs(target) {
			at = filepath.VolumeName(target) + string(filepath.Separator)
		}
		left = append(pathElements(target), left...)
	}
	return nil
}

func pathElements(path string) (all []string) {
	for name := range strings.SplitSeq(filepath.Clean(path)[len(filepath.VolumeName(path)):], string(filepath.Separator)) {
		if name != "" && name != "." {
			all = append(all, name)
		}
	}
	return all
}

// checkOwner checks one file or folder; last is the end of the path, where the sticky bit is not
// enough. What is not there, or not shown to this user, cannot be used, which others report.
func (f Folder) checkOwner(path string, last bool) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	if !last && info.IsDir() && info.Mode()&fs.ModeSticky != 0 && !ownerIsForeign(info) {
		return nil
	}
	return f.refuse(path, info)
}

// refuse returns an error where somebody else than this user and the superuser could have written a
// file or a folder.
func (f Folder) refuse(path string, info fs.FileInfo) error {
	switch user, _ := Owner(info); {
	case ownerIsForeign(info) && path == string(f):
		return Mistakef("the folder %s belongs to user %d: run this as that user, or use another folder with --data", f, user)
	case ownerIsForeign(info):
		return Mistakef("the data folder %s is not used, because %s belongs to user %d: remove what you did not put there, or use another folder with --data", f, path, user)
	case othersCanWrite(info):
		return Mistakef("the data folder %s is not used, because others can write to %s: run chmod go-w %s, and remove what you did not put there", f, path, ShellQuote(path))
	}
	return nil
}

// open opens a file of the folder for its own user, without following a link or waiting for a pipe.
// It refuses a folder or a file that belongs to somebody else, or that others can write to. Only
// loose leaves out the modes of the folder and those above it, except for the superuser.
func (f Folder) open(name string, flag int, loose bool) (*os.File, error) {
	if info, err := os.Stat(string(f)); loose && !isSuperuser() {
		if err == nil && ownerIsForeign(info) {
			return nil, f.refuse(string(f), info)
		}
	} else if err := f.checkPath(string(f)); err != nil {
		return nil, err
	}
	path := f.Path(name)
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, notAFile(path)
	}
	file, err := os.OpenFile(path, flag|noFollow|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notAFile(path)
	}
	if err == nil {
		err = f.refuse(path, info)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func notAFile(path string) error {
	return Mistakef("%s is not used, because it is not a regular file: remove it, if you did not put it there", path)
}

// Read returns the content of a file of the folder, nil where there is none. It refuses one that
// somebody else could have written.
func (f Folder) Read(name string) ([]byte, error) { return f.ReadAtMost(name, 1<<40) }

// ReadAtMost is Read for a file of at most limit bytes.
func (f Folder) ReadAtMost(name string, limit int64) ([]byte, error) {
	return f.read(name, limit, false)
}

// ReadPlan reads the plan of the outputs. It does not refuse a folder whose mode somebody changed:
// outputs still have to return to safe.
func (f Folder) ReadPlan() ([]byte, error) { return f.read(PlanFile, 1<<40, true) }

func (f Folder) read(name string, limit int64, loose bool) ([]byte, error) {
	file, err := f.open(name, os.O_RDONLY, loose)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readAtMost(file, limit)
}

// readAtMost reads a file, which is an error where it is longer.
func readAtMost(file *os.File, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s is not used, because it is longer than %d bytes", file.Name(), limit)
	}
	if err != nil {
		return nil, err
	}
	return append([]byte{}, text...), nil
}
