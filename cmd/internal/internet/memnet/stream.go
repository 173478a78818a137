package memnet

import (
	"io"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// negotiation is the number of bytes that each end of a stream writes besides the protocol's name.
const negotiation = 22

// stream is one end of a stream.
type stream struct {
	conn    *conn
	id      protocol.ID
	number  int64
	in, out *pipe
	counts  *counter // of this end's host
	remote  *counter
}

var (
	_             network.Stream = (*stream)(nil)
	streamNumbers atomic.Int64
)

func newStreams(c *conn, id protocol.ID) (near, far *stream) {
	there, back := newPipe(), newPipe()
	n, local, remote := streamNumbers.Add(1), c.local.counter(id), c.remote.counter(id)
	near = &stream{conn: c, id: id, number: n, in: back, out: there, counts: local, remote: remote}
	far = &stream{conn: c.other, id: id, number: n, in: there, out: back, counts: remote, remote: local}
	near.count(negotiation + len(id))
	far.count(negotiation + len(id))
	return near, far
}

// count counts bytes that this end sends.
func (s *stream) count(n int) {
	s.counts.sent.Add(int64(n))
	s.remote.received.Add(int64(n))
	if s.conn.via != nil {
		s.conn.via.relayedBytes.Add(int64(n))
	}
}

// arrival returns the time at which bytes sent now arrive; false for never.
func (s *stream) arrival() (time.Time, bool) {
	c := s.conn
	if c.local.dead.Load() || c.remote.dead.Load() || c.via != nil && c.via.dead.Load() {
		return time.Time{}, false
	}
	at := time.Now().Add(c.local.delay(c.remote, c.via))
	if c.local.net.lost() {
		at = at.Add(resendDelay)
	}
	return at, true
}

// Read implements network.Stream, as the following do.
func (s *stream) Read(b []byte) (int, error) { return s.in.read(b) }

func (s *stream) Write(b []byte) (int, error) {
	if s.out.isClosed() || s.conn.IsClosed() {
		return 0, network.ErrReset
	}
	s.counts.messages.Add(1)
	s.count(len(b))
	if at, ok := s.arrival(); ok {
		s.out.push(at, b)
	}
	return len(b), nil
}

func (s *stream) CloseWrite() error {
	if at, ok := s.arrival(); ok {
		s.out.close(at)
	}
	return nil
}

func (s *stream) CloseRead() error {
	s.in.fail(time.Now())
	return nil
}

func (s *stream) Close() error {
	_ = s.CloseWrite()
	s.conn.release(s)
	return s.CloseRead()
}

func (s *stream) Reset() error {
	s.in.fail(time.Now())
	if at, ok := s.arrival(); ok {
		s.out.fail(at)
	}
	s.conn.release(s)
	return nil
}

func (s *stream) ResetWithError(network.StreamErrorCode) error { return s.Reset() }
func (s *stream) SetDeadline(t time.Time) error                { return s.SetReadDeadline(t) }
func (s *stream) SetWriteDeadline(time.Time) error             { return nil } // writing does not block
func (s *stream) ID() string                                   { return strconv.FormatInt(s.number, 10) }
func (s *stream) Protocol() protocol.ID                        { return s.id }
func (s *stream) SetProtocol(protocol.ID) error                { return nil }
func (s *stream) Conn() network.Conn                           { return s.conn }
func (s *stream) Scope() network.StreamScope                   { return &network.NullScope{} }
func (s *stream) Stat() network.Stats                          { return s.conn.Stat().Stats }

func (s *stream) SetReadDeadline(t time.Time) error {
	s.in.setDeadline(t)
	return nil
}

// pipe is one direction of a stream. One goroutine reads at a time.
type pipe struct {
	changed chan struct{} // holds a value after a change

	mu       sync.Mutex
	segments []segment
	closed   bool
	closes   time.Time // when the reader sees the end
	failed   bool
	fails    time.Time // when the reader sees a reset
	deadline time.Time
}

type segment struct {
	at time.Time
	b  []byte
}

func newPipe() *pipe { return &pipe{changed: make(chan struct{}, 1)} }

func (p *pipe) notify() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// push adds bytes, which do not overtake those before.
func (p *pipe) push(at time.Time, b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.failed {
		return
	}
	if n := len(p.segments); n > 0 && p.segments[n-1].at.After(at) {
		at = p.segments[n-1].at
	}
	p.segments = append(p.segments, segment{at, append([]byte(nil), b...)})
	p.notify()
}

func (p *pipe) close(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	if n := len(p.segments); n > 0 && p.segments[n-1].at.After(at) {
		at = p.segments[n-1].at
	}
	p.closed, p.closes = true, at
	p.notify()
}

func (p *pipe) fail(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed && !at.Before(p.fails) {
		return
	}
	p.failed, p.fails = true, at
	p.notify()
}

func (p *pipe) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed || p.failed
}

func (p *pipe) setDeadline(t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deadline = t
	p.notify()
}

func (p *pipe) read(b []byte) (int, error) {
	for {
		n, next, err := p.take(b)
		if n > 0 || err != nil {
			return n, err
		}
		if next.IsZero() {
			<-p.changed
			continue
		}
		t := time.NewTimer(time.Until(next))
		select {
		case <-p.changed:
		case <-t.C:
		}
		t.Stop()
	}
}

// take returns the bytes that have arrived, or the time at which more may; zero for none before another call.
func (p *pipe) take(b []byte) (n int, next time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	soonest := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	if p.failed {
		if !p.fails.After(now) {
			return 0, next, network.ErrReset
		}
		soonest(p.fails)
	}
	if !p.deadline.IsZero() {
		if !p.deadline.After(now) {
			return 0, next, os.ErrDeadlineExceeded
		}
		soonest(p.deadline)
	}
	switch {
	case len(p.segments) > 0 && !p.segments[0].at.After(now):
		n = copy(b, p.segments[0].b)
		if p.segments[0].b = p.segments[0].b[n:]; len(p.segments[0].b) == 0 {
			p.segments = p.segments[1:]
		}
		return n, next, nil
	case len(p.segments) > 0:
		soonest(p.segments[0].at)
	case p.closed && !p.closes.After(now):
		return 0, next, io.EOF
	case p.closed:
		soonest(p.closes)
	}
	return 0, next, nil
}
