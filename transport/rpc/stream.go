package rpc

import (
	"bufio"
	"bytes"
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
	// MaxInFlight bounds the running requests of one stream. It is well above the possible
	// subscriptions, so that these keep out no call.
	MaxInFlight = 64
	// maxUrgent are slots besides for urgent requests.
	maxUrgent = 8
	// A stranger only authenticates, or presents a grant.
	maxStrangerRequests = 2
	maxStrangerMessage  = 16 << 10
	// writeTimeout bounds how long a peer may not read. A write after deadlineSlack renews
	// it: setting it costs more than a small message.
	writeTimeout  = 15 * time.Second
	deadlineSlack = time.Second
	// drainTimeout bounds how long requests may run after their peer has closed its side.
	drainTimeout = 2 * time.Second
	// inlineLimit is about the longest time for which one request delays the reading of the next (at most twice).
	inlineLimit = 200 * time.Microsecond
	// CodeBusy answers a request beyond the limit of running ones.
	CodeBusy = 429
)

// Terms are the encoding and the limits of a stream. The zero Terms are those of a local one.
type Terms struct {
	// Codec also determines the framing: JSON is one message per line, as in MCP's stdio,
	// also on sockets, and CBOR a sequence (RFC 8742). nil is JSON.
	Codec Codec
	// Known reports whether the peer is no stranger. It is called concurrently. nil means true.
	Known func() bool
}

// Stream serves messages over a byte stream, many requests concurrently.
type Stream struct {
	Dispatcher *Dispatcher
	// Sender returns who sends. It is asked for each request, because permissions begin and end while a
	// stream is open. nil is a stranger.
	Sender func() Sender
	Terms  Terms
	// Handover takes over a JSON stream at its first "initialize", for clients of a revision
	// with a handshake. It blocks until they end.
	Handover func(ctx context.Context, rw io.ReadWriteCloser) error

	codec    Codec
	r        *bufio.Reader
	messages frameReader
	w        *messageWriter
	requests sync.WaitGroup
	readOn   func()      // reads until the stream ends or another goroutine takes over
	finish   func(error) // called once, when reading ends

	mu       sync.Mutex
	running  map[ID]*runningRequest // not answered yet
	inFlight int                    // not returned yet
	inline   *runningRequest        // served by the goroutine that reads; nil for none
	seen     *runningRequest        // inline, when checkInline ran last
	check    *time.Timer            // calls checkInline
	checking bool                   // check is set
}

// runningRequest is a request that is not answered.
type runningRequest struct {
	in     Incoming
	stream *Stream
	cancel context.CancelFunc
}

func (s *Stream) newRequest(body []byte) *runningRequest {
	a := &runningRequest{stream: s}
	a.in = Incoming{Codec: s.codec, Body: body, sender: s.Sender, Send: a.send}
	return a
}

// send sends a message of a request. After the answer its id may be used again.
func (a *runningRequest) send(o Outgoing) error {
	if o.Last {
		a.stream.mu.Lock()
		a.stream.markAnswered(a)
		a.stream.mu.Unlock()
	}
	return a.stream.w.message(o.Body)
}

// Serve blocks until the peer closes its side, ctx ends or the stream breaks. It closes rw
// and returns once every request has ended. The peer's closing is no error.
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
	s.readOn = func() { s.read(ctx, running, rw) }
	s.readOn()
	return <-ended
}

// read reads messages until the stream ends, or until another goroutine took over because a
// request was slow.
func (s *Stream) read(ctx, running context.Context, rw io.ReadWriteCloser) {
	for {
		b, err := s.messages.next()
		var long *LongLine
		if errors.As(err, &long) {
			a := s.newRequest(nil)
			a.in.m.ID = long.ID
			a.in.respond(nil, Errorf(CodeInvalidRequest, "a message has at most %d bytes", MaxMessage))
			continue
		}
		if err != nil {
			s.finish(s.handleReadError(ctx, err))
			return
		}
		if err := s.w.waitIdle(); err != nil {
			s.finish(err)
			return
		}
		a := s.newRequest(b)
		fault, m := a.in.parse(), &a.in.m
		switch {
		case fault != nil:
			a.in.respond(nil, fault)
		case m.ID.IsZero():
			s.handleNotification(m)
		case m.Method == methodInitialize && s.Handover != nil && s.codec == JSON:
			s.finish(s.Handover(ctx, struct {
				io.Reader
				io.Writer
				io.Closer
			}{io.MultiReader(bytes.NewReader(append(b, '\n')), s.r), s.w, rw}))
			return
		default:
			if !s.start(running, a) {
				return
			}
		}
	}
}

// handleReadError answers a message that cannot be read, and returns the stream's error.
func (s *Stream) handleReadError(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, errTooLong):
		most := s.limit(maxStrangerMessage, MaxMessage)
		s.newRequest(nil).in.respond(nil, Errorf(CodeInvalidRequest, "a message has at most %d bytes", most))
	case errors.Is(err, errUnframed):
		s.newRequest(nil).in.respond(nil, Errorf(CodeParse, "%v", err))
	}
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		drain(&s.requests)
		return nil
	}
	return err
}

// limit returns the limit for the peer: stranger or known.
func (s *Stream) limit(stranger, known int) int {
	if s.Terms.Known == nil || s.Terms.Known() {
		return known
	}
	return stranger
}

// tooLong reports whether a message of n bytes is too long for the peer. It calls Known only
// where that matters.
func (s *Stream) tooLong(n int) bool {
	return n > maxStrangerMessage && n > s.limit(maxStrangerMessage, MaxMessage)
}

// stopReading unblocks a read, and leaves the writing side open where possible.
func stopReading(rw io.Closer) {
	if c, ok := rw.(interface{ SetReadDeadline(time.Time) error }); ok && c.SetReadDeadline(time.Unix(1, 0)) == nil {
		return
	}
	rw.Close()
}

// drain waits for running requests after the last message was read: a peer that has closed
// its side may still read. After drainTimeout they are cancelled.
func drain(requests *sync.WaitGroup) {
	ended, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	go func() {
		requests.Wait()
		cancel()
	}()
	<-ended.Done()
}

// start serves a request, and reports whether its caller goes on reading. It serves a request
// without a successor in the caller's goroutine, because waking another one takes longer than most
// calls. If the request exceeds inlineLimit, another goroutine reads on.
func (s *Stream) start(ctx context.Context, a *runningRequest) bool {
	m := &a.in.m
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
		a.in.respond(nil, Errorf(CodeInvalidRequest, "a request with the id %s is running already", m.ID))
		return true
	case now >= most:
		a.in.respond(nil, Errorf(CodeBusy, "%d requests are running on this stream: wait for one to end", most))
		return true
	}
	ctx, a.cancel = context.WithCancel(ctx)
	inline := s.r.Buffered() == 0
	s.requests.Add(1) // before another goroutine may read the end, and wait
	s.mu.Lock()
	s.running[m.ID] = a
	s.inFlight++
	if inline {
		s.inline = a
		s.scheduleCheck()
	}
	s.mu.Unlock()
	if inline {
		return s.serve(ctx, a)
	}
	go s.serve(ctx, a)
	return true
}

// serve serves a request, and reports whether it was inline to its end.
func (s *Stream) serve(ctx context.Context, a *runningRequest) (inline bool) {
	defer func() {
		s.mu.Lock()
		s.markAnswered(a)
		s.inFlight--
		if inline = s.inline == a; inline {
			s.inline = nil
		}
		s.mu.Unlock()
		a.cancel()
		s.requests.Done()
	}()
	s.Dispatcher.serve(ctx, &a.in)
	return false
}

// scheduleCheck has checkInline run once. One timer serves all requests of a stream: setting and
// stopping one for each takes longer than many requests. The caller holds mu.
func (s *Stream) scheduleCheck() {
	switch {
	case s.checking:
		return
	case s.check == nil:
		s.check = time.AfterFunc(inlineLimit, s.checkInline)
	default:
		s.check.Reset(inlineLimit)
	}
	s.checking = true
}

// checkInline reads on in place of a goroutine that serves the same request as at the last check.
func (s *Stream) checkInline() {
	s.mu.Lock()
	late := s.inline != nil && s.inline == s.seen
	if late {
		s.inline = nil
	}
	s.seen, s.checking = s.inline, false
	if s.inline != nil {
		s.scheduleCheck()
	}
	s.mu.Unlock()
	if late {
		s.readOn()
	}
}

// handleNotification handles a cancellation and ignores other notifications.
func (s *Stream) handleNotification(m *message) {
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

// markAnswered is called with mu held.
func (s *Stream) markAnswered(a *runningRequest) {
	if s.running[a.in.m.ID] == a {
		delete(s.running, a.in.m.ID)
	}
}

// messageWriter writes whole messages from any goroutine. It closes a stream whose peer does
// not read, if the stream has deadlines. It does not close one whose peer has hung up, as its
// last messages are still to be read.
type messageWriter struct {
	end string // of a message

	mu    sync.Mutex
	w     io.Writer
	buf   []byte
	until time.Time // the write deadline
	err   error     // the first; there is no message after half of one

	draining atomic.Bool
}

type writeDeadline interface{ SetWriteDeadline(time.Time) error }

// shortenDeadline leaves a peer that does not read only drainTimeout.
func (l *messageWriter) shortenDeadline() {
	l.draining.Store(true)
	if c, ok := l.w.(writeDeadline); ok {
		c.SetWriteDeadline(time.Now().Add(drainTimeout))
	}
}

// endOf returns the end of a message.
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

// waitIdle waits until no write is running, and returns the stream's error. Calling it before
// a read keeps a peer from sending more than it reads.
func (l *messageWriter) waitIdle() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Write is for writers of messages with their end.
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
