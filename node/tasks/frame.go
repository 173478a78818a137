package tasks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"agentsite/node/identity"
)

// A task's file is magic and frames:
//
//	length of the payload (4), CRC-32C of those four bytes (4), payload (CBOR), CRC-32C of it (4)
//
// Numbers are big-endian. The CRC of the length distinguishes an incomplete frame, after a power
// failure, from a changed one.
const (
	magic      = "agentsite task 1\n"
	magicBegin = "agentsite task "
	frameSize  = 4 + 4 + 4 // without the payload
	maxFrame   = maxFile
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	codec      = identity.NewCodec(4)

	// errTorn is the error of a frame whose end was not written: it is missing or zero.
	errTorn = errors.New("the last entry is not complete")
	// errDamaged is wrapped by the errors of a file that was changed.
	errDamaged = errors.New("the task's file is damaged")
	// errNewer is the error of a file of another version of this program.
	errNewer = errors.New("another version of this program wrote the task's file")
)

func appendFrame(b []byte, e *entry) ([]byte, error) {
	payload, err := codec.Encode(e)
	if err != nil {
		return b, err
	}
	start := len(b)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
	b = append(b, payload...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(payload, castagnoli)), nil
}

// withoutZeros returns b without trailing zeros. After a loss of power, a file can have its new
// length with zeros in place of data that was not on the disk yet.
func withoutZeros(b []byte) []byte { return bytes.TrimRight(b, "\x00") }

// parseFrame parses the first frame of b. An error is errTorn or wraps errDamaged.
func parseFrame(b []byte) (e entry, size int, err error) {
	written := withoutZeros(b)
	if len(written) < 8 {
		return e, 0, errTorn
	}
	length := binary.BigEndian.Uint32(b)
	if binary.BigEndian.Uint32(b[4:]) != crc32.Checksum(b[:4], castagnoli) || length > maxFrame {
		return e, 0, fmt.Errorf("%w: the length of an entry was changed", errDamaged)
	}
	size = frameSize + int(length)
	if len(b) < size {
		return e, 0, errTorn
	}
	payload := b[8 : 8+length]
	if binary.BigEndian.Uint32(b[8+length:]) != crc32.Checksum(payload, castagnoli) {
		if len(written) < size {
			return e, 0, errTorn
		}
		return e, 0, fmt.Errorf("%w: an entry was changed", errDamaged)
	}
	if err := codec.Decode(payload, &e); err != nil {
		return e, 0, fmt.Errorf("%w: an entry cannot be read (%v); another version of this program may have written it", errDamaged, err)
	}
	return e, size, nil
}

// decode reads a file. good is the length of its intact part. For a damaged file the error wraps
// errDamaged, and r has the entries before the damage. A file without a first entry, from a crash
// before the task was acknowledged, returns errTorn. An incomplete end is no error.
func decode(b []byte) (r record, good int, err error) {
	switch {
	case strings.HasPrefix(magic, string(withoutZeros(b))):
		return r, 0, errTorn
	case len(b) > maxFile:
		return r, 0, fmt.Errorf("%w: it is too long", errDamaged)
	case !bytes.HasPrefix(b, []byte(magic)):
		if bytes.HasPrefix(b, []byte(magicBegin)) {
			return r, 0, errNewer
		}
		return r, 0, fmt.Errorf("%w: its beginning was changed", errDamaged)
	}
	for good = len(magic); good < len(b); {
		e, size, err := parseFrame(b[good:])
		if err == errTorn {
			break
		}
		if err == nil {
			err = r.apply(&e)
		}
		if err != nil {
			return r, good, err
		}
		good += size
	}
	if r.state == "" {
		return r, good, errTorn
	}
	return r, good, nil
}
