package rpc

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// MaxInFlight bounds the requests that one stream has running. It is well above
	// the subscriptions that there can be, so that they keep no call out.
	MaxInFlight = 64
	// maxUrgent are places besides for urgent requests.
	maxUrgent = 8
	// A stranger only says who it is, and what was granted.
	maxStrangerRequests = 2
	maxStrangerMessage  = 16 << 10
	// writeTimeout is how long a peer may leave its end unread. It begins anew with a
	// write after freshTimeout: to set it costs more than a small message does.
	writeTimeout  = 15 * time.Second
	deadlineSlack = time.Second
	// drainTimeout is how long requests may go on after their peer closed its side.
	drainTimeout = 2 * time.Second
	// alone is how long one request may keep the next from being read.
	inlineLimit = 200 * time.Microsecond
	// CodeBusy answers a request beyond what is served at a time.
	CodeBusy = 429
)

// Terms are how a stream is spoken on. The zero Terms are those of a local one.
type Terms struct {
	// Codec frames messages as well: in JSON each is a line, which is MCP's stdio framing
	// and holds on sockets too, and in CBOR they are a sequence (RFC 8742). nil is JSON.
	Codec Codec
	// Known reports whether the peer is one whom more is allowed than to say who it is.
	// It is asked where that matters, by many at a time. nil is for yes.
	Known func() bool
}

// Stream serves messages over a pair of byte streams, many requests at a time.
type Stream struct {
	Dispatcher *Dispatcher
	Evidence   Evidence
	Terms      Terms
	// Handover takes a stream of JSON over, from its first "initialize" on, for clients
	// of a revision that opens with a handshake. It blocks until they are done.
	Handover func(ctx context.Context, rw io.ReadWriteCloser) error

	codec    Codec
	r        *bufio.Reader
	messages frameReader
	w        *messageWriter
	requests sync.WaitGroup
	finish   func(error) // is called once, by who reads to the end

	mu       sync.Mutex
	running  map[ID]*runningRequest // those that are not answered
	inFlight int                    // those that have not ended
}

// asked is one request.
type runningRequest struct{ cancel context.CancelFunc }

// Serve blocks until the peer closes its side, ctx ends or the stream breaks. It
// closes rw and returns once every request has ended. The peer's closing is no
// error.
func (s *Stream) Serve(ctx context.Context, rw io.ReadWriteCloser) error {
	// When ctx ends the requests may still answer, subscriptions with their end.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.codec = cmp.Or(s.Terms.Codec, JSON)
	s.w = &messageWriter{w: rw, end: endOf(s.codec)}
	s.r = bufio.NewReaderSize(rw, 4<<10)
	s.messages = newFrameReader(s.codec, s.r, s.tooLong)
	s.running = make(map[ID]*runningRequest)
	ended := make(chan error, 1)
	s.finish = func(err error) {
		cancel()
		rw.Close()
		ended <- err
	}
	defer s.requests.Wait()
	stop := context.AfterFunc(ctx, func() {
		stopReading(rw)
		s.w.shortenDeadline()
	})
	defer stop()
	s.read(ctx, running, rw)
	return <-ended
}

// read takes in messages to the end, unless it has become late with one: then somebody else
// goes on.
func (s *Stream) read(ctx, running context.Context, rw io.ReadWriteCloser) {
	for {
		b, err := s.messages.next()
		if err != nil {
			s.finish(s.handleReadError(ctx, err))
			return
		}
		if err := s.w.waitIdle(); err != nil {
			s.finish(err)
			return
		}
		in := s.incoming(b)
		m, fault := parse(s.codec, b)
		switch {
		case fault != nil:
			in.respond(m.ID, nil, fault)
		case m.ID.IsZero():
			s.handleNotification(m)
		case m.Method == methodInitialize && s.Handover != nil && s.codec == JSON:
			s.finish(s.Handover(ctx, &replayedStream{first: append(b, '\n'), r: s.r, w: s.w, Closer: rw}))
			return
		default:
			if !s.start(running, in, m, func() { s.read(ctx, running, rw) }) {
				return
			}
		}
	}
}

// unread is what it means that there is no further message.
func (s *Stream) handleReadError(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, errTooLong):
		s.incoming(nil).respond(ID{}, nil, Errorf(CodeInvalidRequest, "a message has at most %d bytes", s.limit(maxStrangerMessage, MaxMessage)))
	case errors.Is(err, errUnframed):
		s.incoming(nil).respond(ID{}, nil, Errorf(CodeParse, "%v", err))
	}
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		drain(&s.requests)
		return nil
	}
	return err
}

// most is the smaller one for a stranger.
func (s *Stream) limit(stranger, known int) int {
	if s.Terms.Known == nil || s.Terms.Known() {
		return known
	}
	return stranger
}

// tooLong asks who it is only where that matters.
func (s *Stream) tooLong(n int) bool {
	return n > maxStrangerMessage && n > s.limit(maxStrangerMessage, MaxMessage)
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

func (s *Stream) incoming(b []byte) *Incoming {
	return &Incoming{Codec: s.codec, Body: b, Evidence: s.Evidence, Send: func(o Outgoing) error { return s.w.message(o.Body) }}
}

// start serves one request, and reports whether its caller is to go on reading. A request
// that comes alone is served by who has read it, for to wake another goroutine takes longer
// than most calls do; where it takes long all the same, next is run by another.
func (s *Stream) start(ctx context.Context, in *Incoming, m message, next func()) bool {
	s.mu.Lock()
	_, twice := s.running[m.ID]
	now, most := s.inFlight, MaxInFlight
	s.mu.Unlock()
	if now >= maxStrangerRequests {
		most = s.limit(maxStrangerRequests, MaxInFlight)
	}
	if now >= MaxInFlight && most == MaxInFlight && s.Dispatcher.Urgent != nil && s.Dispatcher.Urgent(m.Method, m.Params) {
		most += maxUrgent
	}
	switch {
	case twice:
		in.respond(m.ID, nil, Errorf(CodeInvalidRequest, "a request with the id %s is running already", m.ID))
		return true
	case now >= most:
		in.respond(m.ID, nil, Errorf(CodeBusy, "%d requests are running on this stream: wait for one to end", most))
		return true
	}
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	a := &runningRequest{cancel}
	s.running[m.ID] = a
	s.inFlight++
	s.mu.Unlock()
	in.Send = func(o Outgoing) error {
		if o.Last { // who has the answer may ask anew by the same id
			s.markAnswered(m.ID, a)
		}
		return s.w.message(o.Body)
	}
	serve := func() {
		defer func() {
			s.markAnswered(m.ID, a)
			s.mu.Lock()
			s.inFlight--
			s.mu.Unlock()
			cancel()
			s.requests.Done()
		}()
		s.Dispatcher.serve(ctx, in, m)
	}
	s.requests.Add(1)
	if s.r.Buffered() > 0 {
		go serve()
		return true
	}
	late := time.AfterFunc(inlineLimit, next)
	serve()
	return late.Stop()
}

// notified heeds a cancellation; every other notification is passed over.
func (s *Stream) handleNotification(m message) {
	var p struct {
		RequestID ID `json:"requestId"`
	}
	if m.Method != methodCancelled || m.Params.Decode(&p) != nil {
		return
	}
	s.mu.Lock()
	a := s.running[p.RequestID]
	s.mu.Unlock()
	if a != nil {
		a.cancel()
	}
}

func (s *Stream) markAnswered(id ID, a *runningRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[id] == a {
		delete(s.running, id)
	}
}

// messageWriter writes whole messages, from any goroutine, each in one piece. A peer that
// does not read is given up on, where the stream can tell: the stream is closed. One that
// has hung up is not: what it said last is still to be read.
type messageWriter struct {
	end string // of a message

	mu    sync.Mutex
	w     io.Writer
	buf   []byte
	until time.Time // how long the peer may take over what is written
	err   error     // the first one: after half a message there is no next

	draining atomic.Bool
}

type writeDeadline interface{ SetWriteDeadline(time.Time) error }

// hurry leaves a peer that does not read no more time than the stream's end takes.
func (l *messageWriter) shortenDeadline() {
	l.draining.Store(true)
	if c, ok := l.w.(writeDeadline); ok {
		c.SetWriteDeadline(time.Now().Add(drainTimeout))
	}
}

// endOf is what a message is followed by.
func endOf(codec Codec) string {
	if codec == CBOR {
		return ""
	}
	return "\n"
}

func (l *messageWriter) message(b []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end != "" {
		l.buf = append(append(l.buf[:0], b...), l.end...)
		b = l.buf
	}
	_, err := l.write(b)
	return err
}

// ready waits until nothing is being written, and says whether the stream is broken.
// What asks first of it takes in no more than its peer reads.
func (l *messageWriter) waitIdle() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Write is for those who bring a message's end themselves, in the same call.
func (l *messageWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.write(b)
}

func (l *messageWriter) write(b []byte) (n int, err error) {
	if l.err != nil {
		return 0, l.err
	}
	if c, ok := l.w.(writeDeadline); ok && !l.draining.Load() {
		if until := time.Now().Add(writeTimeout); until.Sub(l.until) > deadlineSlack {
			l.until = until
			c.SetWriteDeadline(until)
		}
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
type replayedStream struct {
	first []byte
	r     io.Reader
	w     io.Writer
	io.Closer
}

func (p *replayedStream) Read(b []byte) (int, error) {
	if len(p.first) > 0 {
		n := copy(b, p.first)
		p.first = p.first[n:]
		return n, nil
	}
	return p.r.Read(b)
}

func (p *replayedStream) Write(b []byte) (int, error) { return p.w.Write(b) }
