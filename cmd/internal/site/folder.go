package site

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"agentsite/device/guard"
)

// Folder is a site's data folder.
type Folder string

// DefaultFolder is the service's folder where systemd names one, and the user's
// state folder otherwise.
func DefaultFolder() (Folder, error) {
	if dir := os.Getenv("STATE_DIRECTORY"); dir != "" {
		dir, err := filepath.Abs(dir)
		return Folder(dir), err
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return Folder(filepath.Join(dir, "agentsite")), nil
	}
	return homeFolder()
}

// ServiceFolder is that of the site that the package runs as a service.
const ServiceFolder Folder = "/var/lib/agentsite"

// FindFolder is the folder of the site on this machine that a command speaks to which is
// told none: the user's own while a site runs from there, and else the service's, where
// there is one.
func FindFolder() (Folder, error) {
	own, err := DefaultFolder()
	if err != nil {
		return own, err
	}
	return choose(own, ServiceFolder), nil
}

func choose(own, service Folder) Folder {
	if info, err := os.Stat(string(service)); err != nil || !info.IsDir() {
		return own
	}
	if conn, err := net.Dial("unix", own.OwnerSocket()); err == nil {
		conn.Close()
		return own
	}
	if _, err := os.Stat(service.path("lock")); errors.Is(err, fs.ErrNotExist) {
		return own // no site was ever there
	}
	return service
}

// homeFolder is the one that a terminal or a program with no such variables finds.
func homeFolder() (Folder, error) {
	if runtime.GOOS == "windows" {
		dir, err := os.UserConfigDir()
		return Folder(filepath.Join(dir, "agentsite")), err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no folder for the site's data: %w; name one with --data", err)
	}
	return Folder(filepath.Join(home, ".local", "state", "agentsite")), nil
}

// found reports whether other terminals and programs of this user find the folder
// without being told.
func (f Folder) found() bool {
	if f == ServiceFolder {
		return true
	}
	here, err := DefaultFolder()
	there, err2 := homeFolder()
	return err == nil && err2 == nil && f == here && f == there
}

func (f Folder) path(name string) string { return filepath.Join(string(f), name) }

const tokenName = "token"

// TokenFile holds the token for HTTP.
func (f Folder) TokenFile() string { return f.path(tokenName) }

// latch has its flag in the runtime folder, which a data folder that is taken away or
// read-only cannot spoil, or in the data folder where there is none. A second site on a folder that was removed and made again beneath the
// first shares both: each one's stop holds for the next start of either.
func (f Folder) latch() guard.Latch {
	l := guard.Latch{File: f.path("armed"), Flag: f.path("stopped")}
	if flag := f.runtimePath("stopped"); flag != "" {
		l.Flag = flag
	}
	return l
}

// open makes the folder where it does not exist and takes it for this process
// until unlock.
func (f Folder) open() (unlock func(), err error) {
	if err := os.MkdirAll(string(f), 0o750); err != nil {
		return nil, f.unusable(err)
	}
	lock, err := f.openLock("lock")
	if err != nil {
		return nil, f.unusable(err)
	}
	if err := lockFile(lock); err != nil {
		defer lock.Close()
		who, _ := os.ReadFile(lock.Name())
		return nil, heldBy{f, strings.TrimSpace(string(who))}
	}
	return func() { lock.Close() }, nil
}

// heldBy is a folder that another process has.
type heldBy struct {
	folder Folder
	by     string
}

func (e heldBy) Error() string {
	return fmt.Sprintf("%s is in use by %s: stop that one, or give this one a folder of its own with --data", e.folder, e.by)
}

func (f Folder) unusable(err error) error {
	return fmt.Errorf("the data folder cannot be used: %w; give one that you may write to with --data", err)
}

// openLock opens a file to be locked, made where there is none. A read-only disk has it
// already, and it can be locked there too.
func (f Folder) openLock(name string) (*os.File, error) {
	lock, err := os.OpenFile(f.path(name), os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, syscall.EROFS) {
		return os.Open(f.path(name))
	}
	return lock, err
}

// sign writes the holder into the lock file, for the next process that wants it. It overwrites, so
// that a full disk has room for it. A disk that takes nothing is an error only on the
// first start: token knows that one by it.
func (f Folder) sign(site string) error {
	text := fmt.Appendf(nil, "the site %q (process %d)\n", site, os.Getpid())
	lock, err := os.OpenFile(f.path("lock"), os.O_WRONLY|os.O_CREATE, 0o600)
	if err == nil {
		_, err = lock.WriteAt(text, 0)
		err = errors.Join(err, lock.Truncate(int64(len(text))), lock.Close())
	}
	if err == nil {
		return nil
	}
	if info, statErr := os.Stat(f.path("lock")); statErr != nil || info.Size() == 0 {
		return err
	}
	slog.Warn("the data folder's disk takes nothing: no output moves away from safe until it does", "err", err)
	return nil
}

// token returns the folder's token, made where there is none. First start, while
// nobody has signed the lock, also arms the outputs, unless a stop has raised the
// flag; after it, a folder without the armed file means stopped, and a new token
// changes nothing about that.
func (f Folder) token() (string, error) {
	b, err := os.ReadFile(f.TokenFile())
	if err == nil {
		info, err := os.Stat(f.TokenFile())
		if err == nil && readable(info.Mode()) {
			return "", fmt.Errorf("others can read %s: run chmod 600 %[1]s, or delete it for a new one", f.TokenFile())
		}
		if token := strings.TrimSpace(string(b)); isToken(token) {
			return token, err
		}
		return "", Mistake{fmt.Errorf("%s holds no token, which is 64 hexadecimal digits: delete it, and the next start makes a new one", f.TokenFile())}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", f.unusable(err)
	}
	who, err := os.ReadFile(f.path("lock"))
	if err != nil {
		return "", f.unusable(err)
	}
	if len(who) == 0 {
		if err := f.latch().Arm(); err != nil {
			return "", f.unusable(err)
		}
	}
	var secret [32]byte
	rand.Read(secret[:])
	token := hex.EncodeToString(secret[:])
	if err := writeAtomic(f.TokenFile(), []byte(token+"\n"), 0o600); err != nil {
		return "", f.unusable(err)
	}
	return token, nil
}

// isToken tells the form that every token has.
func isToken(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 32
}

// readable reports whether a file with that mode can be read by others.
func readable(mode fs.FileMode) bool { return runtime.GOOS != "windows" && mode.Perm()&0o077 != 0 }

// writeAtomic leaves the old file or the new one, never half of it. What a kill
// leaves beside them, the next write takes over: the folder is one process's. It writes
// through no link. With mode 0 the file has the one that the disk gives it, as on FAT,
// which has none of its own.
func writeAtomic(path string, b []byte, mode fs.FileMode) error {
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
	persist(filepath.Dir(path))
	return nil
}

// persist has what was renamed or removed in a folder stay so after a loss of power, as
// far as the disk lets it.
func persist(folder string) {
	if dir, err := os.Open(folder); err == nil {
		dir.Sync()
		dir.Close()
	}
}

// readSmall reads a file that somebody else may have put there: nil where there is none,
// and an error where it is a link, no file, or longer than that.
func readSmall(path string, most int64) ([]byte, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not used, because it is no plain file", path)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be a pipe meanwhile
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if opened, err := f.Stat(); err != nil || !os.SameFile(info, opened) {
		return nil, errors.Join(err, fmt.Errorf("%s was changed meanwhile", path))
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s is not used, because it is longer than %d bytes", path, most)
	}
	if err != nil {
		return nil, err
	}
	return append([]byte{}, text...), nil
}
