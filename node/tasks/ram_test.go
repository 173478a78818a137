package tasks

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"slices"
	"sync"
)

// ram is a disk in memory. After a crash, writes that were not synced are there in part or not at
// all.
type ram struct {
	mu      sync.Mutex
	files   map[string]*ramFile
	durable map[string]*ramFile // names
	ops     int                 // changes that are left before the crash; below 0 for no crash
	crashed bool
	full    bool // writes of data fail
	frozen  bool // nothing can be changed
}

type ramFile struct {
	data   []byte
	synced []byte
}

func newRAM() *ram {
	return &ram{files: map[string]*ramFile{}, durable: map[string]*ramFile{}, ops: -1}
}

var errCrashed = errors.New("the machine is off")

// op counts an operation. The lock is held.
func (r *ram) op(writes bool) error {
	if writes && r.ops == 0 {
		r.crashed = true
	}
	if r.crashed {
		return errCrashed
	}
	if writes && r.ops > 0 {
		r.ops--
	}
	if r.frozen && writes {
		return &fs.PathError{Op: "write", Err: errors.New("read-only file system")}
	}
	return nil
}

// reboot returns the disk as it is found after a crash.
func (r *ram) reboot(chance *rand.Rand) *ram {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := newRAM()
	for name, f := range r.durable {
		data := slices.Clone(f.synced)
		if more := len(f.data) - len(data); more > 0 && slices.Equal(f.data[:len(data)], data) {
			tail := slices.Clone(f.data[len(data):])
			switch chance.IntN(4) {
			case 0:
				tail = tail[:chance.IntN(more+1)]
			case 1: // its length came, and not all of its data
				clear(tail[chance.IntN(more+1):])
			case 2:
				tail = nil
			}
			data = append(data, tail...)
		}
		next.files[name] = &ramFile{data: data, synced: slices.Clone(data)}
		next.durable[name] = next.files[name]
	}
	return next
}

func (r *ram) List() (all []listed, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.op(false); err != nil {
		return nil, err
	}
	for name, f := range r.files {
		all = append(all, listed{name, int64(len(f.data))})
	}
	return all, nil
}

func (r *ram) Read(name string) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.op(false); err != nil {
		return nil, err
	}
	f := r.files[name]
	if f == nil {
		return nil, fs.ErrNotExist
	}
	return slices.Clone(f.data), nil
}

func (r *ram) Create(name string) (file, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.op(true); err != nil {
		return nil, err
	}
	if r.files[name] != nil {
		return nil, fs.ErrExist
	}
	r.files[name] = &ramFile{}
	return &ramHandle{r, r.files[name]}, nil
}

func (r *ram) Open(name string) (file, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.op(false); err != nil {
		return nil, err
	}
	if r.files[name] == nil {
		return nil, fs.ErrNotExist
	}
	return &ramHandle{r, r.files[name]}, nil
}

func (r *ram) Rename(from, to string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.op(true); err != nil {
		return err
	}
	if r.files[from] == nil {
		return fs.ErrNotExist
	}
	r.files[to] = r.files[from]
	delete(r.files, from)
	if f := r.durable[from]; f != nil {
		r.durable[to] = f
		delete(r.durable, from)
	}
	return nil
}

func (r *ram) Remove(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.op(true); err != nil {
		return err
	}
	delete(r.files, name)
	delete(r.durable, name)
	return nil
}

func (r *ram) Sync() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.op(true); err != nil {
		return err
	}
	for name, f := range r.files {
		r.durable[name] = f
	}
	return nil
}

type ramHandle struct {
	r *ram
	f *ramFile
}

func (h *ramHandle) Write(b []byte) (int, error) {
	h.r.mu.Lock()
	defer h.r.mu.Unlock()
	if err := h.r.op(true); err != nil {
		return 0, err
	}
	if h.r.full {
		h.f.data = append(h.f.data, b[:len(b)/2]...)
		return len(b) / 2, &fs.PathError{Op: "write", Err: errors.New("no space left on device")}
	}
	h.f.data = append(h.f.data, b...)
	return len(b), nil
}

func (h *ramHandle) Truncate(size int64) error {
	h.r.mu.Lock()
	defer h.r.mu.Unlock()
	if err := h.r.op(true); err != nil {
		return err
	}
	h.f.data = h.f.data[:size]
	return nil
}

func (h *ramHandle) Sync() error {
	h.r.mu.Lock()
	defer h.r.mu.Unlock()
	if err := h.r.op(true); err != nil {
		return err
	}
	h.f.synced = slices.Clone(h.f.data)
	return nil
}

func (h *ramHandle) Close() error { return nil }
