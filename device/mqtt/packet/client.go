package packet

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// RefusedError is the error of a broker that refuses a client or a subscription.
type RefusedError struct {
	Code   byte
	Reason string // in the words of the broker
}

// refusals are reasons of CONNACK, of both versions.
var refusals = map[byte]string{
	1:    "it does not speak this version of MQTT",
	2:    "it does not take the site's name",
	3:    "it is not ready",
	4:    "the user or the password is wrong",
	5:    "the user or the password is wrong, or the user may not connect",
	0x84: "it does not speak this version of MQTT",
	0x85: "it does not take the site's name",
	0x86: "the user or the password is wrong",
	0x87: "the user or the password is wrong, or the user may not connect",
	0x88: "it is not ready",
	0x89: "it is busy",
	0x8a: "it has banned the site",
	0x97: "a quota is used up",
	0x9f: "the site connects too often",
}

func (e *RefusedError) Error() string {
	why, known := refusals[e.Code]
	if !known {
		why = fmt.Sprintf("reason %#x", e.Code)
	}
	return "the broker refuses: " + why
}

// Version reports whether the version of the protocol was refused.
func (e *RefusedError) Version() bool { return e.Code == 1 || e.Code == 0x84 }

// Greet says hello on a connection, and returns the broker's answer, which is of at most limit bytes. Where there is
// an error, or ctx ends first, it closes the connection.
func Greet(ctx context.Context, conn net.Conn, in *bufio.Reader, version byte, h Hello, limit int) (Packet, error) {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	deadline, _ := ctx.Deadline()
	conn.SetDeadline(deadline)
	_, err := conn.Write(AppendConnect(nil, version, h))
	var p Packet
	if err == nil {
		p, err = Read(in, version, limit)
	}
	switch {
	case err != nil && version == V5 && errors.Is(err, ErrMalformed):
		err = &RefusedError{Code: 0x84} // the answer of an older broker has another form
	case err != nil:
	case p.Kind != Connack:
		err = fmt.Errorf("%w: the first packet is a %d", ErrMalformed, p.Kind)
	case p.Code() != 0:
		err = &RefusedError{p.Code(), p.Reason}
	}
	if err != nil {
		conn.Close()
		return p, err
	}
	conn.SetDeadline(time.Time{})
	return p, nil
}

// Source reads the packets of a broker, within bounds.
type Source struct {
	Conn    net.Conn
	In      *bufio.Reader // of Conn
	Version byte
	Limit   int           // bytes of a packet
	Rate    int           // packets in a second, of which a long message counts for one each 2 KiB
	Silence time.Duration // of the broker, at most

	second time.Time
	n      int
}

// FloodError is the error of a broker that sends more messages in a second than the client takes.
type FloodError struct{ Rate int }

func (e *FloodError) Error() string {
	return fmt.Sprintf("the broker sends more than %d messages in a second", e.Rate)
}

// Next returns the next packet. An error ends the connection. A packet that was read after a longer silence than
// allowed, because the process was stopped, is os.ErrDeadlineExceeded: what waited may be old.
func (s *Source) Next() (Packet, error) {
	now := time.Now()
	if now.Sub(s.second) >= time.Second {
		s.second, s.n = now, 0
	}
	if s.n > s.Rate {
		return Packet{}, &FloodError{s.Rate}
	}
	s.Conn.SetReadDeadline(now.Add(s.Silence))
	p, err := Read(s.In, s.Version, s.Limit)
	if err == nil && time.Since(now) > s.Silence {
		err = os.ErrDeadlineExceeded
	}
	if err != nil {
		return p, fmt.Errorf("the broker is gone: %w", err)
	}
	s.n += 1 + len(p.Payload)>>11
	return p, nil
}
