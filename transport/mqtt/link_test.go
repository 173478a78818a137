package mqtt

import (
	"bufio"
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/transport/mqtt/packet"
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
