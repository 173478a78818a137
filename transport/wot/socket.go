package wot

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node"
	"agentsite/transport/adapter"
	"agentsite/transport/rpc"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"
)

// The WebSocket sub-protocol of Eclipse LMOS (LMOS Protocol, "Communication Protocol"): messages
// about the same things as over HTTP.
const (
	subprotocol = "lmosprotocol"
	socketPath  = "/lmosprotocol"

	maxSocketMessage = 64 << 10
	maxWatches       = 16 // of one session
	maxQueued        = 16 // messages that wait
	socketTimeout    = 30 * time.Second
)

// session is one WebSocket. One goroutine reads from it, and another one handles the messages, one
// after another, except an emergency stop, which waits for nothing. Each watch has a goroutine too.
type session struct {
	server
	*adapter.Call
	id   string // of the session, and of no other
	conn *websocket.Conn
	ctx  context.Context // of the session
	end  context.CancelFunc

	mu       sync.Mutex
	watches  map[string]context.CancelFunc // by the watched affordance
	watching sync.WaitGroup
	tasks    map[string]string // the last task of each skill, by thing and action
}

// socket serves a session until its client leaves, its permission ends or the site does.
func (s server) socket(ctx context.Context, c *adapter.Call) (any, error) {
	asked := strings.Split(strings.Join(c.Request.Header.Values("Sec-WebSocket-Protocol"), ","), ",")
	if !slices.ContainsFunc(asked, func(p string) bool { return strings.TrimSpace(p) == subprotocol }) {
		return nil, device.Faultf(device.Invalid, "this is a WebSocket with the sub-protocol %s", subprotocol)
	}
	place, err := s.Node.Hold(c.Who, node.Sessions)
	if err != nil {
		return nil, err
	}
	defer place.Leave()
	// Host and Origin are checked before any route.
	conn, err := websocket.Accept(c.Writer, c.Request, &websocket.AcceptOptions{Subprotocols: []string{subprotocol}, InsecureSkipVerify: true})
	if err != nil {
		return adapter.Answered, nil // by the library
	}
	defer conn.CloseNow()
	conn.SetReadLimit(maxSocketMessage)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.Ending, cancel)()
	w := &session{server: s, Call: c, id: rand.Text(), conn: conn, ctx: ctx, end: cancel, watches: make(map[string]context.CancelFunc), tasks: make(map[string]string)}
	defer w.watching.Wait()
	defer cancel()
	w.watching.Go(func() { // ends with the permission
		defer cancel()
		if err := s.Node.Watch(ctx, c.Who, agents.WatchRequest{OfferOnly: true}, func(agents.Update) error { return nil }); ctx.Err() == nil {
			w.send(w.failure(&request{}, err))
		}
	})
	queue := make(chan *request, maxQueued)
	w.watching.Go(func() {
		for {
			select {
			case r := <-queue:
				w.do(r)
			case <-ctx.Done():
				return
			}
		}
	})
	w.read(queue)
	return adapter.Answered, nil
}

// read reads messages until the session ends.
func (w *session) read(queue chan<- *request) {
	for {
		kind, text, err := w.conn.Read(w.ctx)
		if err != nil {
			return
		}
		if kind != websocket.MessageText {
			w.conn.Close(websocket.StatusUnsupportedData, "messages are JSON texts")
			return
		}
		r, err := parseRequest(text)
		if err != nil {
			w.send(w.failure(r, err))
			continue
		}
		if w.isStop(r) {
			w.do(r)
			continue
		}
		select {
		case queue <- r:
		default: // to wait would keep a stop from being read
			w.send(w.failure(r, device.Faultf(device.Busy, "%d messages wait: send the next ones when some are answered", maxQueued)))
		}
	}
}

// isStop reports whether a message is an emergency stop. An agent may have a skill of that name, and
// the session's tasks are for one goroutine.
func (w *session) isStop(r *request) bool {
	of, err := w.subject(r)
	return err == nil && of.kind == sitePrefix && r.Action == "stop" && strings.EqualFold(r.Type, "invokeAction")
}

// do handles a message, and answers a refusal.
func (w *session) do(r *request) {
	if err := guarded(func() error { return w.handle(w.ctx, r) }); err != nil {
		w.send(w.failure(r, err))
	}
}

// guarded calls do, and returns a panic as an error: it ends one message, as it ends one request over
// HTTP, and not the program.
func guarded(do func() error) (err error) {
	defer rpc.Recover(socketPath, func() { err = device.Faultf(device.Internal, "a message panicked") })
	return do()
}

// request is a message from a client. Where the specification's table and its examples, or its
// implementation, spell a member differently, each spelling is taken.
type request struct {
	ThingID        string   `json:"thingId"`
	MessageID      string   `json:"messageId"`
	Type           string   `json:"messageType"`
	CorrelationID  string   `json:"correlationId"`
	Name           string   `json:"name"`
	Event          string   `json:"event"`
	Action         string   `json:"action"`
	Data           rpc.Raw  `json:"data"`
	Input          rpc.Raw  `json:"input"`
	Properties     []string `json:"properties"`
	Names          []string `json:"names"`
	ThingID2       string   `json:"thingID"`
	MessageID2     string   `json:"messageID"`
	CorrelationID2 string   `json:"correlationID"`
	Property       string   `json:"property"`

	For      *float64 `json:"for"`  // seconds, of writeProperty
	Task     string   `json:"task"` // of queryAction and cancelAction; the last of the action when left out
	Approval string   `json:"agentsite/approval"`
	Key      *string  `json:"agentsite/idempotency-key"` // the message's ID in this session when left out
	Within   *float64 `json:"agentsite/expires-in"`
	Via      []string `json:"agentsite/via"`
}

// parseRequest decodes a message. Members that it does not know are ignored, as the specification's
// traceparent is.
func parseRequest(text []byte) (*request, error) {
	r := new(request)
	raw, err := rpc.ParseJSON(text)
	if err == nil {
		err = raw.Decode(r)
	}
	if err != nil {
		return &request{}, device.Faultf(device.Invalid, "the message: %w", err)
	}
	either := func(into *string, other string) {
		if *into == "" {
			*into = other
		}
	}
	either(&r.ThingID, r.ThingID2)
	either(&r.MessageID, r.MessageID2)
	either(&r.CorrelationID, r.CorrelationID2)
	either(&r.CorrelationID, r.MessageID)
	either(&r.Name, r.Property)
	either(&r.Action, r.Name)
	either(&r.Event, r.Name)
	if len(r.Properties) == 0 {
		r.Properties = r.Names
	}
	return r, nil
}

// terms returns the terms of a call that acts. A message's ID is the client's within its session, so
// that the same ID in another session is another call. One that is too long for a key is refused as one.
func (w *session) terms(r *request) agents.Terms {
	t := agents.Terms{Key: r.Key, Within: r.Within, Approval: r.Approval, Via: r.Via}
	if t.Key == nil && r.MessageID != "" {
		if t.Key = &r.MessageID; len(r.MessageID) <= sha256.Size*2 {
			sum := sha256.Sum256([]byte(w.id + r.MessageID))
			t.Key = new(hex.EncodeToString(sum[:]))
		}
	}
	return t
}

// message is one to a client.
type message struct {
	ThingID       string `json:"thingId"`
	MessageID     string `json:"messageId"`
	Type          string `json:"messageType"`
	CorrelationID string `json:"correlationId,omitzero"`
	Timestamp     string `json:"timestamp,omitzero"`

	// Of propertyReading; the implementation calls name property, and value data.
	Name     string `json:"name,omitzero"`
	Property string `json:"property,omitzero"`
	Value    any    `json:"value,omitzero"`
	Data     any    `json:"data,omitzero"` // of events, too

	Event   string `json:"event,omitzero"`
	Action  string `json:"action,omitzero"`
	Output  any    `json:"output,omitzero"`
	Message string `json:"message,omitzero"` // of an acknowledgement

	Kind     string `json:"type,omitzero"` // of an error, as the following
	Title    string `json:"title,omitzero"`
	Status   string `json:"status,omitzero"` // of an action, too
	Detail   string `json:"detail,omitzero"`
	Instance string `json:"instance,omitzero"`
	Approval string `json:"agentsite/approval,omitzero"`
}

// newID returns a UUID (version 4).
func newID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// reply returns a message that answers r.
func reply(r *request, kind string) message {
	return message{ThingID: r.ThingID, MessageID: newID(), Type: kind, CorrelationID: r.CorrelationID}
}

// failure returns the answer to a message that was refused.
func (w *session) failure(r *request, err error) message {
	p := w.Problem(err)
	m := reply(r, "error")
	m.Kind, m.Title, m.Status, m.Detail, m.Approval = "urn:agentsite:fault:"+p.Fault, p.Title, statusText(p.Status), p.Detail, p.Approval
	m.Instance = "urn:uuid:" + m.MessageID
	return m
}

// send sends a message, or ends the session where it cannot. It is safe for concurrent use.
func (w *session) send(m message) error {
	text, err := json.Marshal(m, json.Deterministic(true))
	if err == nil {
		sending, cancel := context.WithTimeout(w.ctx, socketTimeout) // the connection ends with it
		defer cancel()
		err = w.conn.Write(sending, websocket.MessageText, text)
	}
	if err != nil {
		w.end()
	}
	return err
}

// watch runs do in the background until the client unsubscribes, do returns or the session ends.
// The error of do is sent to the client.
func (w *session) watch(r *request, what string, do func(context.Context) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watches[what] != nil {
		return device.Faultf(device.Invalid, "this is watched already")
	}
	if len(w.watches) == maxWatches {
		return device.Faultf(device.Busy, "at most %d watches in one session", maxWatches)
	}
	watching, cancel := context.WithCancel(w.ctx)
	w.watches[what] = cancel
	w.watching.Go(func() {
		defer cancel()
		err := guarded(func() error { return do(watching) })
		w.mu.Lock()
		left := watching.Err() != nil
		if !left {
			delete(w.watches, what)
		}
		w.mu.Unlock()
		if err != nil && !left {
			w.send(w.failure(r, err))
		}
	})
	return nil
}

// leave ends a watch, if there is one.
func (w *session) leave(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if cancel := w.watches[what]; cancel != nil {
		cancel()
		delete(w.watches, what)
	}
}
