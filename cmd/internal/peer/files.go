package peer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"agentsite/node/state"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// lockName is the file that is locked while a person's files change, for some milliseconds.
	// lockTimeout bounds the wait for the lock. updateTimeout bounds that wait when a call, which
	// may be an emergency stop, stores an address.
	lockName      = "changes.lock"
	lockTimeout   = 10 * time.Second
	updateTimeout = time.Second
)

// withLock runs change while no other process changes the files of the folder, which it
// creates. It blocks for the lock until timeout.
func withLock(f state.Folder, timeout time.Duration, change func() error) error {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return err
	}
	lock, err := f.OpenLockFile(lockName)
	if err != nil {
		return err
	}
	defer lock.Close()
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if err = state.TryLock(lock); err == nil {
			return change()
		}
		if time.Since(start) >= timeout {
			return fmt.Errorf("another process holds %s: %w", lock.Name(), err)
		}
	}
}

// readJSON decodes a file of the folder. It fails with fs.ErrNotExist where there is none.
func readJSON(f state.Folder, name string, into any) error {
	text, err := f.Read(name)
	switch {
	case err != nil:
		return err
	case text == nil:
		return fs.ErrNotExist
	}
	return json.Unmarshal(text, into)
}

// writeJSON replaces a file of the folder. The caller holds the lock.
func writeJSON(f state.Folder, name string, v any) error {
	text, err := json.Marshal(v, jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	return state.WriteAtomic(f.Path(name), append(text, '\n'), 0o600)
}

// listFile is a file with a JSON list. It is safe for concurrent use, also by several
// processes.
type listFile[T any] struct {
	folder state.Folder
	name   string
}

// List reads the list, which is empty where there is no file.
func (l listFile[T]) List() (all []T, err error) {
	err = readJSON(l.folder, l.name, &all)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w; correct or remove it", l.folder.Path(l.name), err)
	}
	return all, nil
}

// change replaces the list by the result of edit, under the lock. Where edit returns nil, nothing
// is written.
func (l listFile[T]) change(timeout time.Duration, edit func(all []T) ([]T, error)) error {
	return withLock(l.folder, timeout, func() error {
		all, err := l.List()
		if err == nil {
			all, err = edit(all)
		}
		if err != nil || all == nil {
			return err
		}
		return writeJSON(l.folder, l.name, all)
	})
}
