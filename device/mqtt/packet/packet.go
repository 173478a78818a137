// Package packet reads and writes the packets of MQTT 5 and 3.1.1 that a client needs which
// publishes at QoS 0 and 1 and subscribes at most at QoS 1.
package packet

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// The versions of the protocol, as CONNECT writes them.
const (
	V311 byte = 4
	V5   byte = 5
)

// Kind is the type of a packet.
type Kind byte

const (
	Connect     Kind = 1
	Connack     Kind = 2
	Publish     Kind = 3
	Puback      Kind = 4
	Subscribe   Kind = 8
	Suback      Kind = 9
	Unsubscribe Kind = 10
	Unsuback    Kind = 11
	Pingreq     Kind = 12
	Pingresp    Kind = 13
	Disconnect  Kind = 14
)

// Properties of MQTT 5 that are used; the others are skipped by their form.
const (
	propExpiry          = 0x02
	propServerKeepAlive = 0x13
	propReason          = 0x1f
	propTopicAlias      = 0x23
	propMaxPacket       = 0x27
)

// ErrMalformed is the error of a packet that the protocol does not allow.
var ErrMalformed = errors.New("not MQTT")

// ErrLong is the error of a packet that is longer than its reader takes.
var ErrLong = errors.New("a packet is too long")

// Packet is one packet. What its kind does not have is zero.
type Packet struct {
	Kind Kind
	ID   uint16

	// Of Publish.
	Topic   string
	Payload []byte
	QoS     byte
	Retain  bool
	Dup     bool

	Codes     []byte // of Suback, one for each filter; of Connack, Puback and Disconnect at most one
	Reason    string // why, in the words of the server
	KeepAlive uint16 // of Connack: the seconds that the server wants; 0 leaves the client's
	MaxPacket uint32 // of Connack: the longest packet that the server takes; 0 for any
}

// Code returns the reason code of a packet that has one; 0 is success.
func (p Packet) Code() byte {
	if len(p.Codes) == 0 {
		return 0
	}
	return p.Codes[0]
}

// Read reads one packet of at most limit bytes after its header.
func Read(r *bufio.Reader, version byte, limit int) (Packet, error) {
	first, err := r.ReadByte()
	if err != nil {
		return Packet{}, err
	}
	length := 0
	for shift := 0; ; shift += 7 {
		b, err := r.ReadByte()
		if err != nil {
			return Packet{}, noEOF(err)
		}
		length |= int(b&0x7f) << shift
		if length > limit {
			return Packet{}, ErrLong
		}
		if b < 0x80 {
			break
		}
		if shift == 21 {
			return Packet{}, fmt.Errorf("%w: a length of five bytes", ErrMalformed)
		}
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(r, body); err != nil {
		return Packet{}, noEOF(err)
	}
	return parse(first, body, version)
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// parse reads the packet with that first byte and that rest.
func parse(first byte, body []byte, version byte) (Packet, error) {
	p := Packet{Kind: Kind(first >> 4)}
	b := &buffer{rest: body}
	flags := first & 0x0f
	if p.Kind != Publish && flags != 0 {
		return p, fmt.Errorf("%w: flags %#x of a packet %d", ErrMalformed, flags, p.Kind)
	}
	switch p.Kind {
	case Connack:
		b.byte() // whether there is a session
		p.Codes = []byte{b.byte()}
	case Publish:
		p.Retain, p.QoS, p.Dup = flags&1 != 0, flags>>1&3, flags&8 != 0
		if p.Topic = b.text(); p.QoS > 0 {
			p.ID = b.uint16()
		}
		if p.QoS > 1 || p.QoS == 1 && p.ID == 0 { // a subscription at QoS 1 gets no more
			return p, fmt.Errorf("%w: a message of QoS %d with the ID %d", ErrMalformed, p.QoS, p.ID)
		}
	case Puback, Suback, Unsuback:
		p.ID = b.uint16()
		if p.Kind == Puback && len(b.rest) > 0 {
			p.Codes = []byte{b.byte()}
		}
	case Disconnect:
		if len(b.rest) > 0 {
			p.Codes = []byte{b.byte()}
		}
	case Pingreq, Pingresp:
	default:
		return p, fmt.Errorf("%w: a packet %d", ErrMalformed, p.Kind)
	}
	if version == V5 && len(b.rest) > 0 && p.Kind != Pingreq && p.Kind != Pingresp {
		b.properties(&p)
	}
	switch p.Kind {
	case Publish:
		p.Payload = b.rest
		if p.Topic == "" || strings.ContainsAny(p.Topic, "+#") {
			b.bad = true
		}
	case Suback, Unsuback:
		p.Codes = b.rest
	}
	if b.bad {
		return p, fmt.Errorf("%w: a packet %d that is cut or wrong", ErrMalformed, p.Kind)
	}
	return p, nil
}

// buffer takes the parts of a packet; bad is set when it was too short or wrong.
type buffer struct {
	rest []byte
	bad  bool
}

func (b *buffer) take(n int) []byte {
	if n > len(b.rest) {
		b.bad, b.rest = true, nil
		return make([]byte, min(n, 4))
	}
	part := b.rest[:n]
	b.rest = b.rest[n:]
	return part
}

func (b *buffer) byte() byte     { return b.take(1)[0] }
func (b *buffer) uint16() uint16 { return binary.BigEndian.Uint16(b.take(2)) }
func (b *buffer) uint32() uint32 { return binary.BigEndian.Uint32(b.take(4)) }

func (b *buffer) text() string {
	n := int(b.uint16())
	text := b.take(n)
	if b.bad {
		return ""
	}
	if !utf8.Valid(text) || strings.IndexByte(string(text), 0) >= 0 {
		b.bad = true
	}
	return string(text)
}

// length takes a length of one to four bytes.
func (b *buffer) length() (n int) {
	for shift := 0; shift <= 21; shift += 7 {
		c := b.byte()
		n |= int(c&0x7f) << shift
		if c < 0x80 {
			return n
		}
	}
	b.bad = true
	return 0
}

// properties takes the properties of MQTT 5, of which p gets those that it has.
func (b *buffer) properties(p *Packet) {
	list := &buffer{rest: b.take(b.length())}
	for len(list.rest) > 0 && !b.bad && !list.bad {
		switch id := list.byte(); id {
		case 0x01, 0x17, 0x19, 0x24, 0x25, 0x28, 0x29, 0x2a: // one byte
			list.byte()
		case propServerKeepAlive:
			p.KeepAlive = list.uint16()
		case propTopicAlias: // the client allowed none
			b.bad = true
		case 0x21, 0x22: // two bytes
			list.uint16()
		case propMaxPacket:
			p.MaxPacket = list.uint32()
		case 0x02, 0x11, 0x18: // four bytes
			list.uint32()
		case 0x0b:
			list.length()
		case propReason:
			p.Reason = list.text()
		case 0x03, 0x08, 0x12, 0x15, 0x1a, 0x1c, 0x09, 0x16: // a text or bytes
			list.take(int(list.uint16()))
		case 0x26:
			list.take(int(list.uint16()))
			list.take(int(list.uint16()))
		default:
			b.bad = true
		}
	}
	b.bad = b.bad || list.bad
}
