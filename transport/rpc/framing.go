package rpc

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// frameReader reads messages from a byte stream.
type frameReader interface {
	// next returns a message, still encoded, in a slice of its own; io.EOF after the last.
	next() ([]byte, error)
}

// newFrameReader returns a reader of JSON lines or of a CBOR sequence. It fails with
// errTooLong for a message whose length satisfies tooLong.
func newFrameReader(codec Codec, r *bufio.Reader, tooLong func(n int) bool) frameReader {
	if codec == CBOR {
		return &cborItems{r: r, tooLong: tooLong, skips: true}
	}
	return &Lines{r, tooLong}
}

var (
	errTooLong  = errors.New("a message is longer than the limit")
	errUnframed = errors.New("what comes is no sequence of CBOR items of definite length")
)

// maxSkipped bounds a message that is skipped.
const maxSkipped = 16 << 20

// LongLine is the error of a line, or an item of CBOR, of more than MaxMessage bytes, which was skipped: the
// next one can be read. ID is that of its message; in JSON, where it stands at its beginning or its end.
type LongLine struct{ ID ID }

func (*LongLine) Error() string { return errTooLong.Error() }

// Lines reads messages in JSON, one a line.
type Lines struct {
	r       *bufio.Reader
	tooLong func(n int) bool
}

// NewLines returns a reader of lines of at most MaxMessage bytes.
func NewLines(r io.Reader) *Lines {
	return &Lines{bufio.NewReader(r), func(n int) bool { return n > MaxMessage }}
}

// Next returns a line without its end, in a slice of its own; io.EOF after the last. After a *LongLine
// it can be called again.
func (l *Lines) Next() ([]byte, error) { return l.next() }

// skip reads the rest of a line whose beginning is too long. It fails with errTooLong where the peer may
// send no line of that length, or none ends.
func (l *Lines) skip(begin []byte, err error) error {
	// A line that begins with neither an object nor an array is no message, and needs no end.
	if message := bytes.TrimLeft(begin, " \t\r"); len(begin) <= MaxMessage || len(message) == 0 || message[0] != '{' && message[0] != '[' {
		return errTooLong
	}
	const kept = 512
	end := begin[len(begin)-kept:]
	for n := len(begin); errors.Is(err, bufio.ErrBufferFull); {
		var part []byte
		part, err = l.r.ReadSlice('\n')
		if n += len(part); n > maxSkipped {
			return errTooLong
		}
		end = append(bytes.Clone(end), part...)
		end = end[max(0, len(end)-kept):]
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return &LongLine{idOfLine(begin, end)}
}

// lastID is an ID as the last member of an object that ends there, as Python's SDK writes it.
var lastID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[,{]\s*"id"\s*:\s*("[^"\\]{0,128}"|-?[0-9]{1,20})\s*(,\s*"jsonrpc"\s*:\s*"2.0"\s*)?}\s*$`)
})

// idOfLine returns the ID of a message by the beginning and the end of its line; the zero ID for none.
func idOfLine(begin, end []byte) (id ID) {
	d := jsontext.NewDecoder(bytes.NewReader(begin), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return ID{}
	}
	for {
		name, err := d.ReadToken()
		switch {
		case err == nil && name.Kind() == '"' && name.String() == "id":
			if v, err := d.ReadValue(); err == nil && json.Unmarshal(v, &id) == nil {
				return id
			}
			return ID{}
		case err != nil || name.Kind() != '"' || d.SkipValue() != nil:
			if m := lastID().FindSubmatch(end); m != nil && json.Unmarshal(m[1], &id) == nil {
				return id
			}
			return ID{}
		}
	}
}

// next returns a line without its end, which may be missing on the last. It skips empty
// lines.
func (l *Lines) next() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		if l.tooLong(len(line) + len(part)) {
			return nil, l.skip(append(line, part...), err)
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(line) > 0: // the next call says EOF again
		case err != nil:
			return nil, err
		}
		if line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")); len(line) > 0 {
			return line, nil
		}
	}
}

// Sequence reads a CBOR sequence (RFC 8742).
type Sequence struct{ cborItems }

func NewSequence(r io.Reader) *Sequence {
	return &Sequence{cborItems{r: bufio.NewReader(r), tooLong: exceedsMaxAnswer}}
}

// Next returns the next message, still encoded. It reads at most MaxAnswer bytes for it: a longer
// message fails with io.ErrUnexpectedEOF, as a truncated one does. After the last message it
// returns io.EOF.
func (s *Sequence) Next() ([]byte, error) {
	item, err := s.next()
	if errors.Is(err, errTooLong) {
		err = io.ErrUnexpectedEOF
	}
	return item, err
}

// cborItems are a CBOR sequence. It reads only heads, each once; the decoder checks the content
// between them.
type cborItems struct {
	r       *bufio.Reader
	tooLong func(n int) bool
	skips   bool   // it fails with *LongLine for a map that is too long
	buf     []byte // of the message that is being read, or of the last part of one that is skipped
	at      int    // where the last item begins in buf
	skipped int    // how long a message is that is skipped, so far; 0 for one that is kept
}

func (s *cborItems) next() ([]byte, error) {
	if _, err := s.r.Peek(1); err != nil {
		return nil, err
	}
	buffered, _ := s.r.Peek(s.r.Buffered())
	if n := itemLength(buffered); n > 0 && !s.tooLong(n) {
		s.r.Discard(n)
		return bytes.Clone(buffered[:n]), nil
	}
	if cap(s.buf) > 64<<10 {
		s.buf = nil
	}
	s.buf, s.skipped = s.buf[:0], 0
	var id ID
	var members uint64 // keys and values of the message that are still to come
	named := false     // the last one is the key of the ID
	for left, first := uint64(1), true; left > 0; left, first = left-1, false {
		if s.skipped > 0 {
			s.buf = s.buf[:0]
		}
		s.at = len(s.buf)
		holds, err := s.readHead()
		if err == nil {
			err = s.admit(left - 1 + holds) // each takes a byte at least
		}
		if err != nil {
			if errors.Is(err, io.EOF) && len(s.buf)+s.skipped > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		switch item := s.buf[s.at:]; {
		case first:
			members = holds
		case left != members: // within a value
		case members%2 == 0:
			named, members = string(item) == "\x62id", members-1
		default:
			if named && id.IsZero() && len(item) > 0 {
				_ = id.UnmarshalCBOR(item) // or it has none
			}
			members--
		}
		left += holds
	}
	if s.skipped > 0 {
		return nil, &LongLine{id}
	}
	return bytes.Clone(s.buf), nil
}

// maxLength is more than a message may be long, and so little that no sum overflows, in an
// int of 32 bits either.
const maxLength = 1 << 29

// admit lets n bytes more come. Where that makes a message too long it begins to skip it, or fails.
func (s *cborItems) admit(n uint64) error {
	if s.skipped == 0 {
		if n <= maxLength && !s.tooLong(len(s.buf)+int(n)) {
			return nil
		}
		if !s.skips || s.buf[0]>>5 != cborMap || s.tooLong(MaxMessage) {
			return errTooLong
		}
		s.skipped = len(s.buf)
		s.buf, s.at = bytes.Clone(s.buf[s.at:]), 0
	}
	if n > maxSkipped || s.skipped+int(n) > maxSkipped {
		return errTooLong
	}
	return nil
}

// readHead takes in the head of an item, and the text that belongs to it, and returns how many
// items it holds.
func (s *cborItems) readHead() (holds uint64, err error) {
	first, err := s.r.ReadByte()
	if err != nil {
		return 0, err
	}
	s.buf = append(s.buf, first)
	if s.skipped > 0 {
		s.skipped++
	}
	switch short := first & 31; {
	case short > 27: // reserved, or without a length
		return 0, errUnframed
	case short > 23:
		if err := s.readBytes(1 << (short - 24)); err != nil {
			return 0, err
		}
	}
	switch kind, n, _ := cutHead(s.buf[s.at:]); kind {
	case cborBytes, cborText:
		return 0, s.readBytes(n)
	case cborList:
		return min(n, maxLength+1), nil
	case cborMap:
		return 2 * min(n, maxLength+1), nil
	case cborTag:
		return 1, nil
	}
	return 0, nil
}

// readBytes takes in n bytes, with room made as they come. Those of a message that is skipped it drops, and
// all of their item, unless they are few.
func (s *cborItems) readBytes(n uint64) error {
	if err := s.admit(n); err != nil {
		return err
	}
	if s.skipped > 0 {
		s.skipped += int(n)
		if n > 128 {
			s.buf, s.at = s.buf[:0], 0
			_, err := s.r.Discard(int(n))
			return err
		}
	}
	for n > 0 {
		part, at := int(min(n, 4<<10)), len(s.buf)
		s.buf = slices.Grow(s.buf, part)[:at+part]
		if _, err := io.ReadFull(s.r, s.buf[at:]); err != nil {
			return err
		}
		n -= uint64(part)
	}
	return nil
}
