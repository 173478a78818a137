package modbus

import (
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/board/boardtest"
	"agentsite/device/driver"
)

// fake is a device with the four tables, on a connection or a serial line.
type fake struct {
	mu       sync.Mutex
	id       byte
	coils    map[uint16]bool
	holdings map[uint16]uint16
	inputs   map[uint16]uint16
	asked    int // requests so far
	writes   int
	deaf     bool // writes are answered and not obeyed
	// alter returns the bytes that are sent instead of the answer, a message without address and checksum; nil for silence.
	alter func(request, answer []byte) []byte
	wrap  func(frame []byte) []byte // of the whole frame on the wire
	delay func() time.Duration      // of each answer on a serial line, one after the other
	conns []net.Conn
}

func newFake() *fake {
	return &fake{id: 1, coils: map[uint16]bool{}, holdings: map[uint16]uint16{}, inputs: map[uint16]uint16{}}
}

func (f *fake) set(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

func (f *fake) count() (asked, writes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked, f.writes
}

func (f *fake) holding(address uint16) uint16 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.holdings[address]
}

// answer returns the device's answer to a message.
func (f *fake) answer(m []byte) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	out := f.normal(m)
	if f.alter != nil {
		return f.alter(m, out)
	}
	return out
}

func (f *fake) normal(m []byte) []byte {
	address, n := binary.BigEndian.Uint16(m[1:]), binary.BigEndian.Uint16(m[3:])
	switch m[0] {
	case readCoils:
		bits := make([]byte, (n+7)/8)
		for i := range n {
			if f.coils[address+i] {
				bits[i/8] |= 1 << (i % 8)
			}
		}
		return append([]byte{m[0], byte(len(bits))}, bits...)
	case readHoldings, readInputs:
		from := f.holdings
		if m[0] == readInputs {
			from = f.inputs
		}
		out := []byte{m[0], byte(2 * n)}
		for i := range n {
			v, ok := from[address+i]
			if !ok {
				return []byte{m[0] | isException, 2}
			}
			out = binary.BigEndian.AppendUint16(out, v)
		}
		return out
	case writeCoil:
		f.writes++
		if !f.deaf {
			f.coils[address] = n == 0xFF00
		}
		return m
	case writeHolding:
		f.writes++
		if !f.deaf {
			f.holdings[address] = n
		}
		return m
	case writeHoldings:
		f.writes++
		for i := range n {
			f.holdings[address+i] = binary.BigEndian.Uint16(m[6+2*i:])
		}
		return m[:5]
	}
	return []byte{m[0] | isException, 1}
}

// serveTCP returns the address of a server of Modbus TCP.
func (f *fake) serveTCP(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		f.cut()
		serving.Wait()
	})
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f.set(func() { f.conns = append(f.conns, c) })
			serving.Go(func() { f.serve(c) })
		}
	})
	return l.Addr().String()
}

// cut closes all connections.
func (f *fake) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		c.Close()
	}
	f.conns = nil
}

func (f *fake) serve(c net.Conn) {
	defer c.Close()
	head := make([]byte, 7)
	for {
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		m := make([]byte, binary.BigEndian.Uint16(head[4:])-1)
		if _, err := io.ReadFull(c, m); err != nil {
			return
		}
		if head[6] != f.id {
			continue
		}
		out := f.answer(m)
		if out == nil {
			continue
		}
		frame := slices.Clone(head)
		binary.BigEndian.PutUint16(frame[4:], uint16(len(out)+1))
		frame = append(frame, out...)
		f.mu.Lock()
		wrap := f.wrap
		f.mu.Unlock()
		if wrap != nil {
			frame = wrap(frame)
		}
		c.Write(frame)
	}
}

// wires is a serial line with units: one end is the port of a board. Both directions have a buffer.
type wires struct {
	units []*fake
	extra chan []byte // of another master and its units; may be nil
}

// board returns a board whose serial port is at the line.
func (w *wires) board(t *testing.T) *board.Board {
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait)
	return boardtest.Machine{Serial: func() (board.SerialPort, error) {
		near, far := net.Pipe()
		frames, sent := make(chan []byte, 1000), make(chan []byte, 1000)
		t.Cleanup(func() { far.Close() })
		serving.Go(func() {
			defer close(frames)
			for {
				b := make([]byte, 512)
				n, err := far.Read(b)
				if err != nil {
					return
				}
				frames <- b[:n]
			}
		})
		serving.Go(func() {
			defer close(sent)
			for frame := range frames {
				for _, u := range w.units {
					if frame[0] == u.id {
						w.reply(u, frame, sent)
					}
				}
			}
		})
		serving.Go(func() {
			for {
				select {
				case b, ok := <-sent:
					if !ok {
						return
					}
					far.Write(b)
				case b := <-w.extra:
					far.Write(b)
				}
			}
		})
		return near, nil
	}}.Board()
}

func (w *wires) reply(u *fake, frame []byte, sent chan<- []byte) {
	out := u.answer(frame[1 : len(frame)-2])
	if out == nil {
		return
	}
	u.mu.Lock()
	delay, wrap := u.delay, u.wrap
	u.mu.Unlock()
	if delay != nil {
		time.Sleep(delay())
	}
	answer := append([]byte{u.id}, out...)
	answer = binary.LittleEndian.AppendUint16(answer, checksum(answer))
	if wrap != nil {
		answer = wrap(answer)
	}
	sent <- answer
}

// configOf returns the driver's configuration on a board.
func configOf(b *board.Board) *config {
	return Drivers(b)[0].Config().(*config)
}

func opened(t *testing.T, c *config) *unitDevice {
	t.Helper()
	dev, err := driver.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev.(*unitDevice)
}

func ptr[T any](v T) *T { return &v }

// pumpInputs and pumpOutputs are those of most tests.
func pump(c *config) *config {
	c.Inputs = map[string]inputConfig{"flow": {Place: Place{Input: ptr(uint16(10))}, Format: Format{Type: "int16"},
		InputPoint: driver.InputPoint{Quantity: driver.Quantity{Unit: "l/min", Scale: ptr(0.1), Range: device.Range{Min: -10, Max: 60}}}}}
	c.Outputs = map[string]outputConfig{
		"pump": {Place: Place{Coil: ptr(uint16(3))}, OutputPoint: driver.OutputPoint{Safe: device.Bool(false)}},
		"speed": {Place: Place{Holding: ptr(uint16(100))}, OutputPoint: driver.OutputPoint{
			Quantity: driver.Quantity{Unit: "Hz", Scale: ptr(0.1), Range: device.Range{Min: 0, Max: 50}}, Safe: device.Number(0)}},
	}
	return c
}

func pumpFake() *fake {
	f := newFake()
	f.inputs[10], f.holdings[100] = 123, 0
	return f
}

func readings(t *testing.T, d *unitDevice) map[string]device.Reading {
	t.Helper()
	all, err := d.Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]device.Reading)
	for _, r := range all {
		out[r.Point] = r
	}
	return out
}
