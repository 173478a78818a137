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
	Sender

	ID     ID
	Method string
	Params Raw
	Header Header

	ctx context.Context
	in  *Incoming
}

// Notify sends a notification before the result. It blocks while the carrier is busy and
// fails once the caller has gone.
func (c *Call) Notify(method string, params any) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	return c.in.send(notification{version, method, params})
}

// Codec returns the encoding of the request.
func (c *Call) Codec() Codec { return c.in.Codec }

// Header looks up a carrier's mirror of a message's member, by canonical HTTP header name, decoded.
// It is nil on carriers that mirror nothing.
type Header interface{ Values(name string) []string }

// Incoming is a message from a carrier.
type Incoming struct {
	Sender

	Codec  Codec
	Body   []byte
	Header Header
	// Send sends the notifications and the response, one at a time. The body is valid during
	// the call only.
	Send func(Outgoing) error

	sender func() Sender // of a stream, asked when the method is called; nil for others

	mu sync.Mutex
	// What a request needs is allocated with it.
	m    message
	call Call
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
	// Other handles the requests of all other methods, which are refused where it is nil.
	Other Method
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
	if fault := in.parse(); fault != nil {
		in.respond(nil, fault)
		return
	}
	d.serve(ctx, in)
}

// parse decodes a request or a notification, and refuses other messages. With a fault, only the
// message's ID is valid, and is zero if it could not be decoded.
func (in *Incoming) parse() (fault *Error) {
	m := &in.m
	defer Recover("decoding", func() { *m, fault = message{}, errInternal })
	var err error
	if in.Codec == JSON {
		err = decodeJSONRequest(in.Body, m)
	} else {
		err = in.Codec.Decode(in.Body, m)
	}
	if err != nil {
		*m = message{}
		var ours *Error
		var field *FieldError
		if errors.As(err, &ours) {
			return ours
		} else if errors.As(err, &field) && field.Field != "" {
			return Errorf(CodeInvalidRequest, "not a JSON-RPC message: %v", err)
		}
		return Errorf(CodeParse, "%v", err)
	}
	switch {
	case m.Version != version:
		return Errorf(CodeInvalidRequest, `"jsonrpc" must be "2.0"`)
	case m.Method == "":
		return Errorf(CodeInvalidRequest, `"method" is missing: this side takes requests and notifications`)
	}
	return nil
}

// serve answers a parsed message.
func (d *Dispatcher) serve(ctx context.Context, in *Incoming) {
	m := &in.m
	if m.ID.IsZero() {
		return // no notification changes anything here; a stream sees to cancellation
	}
	defer Recover(m.Method, func() { in.respond(nil, errInternal) })
	method, ok := d.methods[m.Method]
	if !ok {
		method = d.Other
	}
	if method == nil {
		in.respond(nil, Errorf(CodeMethodNotFound, "there is no method %.60q", m.Method))
		return
	}
	if in.sender != nil {
		in.Sender = in.sender()
	}
	in.call = Call{Sender: in.Sender, ID: m.ID, Method: m.Method, Params: m.Params, Header: in.Header, ctx: ctx, in: in}
	result, err := method(ctx, &in.call)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		in.respond(nil, asError(err))
		return
	}
	in.respond(result, nil)
}

// Recover is deferred. It keeps a panic in one message from ending the process: it logs it and calls
// then.
func Recover(what string, then func()) {
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

// Rendered is a result that encodes itself. It goes out unchecked, so it must be valid: it is for
// the one result that is worth writing by hand.
type Rendered interface {
	Render(codec Codec, w *bytes.Buffer) error
}

func (in *Incoming) respond(result any, fault *Error) {
	buf := GetBuffer()
	defer PutBuffer(buf)
	var err error
	if rendered, ok := result.(Rendered); ok {
		err = in.render(buf, rendered)
	} else {
		err = in.Codec.Encode(buf, response{version, in.m.ID, result, fault})
	}
	if err != nil {
		slog.Error("a result could not be encoded", "err", err)
		fault = errInternal
		buf.Reset()
		in.Codec.Encode(buf, response{version, in.m.ID, nil, fault})
	}
	in.transmit(Outgoing{Body: buf.Bytes(), Last: true, Err: fault})
}

// render encodes a response as the codecs do.
func (in *Incoming) render(buf *bytes.Buffer, result Rendered) error {
	if in.Codec == JSON {
		buf.WriteString(`{"jsonrpc":"2.0","id":`)
		buf.Write(in.m.ID.appendJSON(buf.AvailableBuffer()))
		buf.WriteString(`,"result":`)
		err := result.Render(JSON, buf)
		buf.WriteByte('}')
		return err
	}
	buf.WriteString("\xa3\x62id") // three pairs, their keys in deterministic order
	buf.Write(in.m.ID.appendCBOR(buf.AvailableBuffer()))
	buf.WriteString("\x66result")
	err := result.Render(CBOR, buf)
	buf.WriteString("\x67jsonrpc\x632.0")
	return err
}

// send encodes and sends a notification. It is safe for concurrent use.
func (in *Incoming) send(v notification) error {
	buf := GetBuffer()
	defer PutBuffer(buf)
	if err := in.Codec.Encode(buf, v); err != nil {
		return err
	}
	return in.transmit(Outgoing{Body: buf.Bytes()})
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

// GetBuffer returns an empty buffer for a message.
func GetBuffer() *bytes.Buffer { return buffers.Get().(*bytes.Buffer) }

// PutBuffer keeps a buffer for the next message, unless it is far larger than most messages.
func PutBuffer(b *bytes.Buffer) {
	if b.Cap() <= 64<<10 {
		b.Reset()
		buffers.Put(b)
	}
}
