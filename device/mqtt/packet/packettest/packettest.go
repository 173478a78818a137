// Package packettest reads packets of MQTT as they are, for the fake brokers of tests: it shares no code with
// package packet, which it tests.
package packettest

import (
	"bufio"
	"encoding/binary"
	"io"
)

// Frame reads a packet of at most 1 MiB.
func Frame(r *bufio.Reader) (first byte, body []byte, err error) {
	if first, err = r.ReadByte(); err != nil {
		return 0, nil, err
	}
	n, err := binary.ReadUvarint(r)
	if err != nil || n > 1<<20 {
		return 0, nil, io.ErrUnexpectedEOF
	}
	body = make([]byte, n)
	_, err = io.ReadFull(r, body)
	return first, body, err
}

// Text returns the text at the beginning of b, and the rest.
func Text(b []byte) (string, []byte) {
	n := int(binary.BigEndian.Uint16(b))
	return string(b[2 : 2+n]), b[2+n:]
}

// Properties returns b without the properties at its beginning, which version 5 has.
func Properties(b []byte, version byte) []byte {
	if version != 5 {
		return b
	}
	n, w := binary.Uvarint(b)
	return b[w+int(n):]
}
