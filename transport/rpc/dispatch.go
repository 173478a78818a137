package rpc

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
)

// Method handles the requests of one method. Its result is encoded like the request. An
// *Error is sent as it is, a *FieldError as invalid params, any other error as an internal
// error without its text. When ctx ends the caller has gone and nothing more is sent.
type Method func(ctx context.Context, c *Call) (result any, err error)

// Call is a request for its method.
type Call struct {
	ID       ID
	Method   string
	Params   Raw
	Evidence Evidence
	Header   Header

	ctx context.Context
	in  *Incoming
}

// Notify sends a notification before the result. It blocks while the carrier is busy and
// fails once the caller has gone.
func (c *Call) Notify(method string, params any) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	return c.in.send(notification{version, method, params}, Outgoing{})
}

// Codec returns the encoding of the request.
func (c *Call) Codec() Codec { return c.in.Codec }

// Header looks up a carrier's mirror of a message's member, by canonical HTTP header name, decoded.
// It is nil on carriers that mirror nothing.
type Header interface{ Values(name string) []string }

// Incoming is a message from a carrier.
type Incoming struct {
	Codec    Codec
	Body     []byte
	Evidence Evidence
	Header   Header
	// Send sends the notifications and the response, one at a time. The body is valid during
	// the call only.
	Send func(Outgoing) error

	mu sync.Mutex
}

// Outgoing is a message for a carrier to send.
type Outgoing struct {
	Body []byte
	Last bool   // the response, the last message
	Err  *Error // the error of an error response
}

// Dispatcher calls methods by name.
type Dispatcher struct {
	methods map[string]Method
	// Urgent reports whether a request is served beyond the limit of running requests. It may
	// be nil.
	Urgent func(method string, params Raw) bool
}

// NewDispatcher returns a dispatcher, which owns the map.
func NewDispatcher(methods map[string]Method) *Dispatcher { return &Dispatcher{methods: methods} }

// Add adds methods. It is called before the first Serve.
func (d *Dispatcher) Add(methods map[string]Method) { maps.Copy(d.methods, methods) }

// Methods returns the names of all methods, sorted.
func (d *Dispatcher) Methods() []string { return slices.Sorted(maps.Keys(d.methods)) }

// Serve handles one message. It does not call Send for a notification. It blocks until the
// response is sent or ctx ends.
func (d *Dispatcher) Serve(ctx context.Context, in *Incoming) {
	m, fault := parse(in.Codec, in.Body)
	if fault == nil {
		d.serve(ctx, in, m)
		return
	}
	in.respond(m.ID, nil, fault)
}

// parse decodes a request or a notification, and refuses other messages. m is never nil. With a fault,
// only its ID is valid, and is zero if it could not be decoded.
func parse(codec Codec, body []byte) (m *message, fault *Error) {
	m = new(message)
	defer recoverPanic("decoding", func() { *m, fault = message{}, errInternal })
	var err error
	if codec == JSON {
		err = decodeJSONRequest(body, m)
	} else {
		err = codec.Decode(body, m)
	}
	if err != nil {
		*m = message{}
		var ours *Error
		var field *FieldError
		if errors.As(err, &ours) {
			return m, ours
		} else if errors.As(err, &field) && field.Field != "" {
			return m, Errorf(CodeInvalidRequest, "not a JSON-RPC message: %v", err)
		}
		return m, Errorf(CodeParse, "%v", err)
	}
	switch {
	case m.Version != version:
		return m, Errorf(CodeInvalidRequest, `"jsonrpc" must be "2.0"`)
	case m.Method == "":
		return m, Errorf(CodeInvalidRequest, `"method" is missing: this side takes requests and notifications`)
	}
	return m, nil
}

func (d *Dispatcher) serve(ctx context.Context, in *Incoming, m *message) {
	if m.ID.IsZero() {
		return // no notification changes anything here; a stream sees to cancellation
	}
	defer recoverPanic(m.Method, func() { in.respond(m.ID, nil, errInternal) })
	method, ok := d.methods[m.Method]
	if !ok {
		in.respond(m.ID, nil, Errorf(CodeMethodNotFound, "there is no method %.60q", m.Method))
		return
	}
	result, err := method(ctx, &Call{
		ID: m.ID, Method: m.Method, Params: m.Params, Evidence: in.Evidence, Header: in.Header, ctx: ctx, in: in,
	})
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		in.respond(m.ID, nil, asError(err))
		return
	}
	in.respond(m.ID, result, nil)
}

// recoverPanic, deferred, keeps a panic in one message from ending the process.
func recoverPanic(what string, then func()) {
	if p := recover(); p != nil {
		slog.Error("a defect: something panicked", "in", what, "panic", p, "stack", string(debug.Stack()))
		then()
	}
}

var errInternal = Errorf(CodeInternal, "the site failed at this; its log says more")

// disconnectedError is an error of a carrier whose peer has disconnected: no defect of the
// method.
type disconnectedError struct{ error }

func (e *disconnectedError) Unwrap() error { return e.error }

func asError(err error) *Error {
	var fault *Error
	var field *FieldError
	var gone *disconnectedError
	switch {
	case errors.As(err, &fault): // a carrier may refuse to send, too
		return fault
	case errors.As(err, &gone), errors.Is(err, context.Canceled):
		slog.Debug("a caller left before its answer", "err", err)
		return errInternal
	case errors.As(err, &field):
		return Errorf(CodeInvalidParams, "params: %v", field)
	}
	slog.Error("a method failed", "err", err)
	return errInternal
}

// Rendered is a result that is encoded already, in the encoding of its request. It
// goes out as it is, unchecked, so it must be valid: it is for the one result that
// is worth writing by hand.
type Rendered []byte

func (in *Incoming) respond(id ID, result any, fault *Error) {
	if text, ok := result.(Rendered); ok {
		in.sendRendered(id, text)
		return
	}
	err := in.send(response{version, id, result, fault}, Outgoing{Last: true, Err: fault})
	var unsendable *encodingError
	if errors.As(err, &unsendable) {
		slog.Error("a result could not be encoded", "err", err)
		in.send(response{version, id, nil, errInternal}, Outgoing{Last: true, Err: errInternal})
	}
}

func (in *Incoming) sendRendered(id ID, result Rendered) {
	buf := buffers.Get().(*bytes.Buffer)
	defer recycle(buf)
	if in.Codec == JSON {
		buf.WriteString(`{"jsonrpc":"2.0","id":`)
		buf.Write(id.appendJSON(buf.AvailableBuffer()))
		buf.WriteString(`,"result":`)
		buf.Write(result)
		buf.WriteByte('}')
	} else {
		buf.WriteString("\xa3\x62id") // three pairs, their keys in deterministic order
		buf.Write(id.appendCBOR(buf.AvailableBuffer()))
		buf.WriteString("\x66result")
		buf.Write(result)
		buf.WriteString("\x67jsonrpc\x632.0")
	}
	in.transmit(Outgoing{Body: buf.Bytes(), Last: true})
}

// encodingError is an error of a codec for a value of ours.
type encodingError struct{ error }

func (e *encodingError) Unwrap() error { return e.error }

// send encodes and sends a message. It is safe for concurrent use.
func (in *Incoming) send(v any, out Outgoing) error {
	buf := buffers.Get().(*bytes.Buffer)
	defer recycle(buf)
	if err := in.Codec.Encode(buf, v); err != nil {
		return &encodingError{err}
	}
	out.Body = buf.Bytes()
	return in.transmit(out)
}

func (in *Incoming) transmit(out Outgoing) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := in.Send(out); err != nil {
		return &disconnectedError{err}
	}
	return nil
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// recycle pools a buffer unless it has grown large.
func recycle(b *bytes.Buffer) {
	if b.Cap() <= 64<<10 {
		b.Reset()
		buffers.Put(b)
	}
}
