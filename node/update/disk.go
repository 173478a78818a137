package update

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/go-json-experiment/json"
)

// WriteJSON replaces a file in a folder by v, atomically and durably.
func WriteJSON(folder, name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	return write(root, name, 0o644, func(w io.Writer) error { _, err := w.Write(append(text, '\n')); return err })
}

// ReadJSON decodes a file of WriteJSON into v. Without the file it leaves v as it is.
func ReadJSON(folder, name string, v any) error {
	text, err := os.ReadFile(filepath.Join(folder, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v, json.RejectUnknownMembers(true))
}

// OpenFile opens a file of an untrusted folder for reading. It refuses anything but a regular
// file, and does not block on a pipe, even if one replaces the file concurrently.
func OpenFile(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// write replaces a file atomically and durably.
func write(root *os.Root, name string, mode fs.FileMode, fill func(io.Writer) error) error {
	tmp := name + ".new"
	if err := remove(root, tmp); err != nil {
		return err
	}
	f, err := root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if err = errors.Join(fill(f), f.Chmod(mode), f.Sync(), f.Close()); err == nil {
		err = root.Rename(tmp, name)
		if err != nil && remove(root, name) == nil { // it was a folder
			err = root.Rename(tmp, name)
		}
	}
	if err != nil {
		root.Remove(tmp)
		return err
	}
	return syncFolder(root)
}

// remove removes a file. What it cannot remove, such as a folder with files, it renames: a user who
// can write to the folder neither blocks the name nor makes the caller walk a large tree.
func remove(root *os.Root, name string) error {
	err := root.Remove(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if root.Rename(name, name+"."+rand.Text()) == nil {
		return nil
	}
	return err
}

// syncFolder makes renames and removals in a folder durable, as far as the disk supports it.
func syncFolder(root *os.Root) error {
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
