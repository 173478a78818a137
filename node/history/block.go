package history

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strings"
)

// A segment file is a row of blocks. A block is a head and a payload. Numbers are
// little-endian:
//
//	 0 marker (4), by which the next block is found after a damaged one
//	 4 version (1)
//	 5 tier (1)
//	 6 flags (1): bit 0 says that the wall time was not known
//	 7 zero (1)
//	 8 length of the payload (4)
//	12 CRC-32C of the payload (4)
//	16 sequence: raw blocks are numbered, others have the number of the last one in them (8)
//	24 sequence of the block before in this tier (8)
//	32 epoch (4)
//	36 recorded time of the first and the last entry, in ms (8 + 8)
//	52 wall time, in Unix ms, at which the recorded time of this epoch is 0 (8)
//	60 CRC-32C of the bytes before (4)
//
// The payload begins with an index: the number of series, and the key, form and length of each. A
// key is the address and, after a space, the unit, if it has one. Then come the series in the same
// order, as series.go writes them. A version that changes anything else keeps the marker, the
// length and both checksums.
const (
	marker      = "\xa6hb\x1d"
	version     = 1
	headSize    = 64
	maxPayload  = 8 << 20
	segmentSize = 1 << 20

	flagUnsure = 1
)

// form is the encoding of a series.
type form byte

const (
	formSamples form = 1 + iota
	formBuckets
	formChanges
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// head is a block's, without its version and checksums.
type head struct {
	tier        int
	length      int
	seq, from   uint64
	epoch       uint32
	first, last int64
	offset      int64
	unsure      bool // the offset was a guess
}

// seal writes the head into the first bytes of a block whose payload follows them.
func (h head) seal(block []byte) {
	b := append(block[:0], marker...)
	b = append(b, version, byte(h.tier), 0, 0)
	if h.unsure {
		b[6] = flagUnsure
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(block)-headSize))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(block[headSize:], castagnoli))
	b = binary.LittleEndian.AppendUint64(b, h.seq)
	b = binary.LittleEndian.AppendUint64(b, h.from)
	b = binary.LittleEndian.AppendUint32(b, h.epoch)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.first))
	b = binary.LittleEndian.AppendUint64(b, uint64(h.last))
	b = binary.LittleEndian.AppendUint64(b, uint64(h.offset))
	binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// parseHead parses the first bytes of a block. The version says what can be used of it.
func parseHead(b []byte) (h head, v byte, ok bool) {
	if len(b) < headSize || string(b[:4]) != marker || crc32.Checksum(b[:60], castagnoli) != binary.LittleEndian.Uint32(b[60:]) {
		return h, 0, false
	}
	h = head{
		tier: int(b[5]), unsure: b[6]&flagUnsure != 0, length: int(binary.LittleEndian.Uint32(b[8:])),
		seq: binary.LittleEndian.Uint64(b[16:]), from: binary.LittleEndian.Uint64(b[24:]), epoch: binary.LittleEndian.Uint32(b[32:]),
		first: int64(binary.LittleEndian.Uint64(b[36:])), last: int64(binary.LittleEndian.Uint64(b[44:])), offset: int64(binary.LittleEndian.Uint64(b[52:])),
	}
	return h, b[4], h.length >= 0 && h.length <= maxPayload
}

// intact reports whether a block's payload is as it was written.
func intact(block []byte) bool {
	return crc32.Checksum(block[headSize:], castagnoli) == binary.LittleEndian.Uint32(block[12:])
}

// entry is one series of a payload.
type entry struct {
	key  string
	form form
	data []byte
}

// appendPayload appends an index and the series, whose keys are in order.
func appendPayload(b []byte, all []entry) []byte {
	b = binary.AppendUvarint(b, uint64(len(all)))
	before := ""
	for _, e := range all {
		shared := 0
		for shared < len(before) && shared < len(e.key) && before[shared] == e.key[shared] {
			shared++
		}
		before = e.key
		b = append(b, byte(shared), byte(len(e.key)-shared))
		b = append(append(b, e.key[shared:]...), byte(e.form))
		b = binary.AppendUvarint(b, uint64(len(e.data)))
	}
	for _, e := range all {
		b = append(b, e.data...)
	}
	return b
}

// maxKey is the length of a series' key in bytes that the index can have.
const maxKey = 255

// parsePayload calls yield for each series of a payload, until it returns false. With a
// key it finds that one only. The key and the data are valid during the call.
func parsePayload(b []byte, key string, yield func(e entry) bool) error {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)) {
		return errFormat
	}
	index, at := b[size:], uint64(0)
	var found []entry
	var ends []uint64
	var name []byte
	for range n {
		if len(index) < 2 || int(index[0]) > len(name) || len(index) < 3+int(index[1]) {
			return errFormat
		}
		suffix := 2 + int(index[1])
		name = append(name[:index[0]], index[2:suffix]...)
		form := form(index[suffix])
		length, size := binary.Uvarint(index[suffix+1:])
		if size <= 0 || length > uint64(len(b)) {
			return errFormat
		}
		index = index[suffix+1+size:]
		at += length
		if key == "" || string(name) == key {
			found, ends = append(found, entry{key: string(name), form: form}), append(ends, at)
			found[len(found)-1].data = b[:length] // its length, until its place is known
		}
	}
	if at > uint64(len(index)) {
		return errFormat
	}
	for i, e := range found {
		e.data = index[ends[i]-uint64(len(e.data)) : ends[i]]
		if !yield(e) {
			return nil
		}
	}
	return nil
}

// encodeBlock returns a block with these series.
func encodeBlock(h head, all []entry) []byte {
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	block := appendPayload(make([]byte, headSize, 4<<10), all)
	h.seal(block)
	return block
}
