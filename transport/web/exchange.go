package web

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentsite/transport/rpc"
)

// answer is what goes back: one message, or a stream once a notification comes
// before the response.
type answer struct {
	in     rpc.Incoming // what it answers
	w      http.ResponseWriter
	rc     *http.ResponseController
	codec  rpc.Codec
	accept string

	mu     sync.Mutex // the keep-alive writes too
	begun  bool
	stream bool
	alive  *time.Timer
}

var errNoStream = &rpc.Error{
	Code: rpc.CodeInvalidRequest, Malformed: true,
	Message: "the answer is a stream: Accept must name text/event-stream, or application/cbor-seq with CBOR",
}

func (a *answer) send(o rpc.Outgoing) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o.Last && !a.stream {
		a.begun = true
		a.rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // the work may have used up the server's
		return writeBody(a.w, status(o.Err), a.codec, o.Body)
	}
	if !a.stream {
		if !a.accepts() {
			return errNoStream
		}
		a.open()
	}
	return a.event(o.Body)
}

// accepts reports whether the client takes a stream. One that says nothing takes
// anything.
func (a *answer) accepts() bool {
	return a.accept == "" || strings.Contains(a.accept, "*/*") || strings.Contains(a.accept, a.streamType())
}

// streamType is the media type of many messages: events for JSON, and RFC 8742
// for CBOR.
func (a *answer) streamType() string {
	if a.codec == rpc.CBOR {
		return "application/cbor-seq"
	}
	return "text/event-stream"
}

func (a *answer) open() {
	a.begun, a.stream = true, true
	h := a.w.Header()
	h.Set("Content-Type", a.streamType())
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	if a.codec == rpc.JSON {
		a.alive = time.AfterFunc(keepAlive, a.comment)
	}
}

func (a *answer) event(body []byte) error {
	a.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	if a.codec == rpc.JSON {
		io.WriteString(a.w, "event: message\ndata: ")
		a.w.Write(body)
		io.WriteString(a.w, "\n\n")
		a.alive.Reset(keepAlive)
	} else {
		a.w.Write(body)
	}
	return a.rc.Flush()
}

// comment keeps a silent stream from being taken for a dead one.
func (a *answer) comment() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.alive == nil {
		return
	}
	a.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	io.WriteString(a.w, ":\n\n")
	if a.rc.Flush() == nil {
		a.alive.Reset(keepAlive)
	}
}

// end keeps the keep-alive from writing into a response that is over.
func (a *answer) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.alive != nil {
		a.alive.Stop()
		a.alive = nil
	}
}

// status is what HTTP says of an answer (streamable-http, "Sending Messages").
func status(e *rpc.Error) int {
	switch {
	case e == nil:
		return http.StatusOK
	case e.Code == rpc.CodeMethodNotFound:
		return http.StatusNotFound
	case e.Malformed:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// write sends an error that no request is behind.
func write(w http.ResponseWriter, status int, e *rpc.Error) {
	var buf bytes.Buffer
	rpc.EncodeError(rpc.JSON, &buf, e)
	writeBody(w, status, rpc.JSON, buf.Bytes())
}

// Header values that are the same in every answer; nobody changes them.
var (
	nosniff      = []string{"nosniff"}
	contentTypes = map[rpc.Codec][]string{rpc.JSON: {rpc.JSON.ContentType()}, rpc.CBOR: {rpc.CBOR.ContentType()}}
)

func writeBody(w http.ResponseWriter, status int, codec rpc.Codec, body []byte) error {
	h := w.Header()
	h["Content-Type"] = contentTypes[codec]
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, err := w.Write(body)
	return err
}
