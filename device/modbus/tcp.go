package modbus

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// errSilent is the end of the time for an answer.
var errSilent = errors.New("no answer came in time")

// errFlood is more traffic than any request has answers.
var errFlood = errors.New("it sends more than it is asked for")

// maxStrangers is the number of answers to earlier requests that are skipped while one is waited for.
const maxStrangers = 8

// tcpLine is a connection by Modbus TCP (MODBUS Messaging on TCP/IP Implementation Guide V1.0b, section 3.1.3).
type tcpLine struct {
	conn net.Conn
	last uint16 // the number of the latest request
	buf  [6 + 1 + maxMessage]byte
}

const tcpHeader = 7 // the number, the protocol, the length and the unit

// exchange sends a request and returns the values of its answer. After an error that is no exceptionError,
// and other than errSilent, the connection cannot be used any more.
func (l *tcpLine) exchange(until time.Time, unit byte, r request) ([]uint16, error) {
	l.last++
	b := binary.BigEndian.AppendUint16(l.buf[:0], l.last)
	b = append(b, 0, 0, 0, 0, unit)
	b = r.append(b)
	binary.BigEndian.PutUint16(b[4:], uint16(len(b)-6))
	l.conn.SetDeadline(until)
	defer l.conn.SetDeadline(time.Time{}) // one that is left wakes the processor
	if _, err := l.conn.Write(b); err != nil {
		return nil, silent(err)
	}
	for range maxStrangers {
		number, from, message, err := l.receive()
		switch {
		case err != nil:
			return nil, err
		case number != l.last: // a late answer to an earlier request
			continue
		case from != unit:
			return nil, strangeError("another unit answers")
		}
		return r.parse(message)
	}
	return nil, errFlood
}

// receive reads one message, which is valid until the next call.
func (l *tcpLine) receive() (number uint16, unit byte, message []byte, err error) {
	head := l.buf[:tcpHeader]
	if _, err := io.ReadFull(l.conn, head); err != nil {
		return 0, 0, nil, silent(err)
	}
	length := int(binary.BigEndian.Uint16(head[4:])) - 1
	if protocol := binary.BigEndian.Uint16(head[2:]); protocol != 0 || length < 1 || length > maxMessage {
		return 0, 0, nil, strangeError("it does not speak Modbus TCP")
	}
	number, unit = binary.BigEndian.Uint16(head), head[6]
	message = l.buf[tcpHeader : tcpHeader+length]
	if _, err := io.ReadFull(l.conn, message); err != nil {
		return 0, 0, nil, errors.Join(strangeError("a part of an answer is missing"), err)
	}
	return number, unit, message, nil
}

// silent returns errSilent for the end of a deadline.
func silent(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errSilent
	}
	return err
}

// abort closes the connection. What was not sent is not sent any more.
func (l *tcpLine) abort() { l.conn.Close() }
