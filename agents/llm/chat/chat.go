package chat

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// The defaults of an Endpoint are for models that run on a CPU: loading one takes over two minutes, and
// reading a request of 3000 tokens does, too; while a server has only a part of a call, it sends nothing.
const DefaultFirst, DefaultBetween = 5 * time.Minute, 2 * time.Minute

// Endpoint is a model at a server. It is safe for concurrent use, and is not copied after its first
// use.
type Endpoint struct {
	URL   string // the root of the API, such as http://laptop:11434/v1
	Model string
	// Key returns the server's API key, at each request; nil for none.
	Key func() (string, error)
	// First bounds the time until an answer begins, Between that between two parts of it, and Whole
	// all of it; DefaultFirst, DefaultBetween, and First and 15 minutes where they are 0.
	First, Between, Whole time.Duration

	mu      sync.Mutex
	without []string  // what the server refuses, of optional or by the name of a member; replaced, never changed
	once    sync.Once // makes client, at the first request: an endpoint that nobody asks has none
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
	Extra  Extra   // of Assistant
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

	Extra, FunctionExtra Extra // beside ID and function, and beside Name and Arguments
}

// Usage counts the tokens of a request, as the server reports them.
type Usage struct {
	Prompt, Answer int
	Known          bool
}

// Answer holds a model's answer.
type Answer struct {
	Text    string // without what the model thought
	Calls   []Call // with IDs of which no two are equal
	Usage   Usage
	Finish  string // why it ended, in the server's word; "" where it did not say
	Refused string // why the model or the server would not answer
	Extra   Extra  // of the message
}

// Message returns an answer as a part of the conversation.
func (a *Answer) Message() Message {
	return Message{Role: Assistant, Text: a.Text, Calls: a.Calls, Extra: a.Extra}
}

// Request holds the messages and the tools that a model is sent.
type Request struct {
	Messages  []Message
	Tools     []ToolDef
	MaxAnswer int // tokens; 0 leaves it to the server
	// Again is called before a request that the server may have received is sent once more. Its error
	// ends the request. It may be nil.
	Again func() error
}

// Size returns the encoded length of a message in bytes, without its pictures.
func (m *Message) Size() int {
	plain := *m
	plain.Images = nil
	return len(plain.wire(nil))
}

// Size returns the encoded length of a tool in bytes.
func (t *ToolDef) Size() int { return len(t.wire()) }

// wire returns a message as it is sent, without the members that the server refuses.
func (m *Message) wire(without []string) string {
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
		calls += `,{"id":` + Quote(c.ID) + `,"type":"function","function":{"name":` + Quote(c.Name) + `,"arguments":` + Quote(args) + c.FunctionExtra.wire(without) + "}" + c.Extra.wire(without) + "}"
	}
	if calls != "" {
		text += `,"tool_calls":[` + calls[1:] + "]"
	}
	if m.CallID != "" {
		text += `,"tool_call_id":` + Quote(m.CallID)
	}
	return text + m.Extra.wire(without) + "}"
}

// wire returns a tool as it is sent. Its function has no field strict: that takes schemas with all
// properties required, which those of programs are not, and arguments are checked here in any case.
func (t *ToolDef) wire() string {
	return `{"type":"function","function":{"name":` + Quote(t.Name) + `,"description":` + Quote(t.Description) + `,"parameters":` + string(t.Input) + "}}"
}

// wire returns a request as it is sent, without what the server refuses.
func (e *Endpoint) wire(r *Request, without []string) string {
	var messages, tools []string
	conversation := r.Messages
	if slices.Contains(without, systemRole) {
		conversation = withoutSystem(conversation)
	}
	for i := range conversation {
		messages = append(messages, conversation[i].wire(without))
	}
	for i := range r.Tools {
		tools = append(tools, r.Tools[i].wire())
	}
	more := ""
	if tools != nil {
		more = `,"tools":[` + strings.Join(tools, ",") + "]"
	}
	if !slices.Contains(without, stream) {
		more += `,"stream":true`
		if !slices.Contains(without, streamOptions) {
			more += `,"stream_options":{"include_usage":true}`
		}
	}
	if r.MaxAnswer > 0 {
		field := maxTokensField
		if slices.Contains(without, field) {
			field = "max_completion_tokens" // its newer name
		}
		more += `,"` + field + `":` + strconv.Itoa(r.MaxAnswer)
	}
	return `{"model":` + Quote(e.Model) + `,"messages":[` + strings.Join(messages, ",") + "]" + more + "}"
}

// withoutSystem returns a conversation for models that know no system role: its texts, and neighbouring
// ones of the user, are at the beginning of the user's next message.
func withoutSystem(all []Message) (out []Message) {
	for _, m := range all {
		if m.Role == System {
			m.Role = User
		}
		if n := len(out); n > 0 && m.Role == User && out[n-1].Role == User {
			last := &out[n-1]
			last.Text += "\n\n" + m.Text
			last.Images = slices.Concat(last.Images, m.Images)
			continue
		}
		out = append(out, m)
	}
	return out
}
