package web

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"time"

	"agentsite/transport/rpc"
)

// MCP returns the route of JSON-RPC messages. Requests of MCP revisions that open with a
// handshake go to legacy.
func MCP(dispatcher *rpc.Dispatcher, legacy func(http.ResponseWriter, *http.Request, rpc.Sender)) Route {
	return Route{Pattern: "/mcp", Admission: Strangers, Serve: mcp{dispatcher, legacy}.serve}
}

type mcp struct {
	dispatcher *rpc.Dispatcher
	legacy     func(http.ResponseWriter, *http.Request, rpc.Sender)
}

func (m mcp) serve(w http.ResponseWriter, r *http.Request, c Caller) {
	since := time.Now() // ReadBody may take long
	alone := modern(r.Header)
	if r.Method != http.MethodPost && (alone || r.Header.Get("Mcp-Session-Id") == "") {
		w.Header().Set("Allow", "POST")
		RefuseRPC(w, http.StatusMethodNotAllowed, "messages are sent by POST")
		return
	}
	body, done := c.ReadBody(w, r)
	if body == nil {
		return
	}
	defer done()
	codec := codecOf(r.Header.Get("Content-Type"))
	switch {
	case r.Method == http.MethodPost && codec == nil:
		RefuseRPC(w, http.StatusUnsupportedMediaType, "Content-Type must be application/json or application/cbor")
	case codec == rpc.CBOR || alone:
		m.dispatch(w, r, codec, c.Sender, body, since)
	default:
		http.NewResponseController(w).SetWriteDeadline(time.Time{}) // the answer may be a stream
		r.Body = io.NopCloser(body)
		m.legacy(w, r, c.Sender)
	}
}

// dispatch carries one message to the dispatcher and its answers back.
func (m mcp) dispatch(w http.ResponseWriter, r *http.Request, codec rpc.Codec, from rpc.Sender,
	body *bytes.Buffer, since time.Time) {
	rc := http.NewResponseController(w)
	a := &answer{w: w, rc: rc, codec: codec, accept: strings.Join(r.Header.Values("Accept"), ","), since: since}
	defer a.end()
	a.in = rpc.Incoming{Sender: from, Codec: codec, Body: body.Bytes(), Header: mirror(r.Header), Send: a.send}
	m.dispatcher.Serve(r.Context(), &a.in)
	if !a.begun && r.Context().Err() == nil {
		w.WriteHeader(http.StatusAccepted) // a notification
	}
}

// modern tells a request that stands alone from one of a session. A revision that
// knows no sessions passes over the session's header; nothing keeps a client of a
// session from mirroring its method.
func modern(h http.Header) bool {
	if !rpc.HasHandshake(h.Get("Mcp-Protocol-Version")) {
		return true
	}
	method := h.Get("Mcp-Method")
	return h.Get("Mcp-Session-Id") == "" && method != "" && method != "initialize"
}

func codecOf(contentType string) rpc.Codec {
	media, _, _ := strings.Cut(contentType, ";")
	switch strings.ToLower(strings.TrimSpace(media)) {
	case rpc.JSON.ContentType():
		return rpc.JSON
	case rpc.CBOR.ContentType():
		return rpc.CBOR
	}
	return nil
}
