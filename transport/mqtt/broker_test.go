package mqtt

import (
	"bufio"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/device/mqtt/packet"
	"agentsite/device/mqtt/packet/packettest"
)

// broker is a broker of one client, which does what a test says.
type broker struct {
	*testing.T
	ln net.Listener

	mu      sync.Mutex
	conn    net.Conn
	version byte
	refuse  map[byte]byte // the code of CONNACK, by version
	deaf    bool          // it answers nothing any more
	kept    map[string]string
	subs    []string
	said    []packet.Packet // what the client published
	wills   []string        // that were published
	early   bool            // the client closed its last connection before the broker did
	clean   bool            // the last client said goodbye
	count   int             // of connections
	pings   int
	id      uint16
}

func newBroker(t *testing.T) *broker {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &broker{T: t, ln: ln, kept: make(map[string]string), refuse: make(map[byte]byte)}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			b.serve(c)
		}
	})
	t.Cleanup(func() { ln.Close(); b.kill(); serving.Wait() })
	return b
}

func (b *broker) url() string { return "mqtt://" + b.ln.Addr().String() }

func (b *broker) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	first, body, err := packettest.Frame(r)
	if err != nil || first>>4 != byte(packet.Connect) {
		return
	}
	_, body = packettest.Text(body)
	version, flags := body[0], body[1]
	body = packettest.Properties(body[4:], version)
	_, body = packettest.Text(body)
	will, says := "", ""
	if flags&4 != 0 {
		will, body = packettest.Text(packettest.Properties(body, version))
		says, _ = packettest.Text(body)
	}
	b.mu.Lock()
	b.count++
	code := b.refuse[version]
	ack := []byte{byte(packet.Connack) << 4, 2, 0, code}
	if version == packet.V5 {
		ack = []byte{byte(packet.Connack) << 4, 3, 0, code, 0}
	}
	if code == 0 {
		b.conn, b.version, b.subs, b.clean, b.deaf = c, version, nil, false, false
	}
	b.mu.Unlock()
	c.Write(ack)
	if code != 0 {
		return
	}
	for b.answer(c, r) {
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conn = nil
	if will != "" && !b.clean {
		b.wills = append(b.wills, will+" "+says)
		b.kept[will] = says
	}
}

// answer answers one packet; false at the end.
func (b *broker) answer(c net.Conn, r *bufio.Reader) bool {
	first, body, err := packettest.Frame(r)
	if err != nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deaf {
		return true
	}
	switch packet.Kind(first >> 4) {
	case packet.Subscribe:
		ack := append([]byte(nil), body[:2]...)
		rest := packettest.Properties(body[2:], b.version)
		if b.version == packet.V5 {
			ack = append(ack, 0)
		}
		var again []string
		for len(rest) > 0 {
			var filter string
			filter, rest = packettest.Text(rest)
			b.subs = append(b.subs, filter)
			ack = append(ack, 1)
			if b.version != packet.V5 || rest[0]>>4&3 == 0 {
				again = append(again, filter)
			}
			rest = rest[1:]
		}
		c.Write(append([]byte{byte(packet.Suback) << 4, byte(len(ack))}, ack...))
		for _, filter := range again {
			for topic, payload := range b.kept {
				if matches(filter, topic) {
					c.Write(packet.AppendPublish(nil, b.version, 0, topic, []byte(payload), true))
				}
			}
		}
	case packet.Publish:
		topic, rest := packettest.Text(body)
		p := packet.Packet{Topic: topic, Payload: packettest.Properties(rest, b.version), Retain: first&1 != 0}
		b.said = append(b.said, p)
		if p.Retain {
			if b.kept[topic] = string(p.Payload); len(p.Payload) == 0 {
				delete(b.kept, topic)
			}
		}
		for _, filter := range b.subs {
			if matches(filter, topic) {
				c.Write(packet.AppendPublish(nil, b.version, 0, topic, p.Payload, false))
			}
		}
	case packet.Pingreq:
		b.pings++
		c.Write([]byte{byte(packet.Pingresp) << 4, 0})
	case packet.Disconnect:
		b.clean = true
		c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		_, err := r.Peek(1)
		b.early = !errors.Is(err, os.ErrDeadlineExceeded)
		return false
	}
	return true
}

func matches(filter, topic string) bool {
	f, t := strings.Split(filter, "/"), strings.Split(topic, "/")
	for i := range f {
		if f[i] == "#" {
			return true
		}
		if i >= len(t) || f[i] != "+" && f[i] != t[i] {
			return false
		}
	}
	return len(f) == len(t)
}

// send sends the client a message. flags are those of the packet: 1 for a kept one, 8 for one that comes again.
func (b *broker) send(topic, payload string, flags byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conn == nil {
		return
	}
	b.id++
	p := packet.AppendPublish(nil, b.version, b.id, topic, []byte(payload), false)
	p[0] |= flags
	b.conn.SetWriteDeadline(time.Now().Add(time.Second))
	b.conn.Write(p)
}

// kill ends the connection.
func (b *broker) kill() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conn != nil {
		b.conn.Close()
	}
}

// do does something with the state of the broker.
func (b *broker) do(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// last returns the last message of a topic.
func (b *broker) last(topic string) (payload string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.said {
		if p.Topic == topic {
			payload, n = string(p.Payload), n+1
		}
	}
	return payload, n
}

// until waits until something is so.
func (b *broker) until(what string, is func() bool) {
	b.Helper()
	until(b.T, 20*time.Second, what, is)
}

// until waits until something is so, and fails the test after a time.
func until(t *testing.T, within time.Duration, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, within)
		}
	}
}
