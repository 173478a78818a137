package web

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"time"

	"agentsite/transport/rpc"
)

// answer writes the HTTP response: one message, or a stream once a notification comes before the
// response.
type answer struct {
	in     rpc.Incoming // the message that it answers
	w      http.ResponseWriter
	rc     *http.ResponseController
	codec  rpc.Codec
	accept string
	since  time.Time // when its header was read, and the server set its write deadline

	begun  bool
	stream bool
	events *Events // of a stream in JSON
}

var errNoStream = &rpc.Error{
	Code: rpc.CodeInvalidRequest, Malformed: true,
	Message: "the answer is a stream: Accept must name text/event-stream, or application/cbor-seq with CBOR",
}

func (a *answer) send(o rpc.Outgoing) error {
	if o.Last && !a.stream {
		a.begun = true
		if time.Since(a.since) > deadlineSlack { // the work may have used up the server's
			a.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
		}
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
	if a.codec == rpc.JSON {
		a.events = NewEvents(a.w)
	} else {
		streamHeader(a.w, a.streamType())
	}
}

func (a *answer) event(body []byte) error {
	if a.events != nil {
		return a.events.Send("message", body)
	}
	a.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	a.w.Write(body)
	return a.rc.Flush()
}

func (a *answer) end() {
	if a.events != nil {
		a.events.Close()
	}
}

// status returns the HTTP status of an answer (streamable-http, "Sending Messages").
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
