package chat

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Endpoint is a model at a server. It is safe for concurrent use, and is not copied after its first
// use.
type Endpoint struct {
	URL   string // the root of the API, such as http://laptop:11434/v1
	Model string
	// Key returns the server's API key, at each request; nil for none.
	Key func() (string, error)
	// First bounds the time until an answer begins, Between that between two parts of it, and Whole
	// all of it; a minute, 30 seconds and five minutes where they are 0.
	First, Between, Whole time.Duration

	without atomic.Uint32 // the optional fields that the server does not know
	once    sync.Once     // makes client, at the first request: an endpoint that nobody asks has none
	client  http.Client
}

// Role is the speaker of a message.
type Role string

const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Message is a part of a conversation.
type Message struct {
	Role   Role
	Text   string
	Images []Image // of User
	Calls  []Call  // of Assistant
	CallID string  // of Tool: what is answered
}

// Image is a picture.
type Image struct {
	MIME string
	Data []byte
}

// ToolDef is a tool that the model may call.
type ToolDef struct {
	Name, Description string
	Input             jsontext.Value // JSON Schema of an object
}

// Call is a call that the model wants to be made. Nothing about it was checked.
type Call struct {
	ID, Name  string
	Arguments jsontext.Value // a JSON object; nil where Broken is set
	Broken    string         // what is there instead of an object
}

// Usage is how many tokens a request used, by the server's word.
type Usage struct {
	Prompt, Answer int
	Known          bool
}

// Answer is what a model answered.
type Answer struct {
	Text    string // without what the model thought
	Calls   []Call // with IDs of which no two are equal
	Usage   Usage
	Finish  string // why it ended, in the server's word; "" where it did not say
	Refused string // why the model or the server would not answer
}

// Request is what a model is asked.
type Request struct {
	Messages  []Message
	Tools     []ToolDef
	MaxAnswer int // tokens; 0 leaves it to the server
}

// Size is how many bytes a message has as it is sent, without its pictures.
func (m *Message) Size() int {
	plain := *m
	plain.Images = nil
	return len(plain.wire())
}

// Size is how many bytes a tool has as it is sent.
func (t *ToolDef) Size() int { return len(t.wire()) }

// wire returns a message as it is sent.
func (m *Message) wire() string {
	text := `{"role":"` + string(m.Role) + `","content":`
	if len(m.Images) == 0 {
		text += Quote(m.Text)
	} else {
		text += `[{"type":"text","text":` + Quote(m.Text) + "}"
		for _, p := range m.Images {
			text += `,{"type":"image_url","image_url":{"url":` + Quote("data:"+p.MIME+";base64,"+base64.StdEncoding.EncodeToString(p.Data)) + "}}"
		}
		text += "]"
	}
	calls := ""
	for i := range m.Calls {
		c := &m.Calls[i]
		args := "{}"
		if c.Arguments != nil { // servers refuse what is no JSON
			args = string(c.Arguments)
		}
		calls += `,{"id":` + Quote(c.ID) + `,"type":"function","function":{"name":` + Quote(c.Name) + `,"arguments":` + Quote(args) + "}}"
	}
	if calls != "" {
		text += `,"tool_calls":[` + calls[1:] + "]"
	}
	if m.CallID != "" {
		text += `,"tool_call_id":` + Quote(m.CallID)
	}
	return text + "}"
}

// wire returns a tool as it is sent. Its function has no field strict: that takes schemas with all
// properties required, which those of programs are not, and arguments are checked here in any case.
func (t *ToolDef) wire() string {
	return `{"type":"function","function":{"name":` + Quote(t.Name) + `,"description":` + Quote(t.Description) + `,"parameters":` + string(t.Input) + "}}"
}

// wire returns a request as it is sent, without what the server does not know.
func (e *Endpoint) wire(r *Request, without uint32) string {
	var messages, tools []string
	for i := range r.Messages {
		messages = append(messages, r.Messages[i].wire())
	}
	for i := range r.Tools {
		tools = append(tools, r.Tools[i].wire())
	}
	more := ""
	if tools != nil {
		more = `,"tools":[` + strings.Join(tools, ",") + "]"
	}
	if without&withoutStreamOptions == 0 {
		more += `,"stream_options":{"include_usage":true}`
	}
	if r.MaxAnswer > 0 {
		field := "max_tokens"
		if without&withoutMaxTokens != 0 {
			field = "max_completion_tokens" // its newer name
		}
		more += `,"` + field + `":` + strconv.Itoa(r.MaxAnswer)
	}
	return `{"model":` + Quote(e.Model) + `,"messages":[` + strings.Join(messages, ",") + `],"stream":true` + more + "}"
}
