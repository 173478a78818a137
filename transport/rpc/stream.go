package rpc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"syscall"
	"time"
)

const (
	// maxInFlight bounds the requests that one stream has running. It is well above
	// the subscriptions that there can be, so that they keep no call out.
	maxInFlight = 64
	// writeTimeout is how long a peer may leave its end unread.
	writeTimeout = 15 * time.Second
	// drainTimeout is how long requests may go on after their peer closed its side.
	drainTimeout = 2 * time.Second
	// CodeBusy answers a request beyond what is served at a time.
	CodeBusy = 429
)

// Stream serves newline-delimited JSON over a pair of byte streams, many requests
// at a time: MCP's stdio framing, which holds on sockets too.
type Stream struct {
	Dispatcher *Dispatcher
	Evidence   Evidence
	// Handover takes the stream over, from its first "initialize" on, for clients
	// of a revision that opens with a handshake. It blocks until they are done.
	Handover func(ctx context.Context, rw io.ReadWriteCloser) error

	w       *lineWriter
	mu      sync.Mutex
	running map[ID]context.CancelFunc
}

// Serve blocks until the peer closes its side, ctx ends or the stream breaks. It
// closes rw and returns once every request has ended. The peer's closing is no
// error.
func (s *Stream) Serve(ctx context.Context, rw io.ReadWriteCloser) error {
	// When ctx ends the requests may still answer, subscriptions with their end.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.w = &lineWriter{w: rw}
	s.running = make(map[ID]context.CancelFunc)
	var requests sync.WaitGroup
	defer requests.Wait()
	defer rw.Close()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { stopReading(rw) })
	defer stop()

	r := bufio.NewReaderSize(rw, 4<<10)
	for {
		line, err := readLine(r, MaxMessage)
		if err != nil {
			if errors.Is(err, errTooLong) {
				s.incoming(nil).respond(ID{}, nil, Errorf(CodeInvalidRequest, "a message has at most %d bytes", MaxMessage))
			}
			if errors.Is(err, io.EOF) || ctx.Err() != nil {
				drain(&requests)
				return nil
			}
			return err
		}
		if len(line) == 0 {
			continue
		}
		if err := s.w.ready(); err != nil {
			return err
		}
		in := s.incoming(line)
		m, fault := parse(JSON, line)
		switch {
		case fault != nil:
			in.respond(m.ID, nil, fault)
		case m.ID.IsZero():
			s.notified(m)
		case m.Method == methodInitialize && s.Handover != nil:
			return s.Handover(ctx, &replay{first: append(line, '\n'), r: r, w: s.w, Closer: rw})
		default:
			s.start(running, in, m, &requests)
		}
	}
}

// stopReading frees a blocked read, and leaves the writing side open where it can.
func stopReading(rw io.Closer) {
	if c, ok := rw.(interface{ SetReadDeadline(time.Time) error }); ok && c.SetReadDeadline(time.Unix(1, 0)) == nil {
		return
	}
	rw.Close()
}

// drain lets running requests end by themselves once no more are read: a peer that
// has closed its side may still listen, as a pipe does whose input is over. What
// takes longer is cancelled.
func drain(requests *sync.WaitGroup) {
	ended, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	go func() {
		requests.Wait()
		cancel()
	}()
	<-ended.Done()
}

func (s *Stream) incoming(line []byte) *Incoming {
	return &Incoming{Codec: JSON, Body: line, Evidence: s.Evidence, Send: func(o Outgoing) error { return s.w.line(o.Body) }}
}

// start runs one request in a goroutine of its own.
func (s *Stream) start(ctx context.Context, in *Incoming, m message, requests *sync.WaitGroup) {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	_, twice := s.running[m.ID]
	full := len(s.running) >= maxInFlight
	if !twice && !full {
		s.running[m.ID] = cancel
	}
	s.mu.Unlock()
	switch {
	case twice:
		cancel()
		in.respond(m.ID, nil, Errorf(CodeInvalidRequest, "a request with the id %s is running already", m.ID))
		return
	case full:
		cancel()
		in.respond(m.ID, nil, Errorf(CodeBusy, "%d requests are running on this stream: wait for one to end", maxInFlight))
		return
	}
	requests.Go(func() {
		defer func() {
			s.mu.Lock()
			delete(s.running, m.ID)
			s.mu.Unlock()
			cancel()
		}()
		s.Dispatcher.serve(ctx, in, m)
	})
}

// notified heeds a cancellation; every other notification is passed over.
func (s *Stream) notified(m message) {
	var p struct {
		RequestID ID `json:"requestId"`
	}
	if m.Method != methodCancelled || m.Params.Decode(&p) != nil {
		return
	}
	s.mu.Lock()
	cancel := s.running[p.RequestID]
	s.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

var errTooLong = errors.New("a message is longer than the limit")

// readLine returns the next line without its end, in a slice of its own. The last
// line needs no end.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return nil, errTooLong
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(line) > 0: // the next call says EOF again
		case err != nil:
			return nil, err
		}
		return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), nil
	}
}

// lineWriter writes whole lines, from any goroutine. A peer that does not read is
// given up on, where the stream can tell: the stream is closed. One that has hung
// up is not: what it said last is still to be read.
type lineWriter struct {
	mu  sync.Mutex
	w   io.Writer
	buf []byte
	err error // the first one: after half a line there is no next
}

func (l *lineWriter) line(b []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = append(append(l.buf[:0], b...), '\n')
	_, err := l.write(l.buf)
	return err
}

// ready waits until nothing is being written, and says whether the stream is broken.
// What asks first of it takes in no more than its peer reads.
func (l *lineWriter) ready() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Write is for those who bring the line's end themselves, in the same call.
func (l *lineWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.write(b)
}

func (l *lineWriter) write(b []byte) (n int, err error) {
	if l.err != nil {
		return 0, l.err
	}
	if c, ok := l.w.(interface{ SetWriteDeadline(time.Time) error }); ok {
		c.SetWriteDeadline(time.Now().Add(writeTimeout))
	}
	if n, err = l.w.Write(b); err != nil {
		l.err = err
		if c, ok := l.w.(io.Closer); ok && !errors.Is(err, syscall.EPIPE) {
			c.Close() // which ends the reading side too
		}
	}
	return n, err
}

// replay is the rest of a stream with its last line put back.
type replay struct {
	first []byte
	r     io.Reader
	w     io.Writer
	io.Closer
}

func (p *replay) Read(b []byte) (int, error) {
	if len(p.first) > 0 {
		n := copy(b, p.first)
		p.first = p.first[n:]
		return n, nil
	}
	return p.r.Read(b)
}

func (p *replay) Write(b []byte) (int, error) { return p.w.Write(b) }
