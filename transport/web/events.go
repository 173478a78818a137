package web

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// Events is an answer that is a stream of server-sent events (WHATWG HTML, section 9.2). While
// nothing is sent, a comment every 30 seconds shows that it goes on. Its methods are safe for
// concurrent use.
type Events struct {
	w  http.ResponseWriter
	rc *http.ResponseController

	mu     sync.Mutex // the keep-alive writes too
	alive  *time.Timer
	closed bool
}

// NewEvents begins the answer. Close ends it.
func NewEvents(w http.ResponseWriter) *Events {
	streamHeader(w, "text/event-stream")
	e := &Events{w: w, rc: http.NewResponseController(w)}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.alive = time.AfterFunc(keepAlive, e.comment)
	return e
}

// Begin sends the header of the answer, which otherwise goes with the first event.
func (e *Events) Begin() { e.comment() }

// Send sends an event: data is one line of text, and an event without a name is a message. It
// blocks while the connection is busy, at most 30 seconds.
func (e *Events) Send(event string, data []byte) error { return e.SendID("", event, data) }

// SendID is Send for an event with an ID, a line of text, after which its client can begin again.
func (e *Events) SendID(id, event string, data []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	if id != "" {
		io.WriteString(e.w, "id: "+id+"\n")
	}
	if event != "" {
		io.WriteString(e.w, "event: "+event+"\n")
	}
	io.WriteString(e.w, "data: ")
	e.w.Write(data)
	io.WriteString(e.w, "\n\n")
	e.alive.Reset(keepAlive)
	return e.rc.Flush()
}

// comment keeps a silent stream from being taken for a dead one.
func (e *Events) comment() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	e.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	io.WriteString(e.w, ":\n\n")
	if e.rc.Flush() == nil {
		e.alive.Reset(keepAlive)
	}
}

// Close keeps the keep-alive from writing into an answer that is over.
func (e *Events) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	e.alive.Stop()
}

// ExtendDeadline gives an answer the whole time for being written, from now on.
func ExtendDeadline(w http.ResponseWriter) {
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
}

// streamHeader sets the header of an answer that is sent as it comes to be.
func streamHeader(w http.ResponseWriter, contentType string) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
}
