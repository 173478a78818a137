package mqtt

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device/lan/lantest"
	"agentsite/device/mqtt/packet"
	"agentsite/device/mqtt/packet/packettest"
)

// lateConn is a connection whose deadlines are noticed too late, as by a process that was stopped.
type lateConn struct{ net.Conn }

func (c lateConn) SetReadDeadline(time.Time) error { return nil }

// TestStopped: what came while the process was stopped for longer than a broker may be silent moves nothing.
func TestStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, site := net.Pipe()
		l := &link{conn: lateConn{site}, in: bufio.NewReader(site), version: packet.V5, timing: usual, wake: make(chan struct{}, 1)}
		go func() {
			for _, pause := range []time.Duration{usual.silence - time.Second, usual.silence + time.Second} {
				time.Sleep(pause)
				broker.Write(packet.AppendPublish(nil, packet.V5, 0, "a", []byte("ON"), false))
			}
			broker.Close()
		}()
		got := 0
		if err := l.read(func(packet.Packet) { got++ }); !errors.Is(err, os.ErrDeadlineExceeded) || got != 1 {
			t.Errorf("%d messages, %v", got, err)
		}
		site.Close()
	})
}

// TestQueue: what waits for a broker is bounded, in messages and in bytes; of events the last ones stay.
func TestQueue(t *testing.T) {
	queue := func() *link {
		return &link{longest: maxPacket, keyed: make(map[string]message), wake: make(chan struct{}, 1)}
	}
	l := queue()
	for n := range 2 * maxEvents {
		l.publish(message{topic: "event", payload: []byte{byte(n)}}, false)
	}
	if n := len(l.events); n != maxEvents || l.events[n-1].payload[0] != 2*maxEvents-1 || l.dropped != maxEvents {
		t.Errorf("%d events wait, %d are dropped", n, l.dropped)
	}
	for range 3 {
		for n := range 2 * maxKeyed {
			l.publish(message{topic: strconv.Itoa(n)}, true)
		}
	}
	if len(l.keyed) != maxKeyed || len(l.order) != maxKeyed {
		t.Errorf("%d states wait, in %d places", len(l.keyed), len(l.order))
	}
	for more := true; more; {
		_, more = l.take(nil)
	}
	if l.bytes != 0 || len(l.keyed)+len(l.events) != 0 {
		t.Errorf("%d bytes wait in an empty queue", l.bytes)
	}
	for _, state := range []bool{true, false} {
		l := queue()
		for range maxEvents {
			l.publish(message{topic: "event"}, false)
		}
		for n := range 4 * maxBytes / maxPacket {
			l.publish(message{topic: strconv.Itoa(n), payload: make([]byte, maxPacket/2)}, state)
		}
		if l.bytes > maxBytes || l.dropped == 0 {
			t.Errorf("%d bytes wait", l.bytes)
		}
	}
}

// TestConnack: a broker says which packets it takes, and how long the site may be silent.
func TestConnack(t *testing.T) {
	own, other := net.Pipe()
	defer own.Close()
	go func() {
		defer other.Close()
		if _, _, err := packettest.Frame(bufio.NewReader(other)); err == nil {
			other.Write([]byte{byte(packet.Connack) << 4, 11, 0, 0, 8, 0x27, 0, 0, 1, 0, 0x13, 0, 9}) // 256 bytes, 9 s
		}
	}()
	l, err := open(t.Context(), own, packet.V5, packet.Hello{Client: "site"}, usual)
	if err != nil {
		t.Fatal(err)
	}
	if l.longest != 256 || l.ping != 6*time.Second {
		t.Errorf("packets of %d bytes, each %v", l.longest, l.ping)
	}
	l.publish(message{topic: "long", payload: bytes.Repeat([]byte("x"), 256)}, true)
	if len(l.keyed) != 0 || l.dropped != 1 {
		t.Errorf("%d wait, %d are dropped", len(l.keyed), l.dropped)
	}
}

// TestNoAlarm: after a ping that was written nothing wakes the processor but the next one.
func TestNoAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		go io.Copy(io.Discard, there)
		conn := &lantest.Alarms{Conn: here}
		l := &link{conn: conn, timing: usual, wake: make(chan struct{}, 1)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		l.write(ctx, func() []message { return nil })
		if n := conn.Passed.Load(); n != 0 {
			t.Errorf("%d deadlines of writes passed in a minute", n)
		}
		here.Close()
		there.Close()
	})
}
