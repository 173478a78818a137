package chat

import (
	"encoding/base64"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
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
	client  atomic.Pointer[client]
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
	MustCall  bool // the answer has to be a call, where the server knows that
	MaxAnswer int  // tokens; 0 leaves it to the server
	// Temperature is left to the server where it is nil.
	Temperature *float64
}

// Size is how many bytes a message has as it is sent, without its pictures.
func (m *Message) Size() int {
	plain := *m
	plain.Images = nil
	return size(wireOf(plain))
}

// Size is how many bytes a tool has as it is sent.
func (t *ToolDef) Size() int { return size(wireTools([]ToolDef{*t})) }

func size(sent any) int {
	text, err := json.Marshal(sent)
	if err != nil { // Complete says so
		return 0
	}
	return len(text)
}

// wireRequest is a request as it is sent.
type wireRequest struct {
	Model         string        `json:"model"`
	Messages      []wireMessage `json:"messages"`
	Tools         []wireTool    `json:"tools,omitzero"`
	ToolChoice    string        `json:"tool_choice,omitzero"`
	Stream        bool          `json:"stream"`
	StreamOptions *wireStream   `json:"stream_options,omitzero"`
	MaxTokens     int           `json:"max_tokens,omitzero"`
	MaxCompletion int           `json:"max_completion_tokens,omitzero"`
	Temperature   *float64      `json:"temperature,omitzero"`
}

type wireStream struct {
	Usage bool `json:"include_usage"`
}

type wireMessage struct {
	Role    Role       `json:"role"`
	Content any        `json:"content"` // a text, or parts
	Calls   []wireCall `json:"tool_calls,omitzero"`
	CallID  string     `json:"tool_call_id,omitzero"`
}

type wirePart struct {
	Type  string     `json:"type"`
	Text  string     `json:"text,omitzero"`
	Image *wireImage `json:"image_url,omitzero"`
}

type wireImage struct {
	URL string `json:"url"`
}

type wireCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function wireFunction `json:"function"`
}

type wireFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// wireTool is a tool. Its function has no field strict: that takes schemas with all properties
// required, which those of programs are not, and arguments are checked here in any case.
type wireTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string         `json:"name"`
		Description string         `json:"description,omitzero"`
		Parameters  jsontext.Value `json:"parameters"`
	} `json:"function"`
}

func wireMessages(all []Message) (out []wireMessage) {
	for _, m := range all {
		out = append(out, wireOf(m))
	}
	return out
}

func wireOf(m Message) wireMessage {
	w := wireMessage{Role: m.Role, Content: m.Text, CallID: m.CallID}
	if len(m.Images) > 0 {
		parts := []wirePart{{Type: "text", Text: m.Text}}
		for _, p := range m.Images {
			parts = append(parts, wirePart{Type: "image_url", Image: &wireImage{"data:" + p.MIME + ";base64," + base64.StdEncoding.EncodeToString(p.Data)}})
		}
		w.Content = parts
	}
	for _, c := range m.Calls {
		args := string(c.Arguments)
		if c.Arguments == nil { // servers refuse what is no JSON
			args = "{}"
		}
		w.Calls = append(w.Calls, wireCall{c.ID, "function", wireFunction{c.Name, args}})
	}
	return w
}

func wireTools(all []ToolDef) (out []wireTool) {
	for _, t := range all {
		w := wireTool{Type: "function"}
		w.Function.Name, w.Function.Description, w.Function.Parameters = t.Name, t.Description, t.Input
		out = append(out, w)
	}
	return out
}
