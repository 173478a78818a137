package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"agentsite/node/identity"
)

// A segment is a header and frames:
//
//	header: magic (with the version), sequence of the first entry (8 bytes), hash of
//	        the entry before it (32)
//	frame:  length of the payload (4), CRC-32C of those four bytes (4), payload (CBOR),
//	        SHA-256 of the hash before and the payload (32)
//
// Numbers are big-endian. The CRC distinguishes an incomplete frame, after a power failure,
// from a changed one.
const (
	magic      = "agentsite journal 1\n"
	headerSize = len(magic) + 8 + sha256.Size
	frameSize  = 4 + 4 + sha256.Size // without the payload
	maxPayload = 64 << 10
)

type hash = [sha256.Size]byte

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrDamaged is wrapped by the errors of Read and Open for a journal that was changed.
var ErrDamaged = errors.New("the journal is damaged")

// errTorn is the error of a header or a frame whose end was not written: it is missing or zero.
var errTorn = errors.New("the last entry is not complete")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

func appendHeader(b []byte, first uint64, before hash) []byte {
	b = append(b, magic...)
	b = binary.BigEndian.AppendUint64(b, first)
	return append(b, before[:]...)
}

func parseHeader(b []byte) (first uint64, before hash, err error) {
	if len(b) < headerSize {
		return 0, before, errTorn
	}
	if string(b[:len(magic)]) != magic {
		return 0, before, damaged("it begins with %q and not with %q; a newer program may have written it", b[:len(magic)], magic)
	}
	first = binary.BigEndian.Uint64(b[len(magic):])
	copy(before[:], b[len(magic)+8:])
	return first, before, nil
}

var codec = identity.NewCodec(4)

// appendFrame appends the entry and returns the hash that the next one is chained to.
func appendFrame(b []byte, e Entry, before hash) ([]byte, hash, error) {
	payload, err := codec.Encode(e)
	if err != nil {
		return b, before, err
	}
	if len(payload) > maxPayload {
		return b, before, fmt.Errorf("an entry of %d bytes is longer than %d", len(payload), maxPayload)
	}
	start := len(b)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
	b = append(b, payload...)
	after := chain(before, payload)
	return append(b, after[:]...), after, nil
}

func chain(before hash, payload []byte) hash {
	h := sha256.New()
	h.Write(before[:])
	h.Write(payload)
	return hash(h.Sum(nil))
}

// withoutZeros returns b without trailing zeros. After a loss of power, a file can have its new
// length with zeros in place of data that was not on the disk yet.
func withoutZeros(b []byte) []byte { return bytes.TrimRight(b, "\x00") }

// frame is an entry as it is hashed.
type frame struct {
	payload       []byte
	before, after hash // after is the hash of before and payload
}

// parseFrame parses the first frame of b. An error is errTorn or wraps ErrDamaged.
func parseFrame(b []byte, before hash) (e Entry, f frame, size int, err error) {
	written := withoutZeros(b)
	if len(written) < 8 {
		return e, f, 0, errTorn
	}
	length := binary.BigEndian.Uint32(b)
	if binary.BigEndian.Uint32(b[4:]) != crc32.Checksum(b[:4], castagnoli) || length > maxPayload {
		return e, f, 0, damaged("the length of an entry was changed")
	}
	size = frameSize + int(length)
	if len(b) < size {
		return e, f, 0, errTorn
	}
	payload := b[8 : 8+length]
	after := chain(before, payload)
	if !bytes.Equal(after[:], b[8+length:size]) {
		// A torn frame ends in zeros, and the rest of its hash is right.
		if sum := written[min(8+int(length), len(written)):]; bytes.HasPrefix(after[:], sum) || len(sum) == 0 {
			return e, f, 0, errTorn
		}
		return e, f, 0, damaged("an entry was changed")
	}
	if err := codec.DecodeAny(payload, &e); err != nil {
		return e, f, 0, damaged("an entry cannot be read: %v; a newer program may have written it", err)
	}
	return e, frame{payload, before, after}, size, nil
}
