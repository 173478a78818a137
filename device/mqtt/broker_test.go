package mqtt

import (
	"bufio"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentsite/device/mqtt/packet"
	"agentsite/device/mqtt/packet/packettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeBroker is a broker for tests, with the devices behind it as functions.
type fakeBroker struct {
	*testing.T
	ln net.Listener

	mu       sync.Mutex
	clients  map[*client]bool
	kept     map[string]string
	commands []string // that came, as "topic payload"
	refuse   byte     // the code of CONNACK
	older    bool     // it speaks 3.1.1 only
	deny     map[string]bool
	frozen   bool // it reads and says nothing
	mute     bool // it answers no message
	denied   byte // the code of PUBACK
	count    int  // of connections
	pings    int
	// device answers a command; it may publish. It is called without mu.
	device func(b *fakeBroker, topic, payload string)
}

type client struct {
	net.Conn
	version byte
	topics  map[string]bool
	writing sync.Mutex
}

func (c *client) say(b []byte) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.SetWriteDeadline(time.Now().Add(time.Second))
	c.Write(b)
}

func newFakeBroker(t *testing.T) *fakeBroker {
	b := &fakeBroker{T: t, clients: make(map[*client]bool), kept: make(map[string]string), deny: make(map[string]bool)}
	b.listen("127.0.0.1:0")
	t.Cleanup(b.stop)
	return b
}

func (b *fakeBroker) listen(address string) {
	var err error
	for range 100 {
		if b.ln, err = net.Listen("tcp", address); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		b.Fatal(err)
	}
	ln := b.ln
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go b.serve(c)
		}
	}()
}

func (b *fakeBroker) stop() { b.ln.Close(); b.kill() }

// kill ends all connections.
func (b *fakeBroker) kill() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.clients {
		c.Close()
	}
}

func (b *fakeBroker) url() string { return "mqtt://" + b.ln.Addr().String() }

func (b *fakeBroker) do(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

func (b *fakeBroker) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	first, body, err := packettest.Frame(r)
	if err != nil || first>>4 != byte(packet.Connect) {
		return
	}
	_, body = packettest.Text(body)
	c := &client{Conn: conn, version: body[0], topics: make(map[string]bool)}
	b.mu.Lock()
	b.count++
	code, frozen := b.refuse, b.frozen
	if b.older && c.version == packet.V5 {
		code = 1
	}
	if code == 0 {
		b.clients[c] = true
	}
	older := b.older
	b.mu.Unlock()
	ack := []byte{byte(packet.Connack) << 4, 2, 0, code}
	if c.version == packet.V5 && !older {
		ack = []byte{byte(packet.Connack) << 4, 3, 0, code, 0}
	}
	if !frozen {
		c.say(ack)
	}
	for code == 0 && b.answer(c, r) {
	}
	b.do(func() { delete(b.clients, c) })
}

func (b *fakeBroker) answer(c *client, r *bufio.Reader) bool {
	first, body, err := packettest.Frame(r)
	if err != nil {
		return false
	}
	b.mu.Lock()
	frozen, mute := b.frozen, b.mute
	b.mu.Unlock()
	if frozen {
		return true
	}
	switch packet.Kind(first >> 4) {
	case packet.Subscribe:
		ack := append([]byte(nil), body[:2]...)
		rest := packettest.Properties(body[2:], c.version)
		if c.version == packet.V5 {
			ack = append(ack, 0)
		}
		var again [][]byte
		b.mu.Lock()
		for len(rest) > 0 {
			var topic string
			topic, rest = packettest.Text(rest)
			rest = rest[1:]
			code := byte(0)
			if b.deny[topic] {
				code = 0x80
			} else {
				c.topics[topic] = true
			}
			ack = append(ack, code)
			for name, payload := range b.kept {
				if matches(topic, name) && code == 0 {
					again = append(again, packet.AppendPublish(nil, c.version, 0, name, []byte(payload), true))
				}
			}
		}
		b.mu.Unlock()
		c.say(append([]byte{byte(packet.Suback) << 4, byte(len(ack))}, ack...))
		for _, p := range again {
			c.say(p)
		}
	case packet.Publish:
		topic, rest := packettest.Text(body)
		if first>>1&3 == 1 {
			id := rest[:2]
			rest = rest[2:]
			switch b.mu.Lock(); {
			case mute:
			case b.denied > 0:
				c.say([]byte{byte(packet.Puback) << 4, 3, id[0], id[1], b.denied})
			default:
				c.say(append([]byte{byte(packet.Puback) << 4, 2}, id...))
			}
			b.mu.Unlock()
		}
		payload := string(packettest.Properties(rest, c.version))
		b.mu.Lock()
		b.commands = append(b.commands, topic+" "+payload)
		device := b.device
		b.mu.Unlock()
		if device != nil && !mute {
			device(b, topic, payload)
		}
	case packet.Pingreq:
		b.do(func() { b.pings++ })
		c.say([]byte{byte(packet.Pingresp) << 4, 0})
	case packet.Disconnect:
		return false
	}
	return true
}

func matches(filter, topic string) bool {
	if prefix, ok := strings.CutSuffix(filter, "#"); ok {
		return strings.HasPrefix(topic, prefix)
	}
	return filter == topic
}

// publish is a message of a device to all that subscribed.
func (b *fakeBroker) publish(topic, payload string, keep bool) {
	b.mu.Lock()
	var to []*client
	for c := range b.clients {
		for filter := range c.topics {
			if matches(filter, topic) {
				to = append(to, c)
				break
			}
		}
	}
	if keep {
		b.kept[topic] = payload
	}
	if b.frozen {
		to = nil
	}
	b.mu.Unlock()
	for _, c := range to {
		c.say(packet.AppendPublish(nil, c.version, 0, topic, []byte(payload), false))
	}
}

// sent returns how often a command came.
func (b *fakeBroker) sent(command string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.commands {
		if c == command {
			n++
		}
	}
	return n
}

// until waits until something is so.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not in time", what)
		}
	}
}

// nowhere is the listener of a broker that is not reached.
type nowhere struct{ net.Listener }

func (nowhere) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
