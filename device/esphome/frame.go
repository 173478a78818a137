package esphome

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"agentsite/device"

	"github.com/flynn/noise"
	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// maxFrame bounds a frame of a node; the largest that is used is the list of a light's effects.
	maxFrame = 32 << 10
	// maxVarint bounds the size and the number of a message without encryption: 21 bits.
	maxVarint = 3

	plainFrame, noiseFrame = 0x00, 0x01 // the first byte of a frame
)

// frames sends and receives the messages of one connection. send may be called concurrently, receive may not.
type frames struct {
	conn     net.Conn
	in       *bufio.Reader
	frame    []byte             // of receive
	received *noise.CipherState // nil without encryption

	sending sync.Mutex // guards the fields below
	out     []byte
	sent    *noise.CipherState // nil without encryption
}

// message is a message of the protocol: the number that api.proto gives it, and its fields.
type message struct {
	id   uint16
	body []byte
}

var (
	errNotAFrame = errors.New("it does not speak ESPHome's native API")
	errTooLarge  = errors.New("it sent a message of more than 32 kB")
)

// newFrames begins a connection: with a key by the handshake Noise_NNpsk0_25519_ChaChaPoly_SHA256. The
// deadline of conn bounds it.
func newFrames(conn net.Conn, key []byte) (*frames, error) {
	f := &frames{conn: conn, in: bufio.NewReaderSize(conn, 2<<10)}
	if key == nil {
		return f, nil
	}
	hello := []byte{noiseFrame, 0, 0} // an empty one; its length is part of the prologue
	state, err := noise.NewHandshakeState(noise.Config{
		CipherSuite:  noise.NewCipherSuite(noise.DH25519, noise.CipherChaChaPoly, noise.HashSHA256),
		Random:       rand.Reader,
		Pattern:      noise.HandshakeNN,
		Initiator:    true,
		Prologue:     append([]byte("NoiseAPIInit"), hello[1:]...),
		PresharedKey: key,
	})
	if err != nil {
		return nil, err
	}
	first, _, _, err := state.WriteMessage([]byte{0}, nil) // after a byte that says that there is no error
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(append(appendNoise(hello, len(first)), first...)); err != nil {
		return nil, err
	}
	if _, err := f.receiveFrame(); err != nil { // the node's hello: a version, its name and its MAC, none of them proven
		return nil, err
	}
	answer, err := f.receiveFrame()
	switch {
	case err != nil:
		return nil, err
	case len(answer) == 0:
		return nil, errNotAFrame
	case answer[0] != 0 && bytes.Contains(answer, []byte("MAC failure")):
		return nil, errWrongKey
	case answer[0] != 0:
		return nil, device.Faultf(device.Offline, "it refuses the encrypted connection; look at its log")
	}
	if _, f.sent, f.received, err = state.ReadMessage(nil, answer[1:]); err != nil {
		return nil, errWrongKey
	}
	return f, nil
}

var (
	errWrongKey = device.Faultf(device.Denied,
		"it has another key than key_file has; write the key of its api: encryption: into the file")
	errNeedsKey = device.Faultf(device.Denied,
		"it has a key; write key_file with the key of its api: encryption: instead of plaintext")
	errHasNoKey = device.Faultf(device.Denied,
		"it has no key, so it cannot prove who it is; give it one (api: encryption:), or write plaintext: on")
)

func appendNoise(out []byte, size int) []byte {
	return append(out, noiseFrame, byte(size>>8), byte(size))
}

// send sends messages in one write that ends before the deadline. After an error the connection must be closed, because
// a part may have been sent.
func (f *frames) send(deadline time.Time, all ...message) error {
	f.sending.Lock()
	defer f.sending.Unlock()
	f.out = f.out[:0]
	for _, m := range all {
		if f.sent == nil {
			f.out = append(f.out, plainFrame)
			f.out = protowire.AppendVarint(f.out, uint64(len(m.body)))
			f.out = append(protowire.AppendVarint(f.out, uint64(m.id)), m.body...)
			continue
		}
		var plain [128]byte // larger than all that is sent
		text := binary.BigEndian.AppendUint16(plain[:0], m.id)
		text = append(binary.BigEndian.AppendUint16(text, uint16(len(m.body))), m.body...)
		f.out = appendNoise(f.out, len(text)+16)
		var err error
		if f.out, err = f.sent.Encrypt(f.out, nil, text); err != nil {
			return err
		}
	}
	f.conn.SetWriteDeadline(deadline)
	_, err := f.conn.Write(f.out)
	return err
}

// receive returns the next message. Its body is valid until the next call.
func (f *frames) receive() (message, error) {
	if f.received == nil {
		return f.receivePlain()
	}
	frame, err := f.receiveFrame()
	if err != nil {
		return message{}, err
	}
	text, err := f.received.Decrypt(frame[:0], nil, frame)
	if err != nil || len(text) < 4 {
		return message{}, errNotAFrame
	}
	size := int(binary.BigEndian.Uint16(text[2:]))
	if size > len(text)-4 { // more is padding
		return message{}, errNotAFrame
	}
	return message{binary.BigEndian.Uint16(text), text[4 : 4+size]}, nil
}

func (f *frames) receiveFrame() ([]byte, error) {
	head, err := f.in.Peek(1)
	switch {
	case err != nil:
		return nil, err
	case head[0] == plainFrame:
		return nil, errHasNoKey
	case head[0] != noiseFrame:
		return nil, errNotAFrame
	}
	var fixed [3]byte
	if _, err := io.ReadFull(f.in, fixed[:]); err != nil {
		return nil, err
	}
	return f.read(int(binary.BigEndian.Uint16(fixed[1:])))
}

func (f *frames) receivePlain() (message, error) {
	switch first, err := f.in.ReadByte(); {
	case err != nil:
		return message{}, err
	case first == noiseFrame:
		return message{}, errNeedsKey
	case first != plainFrame:
		return message{}, errNotAFrame
	}
	size, err := f.readVarint()
	if err != nil {
		return message{}, err
	}
	id, err := f.readVarint()
	if err != nil {
		return message{}, err
	}
	body, err := f.read(size)
	return message{uint16(min(id, 1<<16-1)), body}, err
}

func (f *frames) readVarint() (n int, err error) {
	for i := range maxVarint {
		b, err := f.in.ReadByte()
		if err != nil {
			return 0, err
		}
		n |= int(b&0x7f) << (7 * i)
		if b < 0x80 {
			return n, nil
		}
	}
	return 0, errTooLarge
}

func (f *frames) read(size int) ([]byte, error) {
	if size > maxFrame {
		return nil, errTooLarge
	}
	if size > cap(f.frame) {
		f.frame = make([]byte, max(size, 512))
	}
	f.frame = f.frame[:size]
	_, err := io.ReadFull(f.in, f.frame)
	return f.frame, err
}
