package esphometest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"

	"github.com/flynn/noise"
	"google.golang.org/protobuf/encoding/protowire"
)

// layout has the numbers in api.proto of the messages of a kind of entity, and of their fields.
type layout struct {
	listed, state, command int
	device, stateDevice    protowire.Number
	set, setDevice         protowire.Number
}

var layouts = map[string]layout{
	"binary_sensor": {listed: 12, state: 21, device: 10, stateDevice: 4},
	"cover":         {13, 22, 30, 13, 6, 5, 9},
	"fan":           {13 + 1, 23, 31, 13, 8, 11, 14},
	"light":         {15, 24, 32, 16, 14, 5, 28},
	"sensor":        {listed: 16, state: 25, device: 14, stateDevice: 4},
	"switch":        {17, 26, 33, 10, 3, 2, 3},
	"text_sensor":   {listed: 18, state: 27, device: 9, stateDevice: 4},
	"number":        {49, 50, 51, 14, 4, 2, 3},
	"select":        {listed: 52, state: 53, device: 9, stateDevice: 4},
	"valve":         {109, 110, 111, 12, 4, 3, 5},
	"button":        {listed: 61, device: 9},
}

// packet is a message: its number in two bytes, then its fields.
type packet []byte

func message(id int) packet { return binary.BigEndian.AppendUint16(nil, uint16(id)) }

func (p packet) num(n protowire.Number, v uint64) packet {
	if v == 0 {
		return p
	}
	return protowire.AppendVarint(protowire.AppendTag(p, n, protowire.VarintType), v)
}

func (p packet) yes(n protowire.Number, v bool) packet { return p.num(n, protowire.EncodeBool(v)) }

func (p packet) text(n protowire.Number, v string) packet {
	return protowire.AppendString(protowire.AppendTag(p, n, protowire.BytesType), v)
}

func (p packet) fixed(n protowire.Number, v uint32) packet {
	return protowire.AppendFixed32(protowire.AppendTag(p, n, protowire.Fixed32Type), v)
}

func (p packet) float(n protowire.Number, v float32) packet { return p.fixed(n, math.Float32bits(v)) }

// listed returns its entry in the list of entities.
func (e *Entity) listed(withID bool) packet {
	id := ""
	if withID {
		id = e.ID()[len(e.Kind)+1:]
	}
	k := layouts[e.Kind]
	m := message(k.listed).text(1, id).fixed(2, e.key).text(3, e.Name)
	switch e.Kind {
	case "sensor":
		m = m.text(6, e.Unit).num(7, 1)
	case "number":
		m = m.float(6, e.Min).float(7, e.Max).float(8, e.Step).text(11, e.Unit)
	case "cover":
		m = m.yes(6, e.Levels)
	case "valve":
		m = m.yes(10, e.Levels)
	case "fan":
		m = m.yes(6, e.Speeds > 0).num(8, uint64(e.Speeds))
	case "light":
		mode := byte(1)
		if e.Levels {
			mode = 3
		}
		m = m.text(12, string([]byte{mode}))
	case "select":
		for _, o := range e.Options {
			m = m.text(6, o)
		}
	}
	return m.num(k.device, uint64(e.Device))
}

// state returns its state; nil for one that has none.
func (e *Entity) state() packet {
	k := layouts[e.Kind]
	if k.state == 0 {
		return nil
	}
	m := message(k.state).fixed(1, e.key)
	switch e.Kind {
	case "binary_sensor":
		m = m.yes(2, e.On).yes(3, e.Missing)
	case "switch":
		m = m.yes(2, e.On)
	case "sensor", "number":
		m = m.float(2, e.Number).yes(3, e.Missing)
	case "text_sensor", "select":
		m = m.text(2, e.Text).yes(3, e.Missing)
	case "light":
		m = m.yes(2, e.On).float(3, e.Number)
	case "fan":
		m = m.yes(2, e.On).num(6, uint64(e.Number))
	case "cover":
		m = m.float(3, e.Number).num(5, uint64(e.Moving))
	case "valve":
		m = m.float(2, e.Number).num(3, uint64(e.Moving))
	}
	return m.num(k.stateDevice, uint64(e.Device))
}

// peer is a client.
type peer struct {
	conn       net.Conn
	in         *bufio.Reader
	queue      chan []byte // packets
	ended      chan struct{}
	subscribed bool // under Node.mu

	sent, received *noise.CipherState
}

// send queues a packet. One that does not fit is lost.
func (p *peer) send(m packet) {
	select {
	case p.queue <- m:
	default:
	}
}

func (p *peer) write() {
	for {
		select {
		case m := <-p.queue:
			if p.writeFrame(m) != nil {
				p.conn.Close()
				return
			}
		case <-p.ended:
			return
		}
	}
}

func (p *peer) writeFrame(m []byte) error {
	var frame []byte
	if p.sent == nil {
		frame = protowire.AppendVarint([]byte{0}, uint64(len(m)-2))
		frame = append(protowire.AppendVarint(frame, uint64(binary.BigEndian.Uint16(m))), m[2:]...)
	} else {
		text := append(binary.BigEndian.AppendUint16(m[:2:2], uint16(len(m)-2)), m[2:]...)
		sealed, err := p.sent.Encrypt(nil, nil, text)
		if err != nil {
			return err
		}
		frame = append(noiseHead(len(sealed)), sealed...)
	}
	_, err := p.conn.Write(frame)
	return err
}

func noiseHead(size int) []byte { return []byte{1, byte(size >> 8), byte(size)} }

var errProtocol = errors.New("not the protocol")

func (p *peer) noiseFrame() ([]byte, error) {
	var head [3]byte
	if _, err := io.ReadFull(p.in, head[:]); err != nil {
		return nil, err
	}
	if head[0] != 1 {
		return nil, errProtocol
	}
	frame := make([]byte, binary.BigEndian.Uint16(head[1:]))
	_, err := io.ReadFull(p.in, frame)
	return frame, err
}

// shake does the handshake of a node with a key.
func (p *peer) shake(n *Node, key []byte) error {
	p.in = bufio.NewReader(p.conn)
	reject := func(why string) error {
		p.conn.Write(append(noiseHead(len(why)+1), append([]byte{1}, why...)...))
		return errProtocol
	}
	first, err := p.noiseFrame()
	if err != nil {
		if errors.Is(err, errProtocol) {
			return reject("Bad indicator byte")
		}
		return err
	}
	greeting := append([]byte{1}, n.Name+"\x00"+n.MAC+"\x00"...)
	if _, err := p.conn.Write(append(noiseHead(len(greeting)), greeting...)); err != nil {
		return err
	}
	prologue := append([]byte("NoiseAPIInit"), byte(len(first)>>8), byte(len(first)))
	state, err := noise.NewHandshakeState(noise.Config{
		CipherSuite: noise.NewCipherSuite(noise.DH25519, noise.CipherChaChaPoly, noise.HashSHA256),
		Pattern:     noise.HandshakeNN, Prologue: append(prologue, first...), PresharedKey: key,
	})
	if err != nil {
		return err
	}
	request, err := p.noiseFrame()
	if err != nil || len(request) == 0 || request[0] != 0 {
		return errProtocol
	}
	if _, _, _, err := state.ReadMessage(nil, request[1:]); err != nil {
		return reject("Handshake MAC failure")
	}
	answer, theirs, ours, err := state.WriteMessage([]byte{0}, nil)
	if err != nil {
		return err
	}
	p.received, p.sent = theirs, ours
	_, err = p.conn.Write(append(noiseHead(len(answer)), answer...))
	return err
}

func (p *peer) receive() (int, []byte, error) {
	if p.in == nil {
		p.in = bufio.NewReader(p.conn)
	}
	if p.received != nil {
		frame, err := p.noiseFrame()
		if err != nil {
			return 0, nil, err
		}
		text, err := p.received.Decrypt(nil, nil, frame)
		if err != nil || len(text) < 4 {
			return 0, nil, errProtocol
		}
		return int(binary.BigEndian.Uint16(text)), text[4:], nil
	}
	if first, err := p.in.ReadByte(); err != nil || first != 0 {
		return 0, nil, errProtocol
	}
	size, err := binary.ReadUvarint(p.in)
	if err != nil || size > 1<<16 {
		return 0, nil, errProtocol
	}
	id, err := binary.ReadUvarint(p.in)
	if err != nil {
		return 0, nil, err
	}
	body := make([]byte, size)
	_, err = io.ReadFull(p.in, body)
	return int(id), body, err
}
