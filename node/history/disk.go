package history

import (
	"io"
	"os"
	"path/filepath"

	"agentsite/node/state"
)

// disk is the folder of the segment files; tests simulate a disk that loses power.
type disk interface {
	List() ([]string, error)
	// Open opens a file for reading, for writing, or for writing with the flags that create it.
	Open(name string, flag int) (file, error)
	Remove(name string) error
	Sync() error // makes creations and removals durable
}

type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	Truncate(size int64) error
	Sync() error
}

// folder is the real disk.
type folder string

func (f folder) List() ([]string, error) {
	all, err := os.ReadDir(string(f))
	if os.IsNotExist(err) {
		return nil, nil
	}
	var names []string
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names, err
}

func (f folder) Open(name string, flag int) (file, error) {
	if flag&os.O_CREATE != 0 {
		if err := os.Mkdir(string(f), 0o700); err == nil {
			state.SyncFolder(filepath.Dir(string(f)))
		}
	}
	opened, err := os.OpenFile(filepath.Join(string(f), name), flag, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{opened}, nil
}

func (f folder) Remove(name string) error { return os.Remove(filepath.Join(string(f), name)) }

func (f folder) Sync() error { return state.SyncFolder(string(f)) }

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
