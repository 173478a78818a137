package public

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

const (
	maxHello     = 16 << 10
	helloTimeout = 5 * time.Second
	maxHeader    = 64
)

// acmeALPN is the protocol of certificate authorities that look whether a site has its name (RFC 8737).
const acmeALPN = "acme-tls/1"

// hello is the beginning of a TLS connection, and what it asks for.
type hello struct {
	name  string // in lower case
	acme  bool
	bytes []byte // everything that was read
}

var errNoName = errors.New("the caller names no site (SNI)")

// deadlineReader is the part of a connection or a stream that peek uses.
type deadlineReader interface {
	io.Reader
	SetReadDeadline(time.Time) error
}

// peek reads a ClientHello without answering it. It lifts the deadline for reading.
func peek(c deadlineReader) (h hello, err error) {
	c.SetReadDeadline(time.Now().Add(helloTimeout))
	defer c.SetReadDeadline(time.Time{})
	var read bytes.Buffer
	seen := errors.New("seen")
	err = tls.Server(readOnly{r: io.TeeReader(io.LimitReader(c, maxHello), &read)}, &tls.Config{
		GetConfigForClient: func(of *tls.ClientHelloInfo) (*tls.Config, error) {
			h.name = strings.ToLower(of.ServerName)
			h.acme = slices.Equal(of.SupportedProtos, []string{acmeALPN})
			return nil, seen
		},
	}).Handshake()
	if !errors.Is(err, seen) {
		return h, err
	}
	if h.name == "" {
		return h, errNoName
	}
	h.bytes = read.Bytes()
	return h, nil
}

// readOnly is a connection for a handshake that must not answer.
type readOnly struct {
	net.Conn // nil
	r        io.Reader
}

func (c readOnly) Read(p []byte) (int, error)     { return c.r.Read(p) }
func (readOnly) Write([]byte) (int, error)        { return 0, io.ErrClosedPipe }
func (readOnly) Close() error                     { return nil }
func (readOnly) LocalAddr() net.Addr              { return nil }
func (readOnly) RemoteAddr() net.Addr             { return nil }
func (readOnly) SetDeadline(time.Time) error      { return nil }
func (readOnly) SetReadDeadline(time.Time) error  { return nil }
func (readOnly) SetWriteDeadline(time.Time) error { return nil }

// A stream begins with the address of the caller: its length in one byte, and its text.

func appendHeader(b []byte, from netip.AddrPort) []byte {
	text := from.String()
	return append(append(b, byte(len(text))), text...)
}

// readHeader reads an address as relays write it: without a zone, which may be any text.
func readHeader(r io.Reader) (from netip.AddrPort, err error) {
	var b [maxHeader]byte
	if _, err := io.ReadFull(r, b[:1]); err != nil {
		return from, err
	}
	n := int(b[0])
	if n > len(b) {
		return from, errors.New("a header is too long")
	}
	if _, err := io.ReadFull(r, b[:n]); err != nil {
		return from, err
	}
	if from, err = netip.ParseAddrPort(string(b[:n])); err == nil && from.Addr().Zone() != "" {
		return netip.AddrPort{}, errors.New("a caller's address has a zone")
	}
	return netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), err
}
