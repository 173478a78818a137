package history

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
)

// memDisk is a disk in memory that records what is not durable yet. It can fail, and lose power.
type memDisk struct {
	files   map[string]*memFile
	durable map[string]*memFile // the names that outlive a loss of power
	fail    error               // of everything that writes
	left    int                 // operations that write until the power fails; 0 for never
	dead    bool
	room    int // bytes that fit in; 0 for any
	writes  int
}

// memFile is a file. Its operations since the last sync are those that a loss of power can
// undo.
type memFile struct {
	data, synced []byte
	ops          []op
}

type op struct {
	at   int64
	data []byte // nil to truncate at at
}

var (
	errCut   = errors.New("the power has failed") // this operation may have been done in part
	errPower = errors.New("the power is off")
)

func newMemDisk() *memDisk {
	return &memDisk{files: map[string]*memFile{}, durable: map[string]*memFile{}}
}

// allow counts an operation that writes, and fails where it must.
func (d *memDisk) allow() error {
	if d.dead {
		return errPower
	}
	if d.left > 0 {
		if d.left--; d.left == 0 {
			d.dead = true
			return errCut
		}
	}
	d.writes++
	return d.fail
}

func (d *memDisk) List() ([]string, error) { return slices.Collect(maps.Keys(d.files)), nil }

func (d *memDisk) Open(name string, flag int) (file, error) {
	f := d.files[name]
	if f == nil {
		if flag&os.O_CREATE == 0 {
			return nil, fs.ErrNotExist
		}
		if err := d.allow(); err != nil {
			return nil, err
		}
		f = &memFile{}
		d.files[name] = f
	} else if flag&os.O_EXCL != 0 {
		return nil, fs.ErrExist
	}
	return &memHandle{d, f}, nil
}

func (d *memDisk) Remove(name string) error {
	if err := d.allow(); err != nil {
		return err
	}
	delete(d.files, name)
	return nil
}

func (d *memDisk) Sync() error {
	if err := d.allow(); err != nil {
		return err
	}
	d.durable = maps.Clone(d.files)
	return nil
}

// crash returns the disk after a loss of power: each sector and each name that was not synced may
// be there or not.
func (d *memDisk) crash(rng *rand.Rand) *memDisk {
	after := newMemDisk()
	names := maps.Clone(d.durable)
	for name, f := range d.files {
		if rng.IntN(2) == 0 {
			names[name] = f
		}
	}
	for name := range d.durable {
		if d.files[name] == nil && rng.IntN(2) == 0 {
			delete(names, name) // its removal was not synced
		}
	}
	for name, f := range names {
		b := slices.Clone(f.synced)
		whole := rng.IntN(len(f.ops) + 1) // operations that are complete
		for i, o := range f.ops {
			switch {
			case i < whole:
				b = o.apply(b)
			case o.data == nil:
				if rng.IntN(2) == 0 {
					b = o.apply(b)
				}
			default:
				if rng.IntN(2) == 0 && len(b) < int(o.at)+len(o.data) { // the size without the data
					b = append(b, make([]byte, int(o.at)+len(o.data)-len(b))...)
				}
				const sector = 512
				for from := int64(0); from < int64(len(o.data)); {
					to := min((o.at+from)/sector*sector+sector-o.at, int64(len(o.data)))
					if rng.IntN(2) == 0 {
						b = op{o.at + from, o.data[from:to]}.apply(b)
					}
					from = to
				}
			}
		}
		after.files[name] = &memFile{data: b, synced: slices.Clone(b)}
	}
	after.durable = maps.Clone(after.files)
	return after
}

func (o op) apply(b []byte) []byte {
	if o.data == nil {
		if len(b) > int(o.at) {
			return b[:o.at]
		}
		return append(b, make([]byte, int(o.at)-len(b))...)
	}
	if end := int(o.at) + len(o.data); len(b) < end {
		b = append(b, make([]byte, end-len(b))...)
	}
	copy(b[o.at:], o.data)
	return b
}

type memHandle struct {
	d *memDisk
	f *memFile
}

func (h *memHandle) ReadAt(b []byte, at int64) (int, error) {
	if h.f == nil {
		return 0, fs.ErrClosed
	}
	return bytes.NewReader(h.f.data).ReadAt(b, at)
}

func (h *memHandle) WriteAt(b []byte, at int64) (int, error) {
	err := h.d.allow()
	if room := h.d.room; room > 0 && err == nil {
		used := 0
		for _, f := range h.d.files {
			used += len(f.data)
		}
		if fits := max(0, room-used); len(b) > fits { // half of it is written
			b, err = b[:fits], errors.New("no space left on device")
		}
	}
	if err == nil || errors.Is(err, errCut) || h.d.room > 0 {
		h.do(op{at, slices.Clone(b)})
	}
	return len(b), err
}

func (h *memHandle) do(o op) {
	h.f.data = o.apply(slices.Clone(h.f.data))
	h.f.ops = append(h.f.ops, o)
}

func (h *memHandle) Truncate(size int64) error {
	if err := h.d.allow(); err != nil {
		return err
	}
	h.do(op{at: size})
	return nil
}

func (h *memHandle) Sync() error {
	if err := h.d.allow(); err != nil {
		return err
	}
	h.f.synced, h.f.ops = slices.Clone(h.f.data), nil
	return nil
}

func (h *memHandle) Size() (int64, error) { return int64(len(h.f.data)), nil }
func (h *memHandle) Close() error         { h.f = nil; return nil }
