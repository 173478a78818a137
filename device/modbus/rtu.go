package modbus

import (
	"bytes"
	"encoding/binary"
	"time"

	"agentsite/device/board"
)

// rtuLine is a serial line with frames of Modbus RTU (MODBUS over Serial Line Specification V1.02, section
// 2.5.1). Go sees no gaps of 1.5 characters: a frame is known by its length and its checksum, and what is
// around it is refused.
type rtuLine struct {
	port  board.SerialPort
	char  time.Duration // of one character, of eleven bits
	gap   time.Duration // silence between frames, at least 3.5 characters
	heard time.Time     // when something was sent or received last
	buf   [512]byte
}

func newRTULine(port board.SerialPort, baud int) *rtuLine {
	l := &rtuLine{port: port, char: 11 * time.Second / time.Duration(baud)}
	l.gap = max(l.char*7/2, 1750*time.Microsecond)
	return l
}

const (
	rtuFrame   = 1 + maxMessage + 2
	glitches   = 2    // bytes beside a frame that the change of direction may make
	maxDropped = 8192 // bytes that nobody waits for; the kernel keeps 4096

	strangerGap = 200 * time.Millisecond // in which a unit answers another master
)

// errTalk is a line that is not free. Nothing was sent.
const errTalk = strangeError("somebody else talks on the line, which can have one master only")

// exchange sends a request and returns the values of its answer. After errSilent the answer may still come:
// see unit.owed.
func (l *rtuLine) exchange(until time.Time, id byte, r request) ([]uint16, error) {
	defer l.port.SetWriteDeadline(time.Time{}) // one that is left wakes the processor
	defer l.port.SetReadDeadline(time.Time{})
	half := time.Now().Add(time.Until(until) / 2)
	if err := l.drain(until); err != nil {
		return nil, err
	}
	if time.Now().After(half) {
		return nil, errTalk
	}
	var frame [rtuFrame]byte
	b := r.append(append(frame[:0], id))
	b = binary.LittleEndian.AppendUint16(b, checksum(b))
	l.port.SetWriteDeadline(until)
	if _, err := l.port.Write(b); err != nil {
		return nil, err
	}
	l.heard = time.Now().Add(time.Duration(len(b)) * l.char) // the end of the sending
	until = until.Add(time.Duration(len(b)) * l.char)
	for n := 0; ; {
		l.port.SetReadDeadline(until)
		more, err := l.port.Read(l.buf[n:])
		if n += more; more > 0 {
			l.heard = time.Now()
		}
		message, possible := findFrame(l.buf[:n], id, r)
		switch {
		case message != nil:
			return r.parse(message)
		case bytes.HasPrefix(l.buf[:n], b):
			return nil, l.refuse(until, "the port hears what it sends; switch the echo of the adapter off")
		case !possible:
			return nil, l.refuse(until,
				"what was received is no answer to it; check that no other master is on the line, baud and "+
					"parity, and the wires A and B")
		case err != nil && silent(err) == errSilent && n > 0:
			return nil, strangeError(
				"its answer is incomplete or damaged; check baud and parity, and the wires A and B")
		case err != nil:
			return nil, silent(err)
		}
	}
}

// findFrame looks for the answer to r in what was received, among at most some glitches. It returns nil, and
// whether the answer is still possible when more is received.
func findFrame(b []byte, id byte, r request) (message []byte, possible bool) {
	for start := range glitches + 1 {
		if start >= len(b) {
			return nil, true
		}
		f := b[start:]
		length := 1 + r.answerBytes() + 2
		switch {
		case f[0] != id:
			continue
		case len(f) < 2:
			return nil, true
		case f[1] == r.function|isException:
			length = 1 + 2 + 2
		case f[1] != r.function:
			continue
		}
		switch {
		case len(f) < length:
			possible = true
		case len(f) <= length+glitches && binary.LittleEndian.Uint16(f[length-2:]) == checksum(f[:length-2]):
			return f[1 : length-2], true
		}
	}
	return nil, possible
}

// drain drops what was received, and waits until the line was silent for as long as between two frames. After
// bytes that nobody waited for it waits longer: they may be another master's request, whose answer would look like
// ours.
func (l *rtuLine) drain(until time.Time) error {
	for dropped := 0; ; {
		gap := l.gap
		if dropped > glitches {
			gap = strangerGap
		}
		l.port.SetReadDeadline(time.Now().Add(max(time.Until(l.heard.Add(gap)), time.Millisecond)))
		n, err := l.port.Read(l.buf[:])
		if dropped += n; n > 0 {
			l.heard = time.Now()
		}
		switch {
		case dropped > maxDropped || n > 0 && l.heard.After(until):
			return errFlood
		case err == nil:
		case silent(err) == errSilent:
			return nil
		default:
			return err
		}
	}
}

// refuse drops what comes in the time for the answer, which the unit itself may still send, and returns why.
func (l *rtuLine) refuse(until time.Time, why string) error {
	for dropped := 0; dropped <= maxDropped; {
		l.port.SetReadDeadline(until)
		n, err := l.port.Read(l.buf[:])
		dropped += n
		l.heard = time.Now()
		switch {
		case err == nil:
		case silent(err) == errSilent:
			return strangeError(why)
		default:
			return err
		}
	}
	return errFlood
}

func (l *rtuLine) abort() { l.port.Close() }

// checksum is the CRC-16 of appendix B, with its low byte first on the line.
func checksum(b []byte) uint16 {
	crc := uint16(0xFFFF)
	for _, c := range b {
		crc ^= uint16(c)
		for range 8 {
			odd := crc&1 != 0
			crc >>= 1
			if odd {
				crc ^= 0xA001
			}
		}
	}
	return crc
}
