package proc

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/device/guard"
)

// A message is its length (uint32, of the rest), a kind (byte), a number (uint32) that an answer
// repeats, and the body of its kind. Numbers are big-endian; a text is its length (uint16) and its
// bytes. Both ends are the same program: hello has a version, and no field is optional.
const (
	version     = 14
	maxMessage  = 1 << 20
	headerBytes = 4 + 1 + 4
)

type kind byte

const (
	// From the site.
	beat     kind = iota + 1 // "I am here"; answered
	move                     // epoch, age, holder, output, value, length
	release                  // output
	takeOver                 // holder, output
	told                     // reading, with its full address
	stop
	reset    // epoch, stops
	sample   // device
	watch    // device
	show     // device, point, text
	capture  // device, point
	alive    // answered by the loop that keeps the deadlines
	try      // as move; nothing moves
	plan     // the text of the next plan
	renew    // as move; for the present holder only
	moveOver // as move, and from; also while from holds it
	simulate // device, reading; for fakes
	// From the guard.
	answer  // a fault or none, and the result
	hello   // version
	state   // epoch, stopped, stops, outputs
	reading // reading, of the watch with that number
)

// reads reports whether a request only reads a device. Its answer can take long, and has no
// effect on the outputs.
func (k kind) reads() bool {
	return k == sample || k == watch || k == show || k == capture || k == simulate
}

var errMessage = errors.New("a message of the guard's connection is damaged")

// link is one end of the connection. Its methods except next are safe for concurrent use.
type link struct {
	conn io.ReadWriteCloser

	sending sync.Mutex
	out     writer

	in *bufio.Reader
	b  []byte // the body of the last message
}

func newLink(conn io.ReadWriteCloser) *link { return &link{conn: conn, in: bufio.NewReader(conn)} }

// send writes one message. It calls body just before writing, so that ages are exact.
func (l *link) send(k kind, number uint32, body func(w *writer)) error {
	l.sending.Lock()
	defer l.sending.Unlock()
	l.out.b = append(l.out.b[:0], 0, 0, 0, 0, byte(k))
	l.out.uint32(number)
	if body != nil {
		body(&l.out)
	}
	if len(l.out.b)-4 > maxMessage {
		return fmt.Errorf("a message of %d bytes is too large", len(l.out.b))
	}
	binary.BigEndian.PutUint32(l.out.b, uint32(len(l.out.b)-4))
	_, err := l.conn.Write(l.out.b)
	return err
}

// next blocks for one message. The result is valid until the next call.
func (l *link) next() (k kind, number uint32, body reader, err error) {
	var header [headerBytes]byte
	if _, err := io.ReadFull(l.in, header[:]); err != nil {
		return 0, 0, reader{}, err
	}
	size := binary.BigEndian.Uint32(header[:]) - (headerBytes - 4)
	if size > maxMessage { // or negative
		return 0, 0, reader{}, errMessage
	}
	if uint32(cap(l.b)) < size {
		l.b = make([]byte, size)
	}
	l.b = l.b[:size]
	if _, err := io.ReadFull(l.in, l.b); err != nil {
		return 0, 0, reader{}, err
	}
	return kind(header[4]), binary.BigEndian.Uint32(header[5:]), reader{b: l.b}, nil
}

// writer encodes a body.
type writer struct{ b []byte }

func (w *writer) byte(v byte)     { w.b = append(w.b, v) }
func (w *writer) uint32(v uint32) { w.b = binary.BigEndian.AppendUint32(w.b, v) }
func (w *writer) uint64(v uint64) { w.b = binary.BigEndian.AppendUint64(w.b, v) }

func (w *writer) bool(v bool) {
	if v {
		w.byte(1)
	} else {
		w.byte(0)
	}
}

func (w *writer) duration(v time.Duration) { w.uint64(uint64(v)) }

// text is truncated to the maximum length.
func (w *writer) text(v string) {
	v = v[:min(len(v), math.MaxUint16)]
	w.b = binary.BigEndian.AppendUint16(w.b, uint16(len(v)))
	w.b = append(w.b, v...)
}

func (w *writer) value(v device.Value) {
	w.byte(byte(v.Type()))
	switch v.Type() {
	case device.TypeNumber, device.TypeBool:
		w.uint64(math.Float64bits(v.Number()))
	case device.TypeText:
		w.text(v.Text())
	}
}

// fault encodes a fault; an empty kind is success.
func (w *writer) fault(err error) {
	if err == nil {
		w.text("")
		return
	}
	f := device.AsFault(err)
	w.text(string(f.Kind))
	w.text(f.Msg)
	w.text(f.Short)
	w.duration(f.After)
	w.uint32(uint32(len(f.Names)))
	for _, name := range f.Names {
		w.text(name)
	}
}

func (w *writer) reading(r device.Reading) {
	w.text(r.Point)
	w.value(r.Value)
	w.text(string(r.Quality))
	w.text(r.Why)
	w.duration(time.Since(r.At))
}

func (w *writer) status(s guard.Status) {
	w.text(s.Output)
	w.value(s.Value)
	w.value(s.Goal)
	w.bool(s.Safe)
	w.text(s.Holder)
	w.duration(s.Left)
	w.duration(s.Rest)
	w.duration(s.Spare)
	w.duration(s.MaxOn)
	w.duration(s.Duty)
	w.duration(s.Assumed)
	w.text(s.Why)
	w.text(s.Lacks)
	w.text(s.Fault)
	w.uint64(uint64(s.State))
	w.value(s.Set)
	w.value(s.Measured)
	w.duration(s.SetAge)
	w.duration(s.MeasuredAge)
	w.text(string(s.Effect))
	w.bool(s.Latched)
}

func (w *writer) bytes(b []byte) {
	w.uint32(uint32(len(b)))
	w.b = append(w.b, b...)
}

func (w *writer) image(i device.Image) {
	w.text(i.MIME)
	w.duration(time.Since(i.At))
	w.bytes(i.Data)
}

// reader decodes a body. Errors are reported once, by end.
type reader struct {
	b   []byte
	err error
}

func (r *reader) take(n uint32) []byte {
	if r.err != nil || uint64(len(r.b)) < uint64(n) {
		r.err, r.b = errMessage, nil
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

// fixed returns the n bytes of a number, at most eight; zeros when they are missing.
func (r *reader) fixed(n uint32) []byte {
	if b := r.take(n); b != nil {
		return b
	}
	return make([]byte, n)
}

func (r *reader) byte() byte     { return r.fixed(1)[0] }
func (r *reader) uint32() uint32 { return binary.BigEndian.Uint32(r.fixed(4)) }
func (r *reader) uint64() uint64 { return binary.BigEndian.Uint64(r.fixed(8)) }

func (r *reader) bool() bool {
	switch r.byte() {
	case 0:
		return false
	case 1:
		return true
	}
	r.err = errMessage
	return false
}

func (r *reader) duration() time.Duration { return time.Duration(r.uint64()) }

func (r *reader) text() string { return string(r.take(uint32(binary.BigEndian.Uint16(r.fixed(2))))) }

func (r *reader) value() device.Value {
	switch device.Type(r.byte()) {
	case device.TypeNone:
		return device.Value{}
	case device.TypeNumber:
		return device.Number(math.Float64frombits(r.uint64()))
	case device.TypeBool:
		return device.Bool(math.Float64frombits(r.uint64()) != 0)
	case device.TypeText:
		return device.Text(r.text())
	}
	r.err = errMessage
	return device.Value{}
}

func (r *reader) fault() error {
	kind := r.text()
	if kind == "" {
		return nil
	}
	f := &device.Fault{Kind: device.FaultKind(kind), Msg: r.text(), Short: r.text(), After: r.duration()}
	for n := r.uint32(); n > 0 && r.err == nil; n-- {
		f.Names = append(f.Names, r.text())
	}
	return f
}

// reading computes the time from the age: two processes agree on durations, not on times.
func (r *reader) reading() device.Reading {
	out := device.Reading{Point: r.text(), Value: r.value(), Quality: device.Quality(r.text()), Why: r.text()}
	out.At = time.Now().Add(-max(0, r.duration()))
	return out
}

// sequence keeps the readings of each point in the order in which they were sent. A time that is
// computed from an age is late by the delay of the message.
type sequence map[string]time.Time

func (q sequence) keep(r device.Reading) device.Reading {
	if last := q[r.Point]; r.At.Before(last) {
		r.At = last
	}
	q[r.Point] = r.At
	return r
}

func (r *reader) status() guard.Status {
	return guard.Status{
		Output: r.text(), Value: r.value(), Goal: r.value(), Safe: r.bool(), Holder: r.text(),
		Left: r.duration(), Rest: r.duration(), Spare: r.duration(),
		MaxOn: r.duration(), Duty: r.duration(), Assumed: r.duration(), Why: r.text(), Lacks: r.text(), Fault: r.text(),
		State: int64(r.uint64()), Set: r.value(), Measured: r.value(), SetAge: r.duration(), MeasuredAge: r.duration(),
		Effect: guard.Effect(r.text()), Latched: r.bool(),
	}
}

func (r *reader) image() device.Image {
	i := device.Image{MIME: r.text(), At: time.Now().Add(-max(0, r.duration()))}
	i.Data = r.bytes()
	return i
}

func (r *reader) bytes() []byte { return slices.Clone(r.take(r.uint32())) }

// end returns the error of a damaged or too long body.
func (r *reader) end() error {
	if r.err == nil && len(r.b) > 0 {
		r.err = errMessage
	}
	return r.err
}
