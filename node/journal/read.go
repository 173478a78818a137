package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	extension  = ".journal"
	anchorFile = "anchor"
)

// Report is the result of Read.
type Report struct {
	Segments    int
	First, Last uint64 // sequence numbers; 0 when there are no entries
	Torn        int64  // bytes of an incomplete entry at the end
	bytes       int64  // read
}

// Read reads the journal in folder from its beginning, checks its chain, and calls each with
// every entry. It changes nothing and may run beside the site. An error wraps ErrDamaged when
// a byte was changed, an entry or a segment is missing, or the journal ends before its last
// anchor.
func Read(folder string, each func(Entry) error) (Report, error) {
	_, report, err := read(folder, whole, func(e Entry, _ frame) error { return each(e) })
	return report, err
}

// end is where a journal can be continued.
type end struct {
	file   string // "" for none
	size   int64  // of its complete entries
	seq    uint64
	before hash
}

// whole and newest choose the segment that read begins with.
func whole([]string) int        { return 0 }
func newest(files []string) int { return max(0, len(files)-reread) }

// read is Read from the segment that from chooses of all, by its index, until each returns an error. Each entry
// comes with its frame, which each may not keep.
func read(folder string, from func([]string) int, each func(Entry, frame) error) (at end, report Report, err error) {
	known, err := readAnchor(folder) // first: a running site moves it forward, never beyond the entries
	if err != nil {
		return at, report, err
	}
	files, err := segments(folder)
	if err != nil {
		return at, report, err
	}
	files = files[from(files):]
	for i, file := range files {
		b, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) && report.Segments == 0 && i < len(files)-1 {
			continue // the oldest was removed meanwhile
		}
		if err != nil {
			return at, report, err
		}
		report.bytes += int64(len(b))
		last := i == len(files)-1
		first, before, err := parseHeader(b)
		follows := report.Segments == 0 || first == at.seq+1 && before == at.before
		switch {
		case last && len(withoutZeros(b)) < headerSize && (err != nil || file != segmentName(folder, first) || !follows):
			at.file, at.size, report.Torn = file, 0, int64(len(b))
			continue
		case err != nil:
			return at, report, inFile(file, err)
		case file != segmentName(folder, first):
			return at, report, inFile(file, damaged("it begins with entry %d, which is not its name", first))
		case report.Segments == 0:
			at.seq, at.before = first-1, before
			report.First = first
		case !follows:
			return at, report, inFile(file, damaged("it does not follow the segment before it"))
		}
		at.file, at.size = file, int64(headerSize)
		report.Segments++
		for rest := b[headerSize:]; len(rest) > 0; {
			e, f, size, err := parseFrame(rest, at.before)
			if errors.Is(err, errTorn) && last {
				report.Torn = int64(len(rest))
				break
			}
			if errors.Is(err, errTorn) {
				err = damaged("its end is missing")
			}
			if err == nil && e.Seq != at.seq+1 {
				err = damaged("entry %d stands where %d should", e.Seq, at.seq+1)
			}
			if err == nil && e.Seq == known.seq && f.after != known.hash {
				err = damaged("entry %d is not the one that was there", e.Seq)
			}
			if err != nil {
				return at, report, inFile(file, err)
			}
			at.seq, at.before, at.size = e.Seq, f.after, at.size+int64(size)
			rest = rest[size:]
			report.Last = e.Seq
			if err := each(e, f); err != nil {
				return at, report, err
			}
		}
	}
	if report.Last == 0 {
		report.First = 0
	}
	if at.seq < known.seq {
		return at, report, damaged("it ends with entry %d, and had at least %d: its end was cut off", at.seq, known.seq)
	}
	return at, report, nil
}

func inFile(file string, err error) error { return fmt.Errorf("%s: %w", filepath.Base(file), err) }

// segments lists the folder's segments in their order.
func segments(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), extension); ok && len(name) == 20 {
			files = append(files, filepath.Join(folder, e.Name()))
		}
	}
	slices.Sort(files)
	return files, nil
}

// firstOf returns the number of the first entry of a segment by its name; 0 where that is none.
func firstOf(file string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimSuffix(filepath.Base(file), extension), 10, 64)
	return n
}

// segmentName returns the name of the segment with that first entry.
func segmentName(folder string, first uint64) string {
	return filepath.Join(folder, fmt.Sprintf("%020s%s", strconv.FormatUint(first, 10), extension))
}

// The encoded anchor: sequence (8 bytes), hash (32) and their CRC-32C (4).
const anchorSize = 8 + len(hash{}) + 4

func (a anchor) bytes() []byte {
	b := binary.BigEndian.AppendUint64(nil, a.seq)
	b = append(b, a.hash[:]...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// anchor is the last entry at some time. A journal that ends before it was cut.
type anchor struct {
	seq  uint64
	hash hash
}

// readAnchor returns the zero anchor where there is none yet.
func readAnchor(folder string) (anchor, error) {
	var a anchor
	b, err := os.ReadFile(filepath.Join(folder, anchorFile))
	if errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}
	if err != nil {
		return a, err
	}
	if len(b) != anchorSize || binary.BigEndian.Uint32(b[anchorSize-4:]) != crc32.Checksum(b[:anchorSize-4], castagnoli) {
		return a, damaged("its anchor was changed")
	}
	a.seq = binary.BigEndian.Uint64(b)
	copy(a.hash[:], b[8:])
	return a, nil
}
