package rpc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
)

// Caller sends requests to a Dispatcher.
type Caller interface {
	// Call sends a request and waits for its result. Notifications that arrive meanwhile are passed
	// to note, which may be nil and must not block. On a stream of many calls these include those of
	// other calls. An error response is an *Error, as is an error that the other side sends before
	// it closes the stream. The end of ctx cancels the request.
	Call(ctx context.Context, r Request, note func(method string, params Raw)) (Raw, error)
}

// Request is a call. Its ID is unique among running calls. Version and Name are for carriers
// that mirror them beside the message: the protocol's version, and params.name or params.uri.
// Repeatable is a request that does no more when it is received twice: a carrier may send it again
// after it got no answer.
type Request struct {
	ID            ID
	Method        string
	Params        any
	Version, Name string
	Repeatable    bool
}

// StreamClient is a Caller over a byte stream, with the framing of Stream.
type StreamClient struct {
	rw    io.ReadWriteCloser
	codec Codec
	w     messageWriter

	mu sync.Mutex
	// running calls
	waiting map[ID]*pending
	err     error // why Run ended
}

type pending struct {
	note func(method string, params Raw)
	done chan answered // buffered, so that Run never blocks
}

// answered is an answer, or why it could not be read.
type answered struct {
	message
	err error
}

// errLongAnswer does not say whether a call was made.
var errLongAnswer = fmt.Errorf("the answer has more than %d MiB", MaxAnswer>>20)

// NewStreamClient returns a client. Run reads its responses.
func NewStreamClient(rw io.ReadWriteCloser, codec Codec) *StreamClient {
	return &StreamClient{rw: rw, codec: codec, w: messageWriter{w: rw, end: endOf(codec)}, waiting: make(map[ID]*pending)}
}

// Run reads until the stream ends, and then fails every running call. A line that is too long fails its own
// call alone, if it says of which call it is.
func (c *StreamClient) Run() error {
	messages := newFrameReader(c.codec, bufio.NewReaderSize(c.rw, 4<<10), exceedsMaxAnswer)
	for {
		b, err := messages.next()
		var long *LongLine
		switch {
		case errors.As(err, &long) && !long.ID.IsZero():
			c.answer(answered{message{ID: long.ID}, errLongAnswer})
			continue
		case err == nil:
			err = c.received(b)
		}
		if err != nil {
			c.fail(err)
			return err
		}
	}
}

// Close ends Run and every call.
func (c *StreamClient) Close() error { return c.rw.Close() }

func (c *StreamClient) Call(ctx context.Context, r Request, note func(string, Raw)) (Raw, error) {
	p := &pending{note: note, done: make(chan answered, 1)}
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return Raw{}, c.err
	}
	c.waiting[r.ID] = p
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, r.ID)
		c.mu.Unlock()
	}()
	if err := c.send(request{version, r.ID, r.Method, r.Params}); err != nil {
		return Raw{}, err
	}
	select {
	case m, ok := <-p.done:
		if !ok {
			return Raw{}, c.ended()
		}
		if m.err != nil {
			return Raw{}, m.err
		}
		return result(m.message)
	case <-ctx.Done():
		c.send(notification{version, methodCancelled, map[string]ID{"requestId": r.ID}})
		return Raw{}, ctx.Err()
	}
}

// send returns an error where v cannot be encoded. After a failed write, Run returns the
// error.
func (c *StreamClient) send(v any) error {
	buf := GetBuffer()
	defer PutBuffer(buf)
	if err := c.codec.Encode(buf, v); err != nil {
		return err
	}
	c.w.message(buf.Bytes())
	return nil
}

func result(m message) (Raw, error) {
	if m.Error != nil {
		e := &Error{Code: m.Error.Code, Message: m.Error.Message}
		if !m.Error.Data.IsZero() {
			e.Data = m.Error.Data
		}
		return Raw{}, e
	}
	return m.Result, nil
}

// DecodeResponse decodes one response, for carriers of single messages, or a notification's
// method and parameters.
func DecodeResponse(codec Codec, b []byte) (res Raw, method string, params Raw, err error) {
	var m message
	if err := codec.Decode(b, &m); err != nil {
		return Raw{}, "", Raw{}, err
	}
	if m.Method != "" {
		return Raw{}, m.Method, m.Params, nil
	}
	res, err = result(m)
	return res, "", Raw{}, err
}

// EncodeRequest encodes one request, for carriers of single messages.
func EncodeRequest(codec Codec, w *bytes.Buffer, r Request) error {
	return codec.Encode(w, request{version, r.ID, r.Method, r.Params})
}

func (c *StreamClient) received(b []byte) error {
	var m message
	if err := c.codec.Decode(b, &m); err != nil {
		return err
	}
	if m.Method == "" && m.ID.IsZero() && m.Error != nil { // about no request, but the stream
		_, err := result(m)
		return err
	}
	if m.Method == "" {
		c.answer(answered{m, nil})
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.waiting {
		if p.note != nil {
			p.note(m.Method, m.Params)
		}
	}
	return nil
}

// answer ends the call that an answer is of.
func (c *StreamClient) answer(a answered) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.waiting[a.ID]; p != nil {
		p.done <- a
		delete(c.waiting, a.ID)
	}
}

func (c *StreamClient) fail(err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		err = io.ErrUnexpectedEOF
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
	for id, p := range c.waiting {
		close(p.done)
		delete(c.waiting, id)
	}
}

func (c *StreamClient) ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// MaxAnswer bounds a response in bytes: a picture in base64 fits.
const MaxAnswer = 4 << 20

func exceedsMaxAnswer(n int) bool { return n > MaxAnswer }

// EncodeError encodes an error that answers no request.
func EncodeError(codec Codec, w *bytes.Buffer, e *Error) error {
	return codec.Encode(w, response{version, ID{}, nil, e})
}
