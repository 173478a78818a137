package aitp

import (
	"strconv"
	"sync"
	"time"

	"agentsite/device"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of a thread. Its oldest messages make room for new ones.
const (
	maxMessages = 100
	maxThread   = 128 << 10 // bytes
	maxResult   = 64 << 10  // bytes of a result
)

// thread is a conversation of one principal.
type thread struct {
	id, site string
	created  int64
	now      func() time.Time // the site's clock
	actors   []jsontext.Value

	mu       sync.Mutex
	busy     bool // a message is being answered; its goroutine owns pending
	messages []message
	bytes    int
	said     int // messages so far

	pending pending
	calls   int // operations so far
}

// message is a message of a thread.
type message struct {
	ID       string         `json:"id"`
	Object   string         `json:"object"`
	Created  int64          `json:"created_at"`
	Thread   string         `json:"thread_id"`
	Role     string         `json:"role"`
	Content  []string       `json:"content"`
	Metadata answerMetadata `json:"metadata"`
}

// answerMetadata is that of the thread's messages; all but Actor are of the site's.
type answerMetadata struct {
	Actor    string           `json:"actor,omitzero"`
	Fault    device.FaultKind `json:"agentsite/fault,omitzero"`    // of an operation that was not done
	Approval bool             `json:"agentsite/approval,omitzero"` // it waits for an owner
}

// messageList is a list in the format of the API that threads come from.
type messageList struct {
	Object  string    `json:"object"`
	Data    []message `json:"data"`
	HasMore bool      `json:"has_more"`
}

// threadObject is a thread as it is told.
type threadObject struct {
	ID       string    `json:"id"`
	Object   string    `json:"object"`
	Created  int64     `json:"created_at"`
	Messages []message `json:"messages"`
	Metadata struct {
		Parent *string `json:"parent_id"`
		Actors []any   `json:"actors"`
	} `json:"metadata"`
}

// actor is the site among the actors of a thread.
type actor struct {
	ID           string       `json:"id"`
	Capabilities []capability `json:"capabilities"`
}

type capability struct {
	Schema string `json:"schema"`
}

func (t *thread) render() threadObject {
	o := threadObject{ID: t.id, Object: "thread", Created: t.created, Messages: t.all()}
	for _, theirs := range t.actors {
		o.Metadata.Actors = append(o.Metadata.Actors, theirs)
	}
	o.Metadata.Actors = append(o.Metadata.Actors, actor{t.site, []capability{{decisionsSchema}, {dataSchema}}})
	return o
}

// all returns the messages, the oldest first.
func (t *thread) all() []message {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]message{}, t.messages...)
}

// add adds a message.
func (t *thread) add(role string, meta answerMetadata, content ...string) message {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said++
	m := message{
		ID: t.id + "-" + strconv.Itoa(t.said), Object: "thread.message", Created: t.now().Unix(), Thread: t.id,
		Role: role, Content: content, Metadata: meta,
	}
	t.messages = append(t.messages, m)
	t.bytes += m.size()
	for len(t.messages) > maxMessages || t.bytes > maxThread {
		t.bytes -= t.messages[0].size()
		t.messages[0] = message{}
		t.messages = t.messages[1:]
	}
	return m
}

func (m message) size() (n int) {
	for _, text := range m.Content {
		n += len(text)
	}
	return n + len(m.Metadata.Actor)
}

// begin makes the caller the only one to answer, until end.
func (t *thread) begin() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy {
		return device.Faultf(device.Busy, "the message before is still being answered")
	}
	t.busy = true
	return nil
}

func (t *thread) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy = false
}
