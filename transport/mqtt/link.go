package mqtt

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"agentsite/device/mqtt/packet"
)

const (
	dialTimeout  = 20 * time.Second
	writeTimeout = 10 * time.Second
	closeTimeout = time.Second // of a broker that was told goodbye
	maxPacket    = 256 << 10   // that is taken
	// maxSecond bounds the packets of a second, of which a long one counts for one each 2 KiB. A broker that sends
	// more is left.
	maxSecond = 500
	maxKeyed  = 4096 // topics that wait to be published
	maxEvents = 64   // messages that wait and are not replaced by newer ones
	maxBytes  = 4 << 20
)

// timing has the time between two pings, and the longest silence of a broker: after that the connection has ended, and
// outputs return to safe. The broker publishes the will of a client that is silent for one
// and a half times as long.
type timing struct{ ping, silence time.Duration }

var usual = timing{ping: 20 * time.Second, silence: 30 * time.Second}

// message is a message to be published.
type message struct {
	topic   string
	payload []byte
	keep    bool
}

// link is a connection to a broker. Messages wait in it until they are written: of a topic that has a state only
// the newest, of all others the last ones.
type link struct {
	conn    net.Conn
	in      *bufio.Reader
	version byte
	longest int // packet that the broker takes
	timing

	mu      sync.Mutex
	order   []string // keyed topics, in the order in which they were first told
	keyed   map[string]message
	events  []message
	acks    []uint16
	filters []packet.Filter
	bytes   int
	dropped int
	id      uint16
	wake    chan struct{}
}

// open says hello on a connection, and returns the link when the broker has answered. It closes the connection
// otherwise.
func open(ctx context.Context, conn net.Conn, version byte, h packet.Hello, t timing) (*link, error) {
	l := &link{
		conn: conn, in: bufio.NewReaderSize(conn, 4<<10), version: version, longest: maxPacket,
		keyed: make(map[string]message), wake: make(chan struct{}, 1), timing: t,
	}
	p, err := packet.Greet(ctx, conn, l.in, version, h, maxPacket)
	if err != nil {
		return nil, err
	}
	if p.KeepAlive > 0 { // as it wants
		l.ping = min(l.ping, max(time.Second, time.Duration(p.KeepAlive)*time.Second*2/3))
	}
	if p.MaxPacket > 0 {
		l.longest = min(l.longest, int(min(p.MaxPacket, maxPacket)))
	}
	return l, nil
}

// publish has a message be written soon. state says that it replaces an older one of its topic that was not written
// yet. It does not block; where too much waits, or the broker does not take so much, the message is dropped.
func (l *link) publish(m message, state bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	size := len(m.topic) + len(m.payload)
	before, waits := l.keyed[m.topic]
	if size+16 > l.longest || l.bytes+size > maxBytes || state && !waits && len(l.order) >= maxKeyed {
		l.dropped++
		return
	}
	if !state && len(l.events) >= maxEvents {
		l.bytes -= len(l.events[0].topic) + len(l.events[0].payload)
		l.events = l.events[1:]
		l.dropped++
	}
	l.bytes += size
	if !state {
		l.events = append(l.events, m)
	} else {
		if waits {
			l.bytes -= len(before.topic) + len(before.payload)
		} else {
			l.order = append(l.order, m.topic)
		}
		l.keyed[m.topic] = m
	}
	poke(l.wake)
}

// poke sends to a channel that has room for one, unless something is in it.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// subscribe has filters be subscribed to.
func (l *link) subscribe(filters ...packet.Filter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.filters = append(l.filters, filters...)
	poke(l.wake)
}

// ack has the broker told that a message came.
func (l *link) ack(id uint16) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acks = append(l.acks, id) // as many as are read in a second, at most
	poke(l.wake)
}

// take returns what waits, as packets of a bounded length, and whether there is more.
func (l *link) take(b []byte) (_ []byte, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range l.acks {
		b = packet.AppendPuback(b, id)
	}
	l.acks = l.acks[:0]
	if len(l.filters) > 0 {
		l.id = max(1, l.id+1)
		b = packet.AppendSubscribe(b, l.version, l.id, l.filters)
		l.filters = nil
	}
	for len(b) < 16<<10 && len(l.order)+len(l.events) > 0 {
		var m message
		if len(l.order) > 0 {
			m = l.keyed[l.order[0]]
			delete(l.keyed, l.order[0])
			l.order = l.order[1:]
		} else {
			m, l.events = l.events[0], l.events[1:]
		}
		l.bytes -= len(m.topic) + len(m.payload)
		b = packet.AppendPublish(b, l.version, 0, m.topic, m.payload, m.keep)
	}
	return b, len(l.order)+len(l.events) > 0
}

// write writes what waits, and a ping now and then, until ctx ends or the connection does. At the end it says
// what last returns, where the connection still lives.
func (l *link) write(ctx context.Context, last func() []message) error {
	ping := time.NewTicker(l.ping)
	defer ping.Stop()
	for {
		var b []byte
		select {
		case <-ctx.Done():
			b, _ = l.take(nil)
			for _, m := range last() {
				b = packet.AppendPublish(b, l.version, 0, m.topic, m.payload, m.keep)
			}
			l.conn.SetWriteDeadline(time.Now().Add(time.Second))
			l.conn.Write(packet.AppendDisconnect(b)) // the will says the same
			return ctx.Err()
		case <-ping.C:
			b = packet.AppendPing(nil)
		case <-l.wake:
		}
		for more := true; more; {
			if b, more = l.take(b); len(b) == 0 {
				break
			}
			l.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
			if _, err := l.conn.Write(b); err != nil {
				return fmt.Errorf("the broker does not take what is told it: %w", err)
			}
			l.conn.SetWriteDeadline(time.Time{}) // one that is left wakes the processor
			b = b[:0]
		}
	}
}

// read reads packets until the connection ends, and calls got for each message. got does not block.
func (l *link) read(got func(packet.Packet)) error {
	from := packet.Source{
		Conn: l.conn, In: l.in, Version: l.version, Limit: maxPacket, Rate: maxSecond, Silence: l.silence,
	}
	for {
		p, err := from.Next()
		if err != nil {
			return err
		}
		switch p.Kind {
		case packet.Publish:
			got(p)
			if p.QoS == 1 {
				l.ack(p.ID)
			}
		case packet.Suback:
			for _, code := range p.Codes {
				if code >= 0x80 {
					return &packet.RefusedError{Code: code, Reason: p.Reason}
				}
			}
		case packet.Disconnect:
			return &packet.RefusedError{Code: p.Code(), Reason: p.Reason}
		}
	}
}
