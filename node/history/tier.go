package history

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
)

const (
	raw = iota
	minutes
	hours
	imported // what Import added: its recorded time is that of the wall
	tiers
)

var tierNames = [tiers]string{"raw", "minutes", "hours", "imported"}

// maxUnwritten limits the bytes of the blocks of a tier that wait for a disk that fails.
const maxUnwritten = 256 << 10

// tier is the files of one resolution. Its segments are changed under both locks of History,
// and the rest under mu.
type tier struct {
	id        int
	keep      int64      // ms
	segments  []*segment // oldest first; the last one is written to
	unwritten []block    // oldest first
	waiting   int        // bytes of unwritten
	room      int        // for them
	lost      int        // blocks that did not fit into unwritten
}

// segment is a file of blocks.
type segment struct {
	name   string
	size   int64        // of what is written completely
	clean  bool         // only zeros follow
	refs   []ref        // oldest first
	closed bool         // it is not written to any more
	told   *atomic.Bool // that a block is damaged
}

// ref is a block's head and its place.
type ref struct {
	head
	at int64
}

// block is encoded and not yet on the disk.
type block struct {
	head
	b []byte
}

func (t *tier) add(h head, all []entry) {
	h.tier = t.id
	b := encodeBlock(h, all)
	h.length = len(b) - headSize
	t.unwritten = append(t.unwritten, block{h, b})
	t.waiting += len(b)
	for t.waiting > t.room && len(t.unwritten) > 1 {
		t.waiting -= len(t.unwritten[0].b)
		t.unwritten = t.unwritten[1:]
		t.lost++
	}
}

// end returns the head of the newest block.
func (t *tier) end() (h head, ok bool) {
	if n := len(t.unwritten); n > 0 {
		return t.unwritten[n-1].head, true
	}
	for _, s := range slices.Backward(t.segments) {
		if n := len(s.refs); n > 0 {
			return s.refs[n-1].head, true
		}
	}
	return h, false
}

func (t *tier) size() (total int64) {
	for _, s := range t.segments {
		total += s.size
	}
	return total
}

// another is added to the name of a file where there is one already.
const another = "x"

func (t *tier) fileName(seq uint64) string { return fmt.Sprintf("%s-%016x", tierNames[t.id], seq) }

// A file grows by many zeros at once, which later blocks overwrite, and a small block never crosses
// a page boundary. For a block of 1 kB, ext4 then writes 20 kB instead of 35 kB.
const page = 4 << 10

func (t *tier) growth() int64 {
	if t.id == raw {
		return 16 * page
	}
	return 4 * page
}

// target returns the segment to which a block is written, and whether it is a new one.
func (t *tier) target(h head) (s *segment, fresh bool) {
	if n := len(t.segments); n > 0 {
		s = t.segments[n-1]
		// A tenth of the tier's age, so that little is kept for too long.
		long := len(s.refs) > 0 && h.last-s.refs[0].first > t.keep/10
		if !s.closed && s.size < segmentSize && !long {
			return s, false
		}
	}
	return &segment{name: t.fileName(h.seq), told: new(atomic.Bool)}, true
}

// write writes blocks durably and returns the segment that has them, and their refs. After an
// error the segment is as before.
func (t *tier) write(d disk, all []block) (s *segment, refs []ref, err error) {
	s, fresh := t.target(all[0].head)
	flag := os.O_RDWR
	if fresh {
		flag |= os.O_CREATE | os.O_EXCL
	}
	f, err := d.Open(s.name, flag)
	if !fresh && errors.Is(err, fs.ErrNotExist) { // it was removed, perhaps with the folder
		s.closed = true
		return t.write(d, all)
	}
	for fresh && errors.Is(err, fs.ErrExist) { // a file that could not be removed or read
		s.name += another
		f, err = d.Open(s.name, flag)
	}
	if err != nil {
		return nil, nil, err
	}
	at := s.size
	if n := int64(len(all[0].b)); n <= page/4 && at%page+n > page {
		at = floor(at+page, page)
	}
	var b []byte
	for _, k := range all {
		refs = append(refs, ref{k.head, at + int64(len(b))})
		b = append(b, k.b...)
	}
	size, err := f.Size()
	if err == nil && !s.clean && size != s.size { // what a loss of power or a failed write left
		size, err = s.size, f.Truncate(s.size)
	}
	if end := at + int64(len(b)); end > size {
		b = append(b, make([]byte, floor(end+t.growth(), t.growth())-end)...)
	}
	if err == nil {
		_, err = f.WriteAt(b, at)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil && fresh {
		err = d.Sync()
	}
	if err != nil {
		s.clean = false
		f.Truncate(s.size) // best effort, for a full disk
		f.Close()
		if fresh {
			d.Remove(s.name)
		}
		return nil, nil, err
	}
	s.clean = true
	if fresh && len(t.segments) > 0 {
		t.segments[len(t.segments)-1].trim(d)
	}
	return s, refs, f.Close()
}

// trim removes the zeros at the end of a segment, where that is possible.
func (s *segment) trim(d disk) {
	if s.closed {
		return
	}
	if f, err := d.Open(s.name, os.O_RDWR); err == nil {
		f.Truncate(s.size)
		f.Close()
	}
}

// report collects the findings of load.
type report struct {
	damaged int      // places
	newer   []string // files with blocks of a version that is not known
	failed  error    // of the disk
}

// load reads the heads of the blocks that are kept.
func (t *tier) load(d disk, names []string, r *report) {
	slices.Sort(names)
	for _, name := range names {
		if strings.HasPrefix(name, tierNames[t.id]+"-") {
			t.segments = append(t.segments, &segment{name: name, told: new(atomic.Bool)})
		}
	}
	for i, s := range t.segments {
		if err := s.load(d, t.id, i == len(t.segments)-1, r); err != nil {
			s.closed = true // nothing is cut off from what cannot be read
			r.failed = errors.Join(r.failed, err)
		}
	}
}

// load reads the heads of a segment's blocks. Of the last segment, whose end may be torn, it
// reads the blocks, too.
func (s *segment) load(d disk, tier int, last bool, found *report) error {
	f, err := d.Open(s.name, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	r := segmentReader{f: f, size: size}
	good := true // at a block, or behind damage
	for at := int64(0); at < size; {
		b, err := r.bytes(at, min(headSize, size-at))
		if err != nil {
			return err
		}
		zero := b[0] == 0 // no damage
		h, v, ok := parseHead(b)
		end := at + headSize + int64(h.length)
		if ok && end <= size && v == version && last {
			if b, err = r.bytes(at, end-at); err != nil {
				return err
			}
			if !intact(b) {
				good, at = false, end
				continue
			}
		}
		switch {
		case !ok || end > size:
			next, err := r.nextMarker(at + 1)
			if err != nil {
				return err
			}
			good, at = good && zero, next
			continue
		case v != version:
			if !slices.Contains(found.newer, s.name) {
				found.newer = append(found.newer, s.name)
			}
			s.closed = true
		case h.tier == tier:
			s.refs = append(s.refs, ref{h, at})
		}
		if !good {
			found.damaged++
		}
		good, at = true, end
		s.size = end
	}
	if s.closed {
		s.size = size
	}
	return nil
}

// readAt fills buf, grown where that is needed, with n bytes of a file.
func readAt(f file, buf []byte, at int64, n int) ([]byte, error) {
	buf = slices.Grow(buf[:0], n)[:n]
	_, err := f.ReadAt(buf, at)
	if errors.Is(err, io.EOF) {
		err = nil // the file was truncated meanwhile; the checksum tells
	}
	return buf, err
}

// expired removes from the list the segments whose newest block is older than the tier keeps,
// and returns them.
func (t *tier) expired(now int64) (old []*segment) {
	for len(t.segments) > 1 && t.segments[0].end() < now-t.keep {
		old = append(old, t.dropOldest())
	}
	return old
}

func (t *tier) dropOldest() *segment {
	s := t.segments[0]
	t.segments = slices.Clone(t.segments[1:]) // a query may have the old list
	return s
}

func (s *segment) end() (last int64) {
	for _, k := range s.refs {
		last = max(last, k.last)
	}
	return last
}

// segmentReader reads a segment, in order, with few system calls.
type segmentReader struct {
	f    file
	size int64
	buf  []byte
	at   int64 // of buf
}

const readAhead = 64 << 10

// bytes returns a part of the file, which is valid until the next call.
func (r *segmentReader) bytes(at, n int64) (b []byte, err error) {
	if at < r.at || at+n > r.at+int64(len(r.buf)) {
		if r.buf, err = readAt(r.f, r.buf, at, int(max(n, min(readAhead, r.size-at)))); err != nil {
			r.buf = nil
			return nil, err
		}
		r.at = at
	}
	return r.buf[at-r.at:][:n], nil
}

// nextMarker returns the place of the next marker at or after at, or the size.
func (r *segmentReader) nextMarker(at int64) (int64, error) {
	for at < r.size {
		b, err := r.bytes(at, min(page, r.size-at))
		if err != nil {
			return 0, err
		}
		if i := bytes.Index(b, []byte(marker)); i >= 0 {
			return at + int64(i), nil
		}
		at += int64(max(1, len(b)-len(marker)+1))
	}
	return r.size, nil
}

// block returns a block of the segment, nil where it is damaged. It is valid until the next
// call.
func (r *segmentReader) block(k ref) []byte {
	n := int64(headSize + k.length)
	if k.at+n > r.size {
		return nil
	}
	b, err := r.bytes(k.at, n)
	if err != nil {
		slog.Warn("history cannot be read", "err", err)
		return nil
	}
	if h, v, ok := parseHead(b); !ok || v != version || h != k.head || !intact(b) {
		return nil
	}
	return b
}
