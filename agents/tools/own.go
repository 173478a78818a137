package tools

import (
	"context"

	"agentsite/agents"
	"agentsite/agents/task"
)

// Agent is a hosted agent that offers tools of its own, beside the operations of the site.
type Agent interface {
	Call(ctx context.Context, p agents.Principal, c Call) (Result, error)
	// Tools lists the agent's tools, always in the same order. The slice is not changed by either
	// side.
	Tools() []Tool
}

// Tool is one thing that a caller can call.
type Tool struct {
	Name        string // [a-z0-9_]{1,40}
	Title       string
	Description string
	Input       []byte // JSON Schema 2020-12 of the arguments, as JSON
	Output      []byte // JSON Schema of Result.Value; nil when there is none
	Hints       Hints
	View        bool   // its results can be shown by the site's view (transport/mcp/view)
	From        string // the principal of the agent that offers it, where another program makes it; else ""
}

// Hints describe a tool to a client. They are advice and guard nothing.
type Hints struct {
	ReadOnly    bool // changes nothing
	Destructive bool // may do something that cannot be undone
	Idempotent  bool // twice is the same as once
}

// Args are a call's arguments, still as they came off the wire.
type Args interface {
	// Decode fills the struct that into points to. It is strict: an unknown
	// field or a wrong type is an error that names the field.
	Decode(into any) error
}

// Call is one call of a tool.
type Call struct {
	Tool string
	Args Args
	// Note sends a message of a running call to its caller before its result. It is never nil and
	// never blocks for long; notes may be dropped.
	Note  func(Note)
	Terms agents.Terms
	// Account is the account to which the node charges the call: the caller's, or the asker's for a call
	// of a hosted agent.
	Account string
	// Exchange has the results of earlier rounds of the same call (see NeedInput).
	Exchange Exchange
}

// Note is progress, or a log line when Level is set.
type Note struct {
	Progress, Total float64
	Level           string
	Message         string
}

// Exchange is the state of a call that asks its caller for input.
type Exchange struct {
	Can     Capabilities    // the capabilities of the client
	Answers map[string]Args // the client's answers by Question.Key
	State   string          // the NeedInput.State, its integrity and its principal verified
}

// Capabilities are the capabilities that a client declared. Tasks means that it can be answered
// with a task.
type Capabilities struct{ Elicitation, Sampling, Roots, Tasks bool }

// Question is one request for input, in MCP's words.
type Question struct {
	Key    string // names the answer
	Method string // elicitation/create, sampling/createMessage or roots/list
	Params any    // encodes by its json tags; nil for none
}

// NeedInput is a result that is not one yet: the caller is to answer the
// questions and to call again with the same arguments.
type NeedInput struct {
	Questions []Question
	State     string // comes back in Exchange.State; carriers seal it
	Elsewhere string // a step that somebody else has to do, whatever is answered; "" for none
}

// Result is the result of a call.
type Result struct {
	// From is the principal of the agent whose program wrote the result, which is untrusted; "" for
	// the site's own results.
	From      string     `json:"from,omitzero"`
	Value     any        `json:"value,omitzero"` // encodes by its json tags and matches Tool.Output
	Content   []Content  `json:"content,omitzero"`
	NeedInput *NeedInput `json:"-"` // instead of the others
	// Task is a task that the call made, instead of the others. Only a client with
	// Capabilities.Tasks is answered so. OutcomeOf returns the outcome of the task.
	Task *task.Task `json:"-"`
}

// Content is one piece for a model's eyes. Exactly one form is set.
type Content struct {
	Text     string           `json:"text,omitzero"`
	Image    *Blob            `json:"image,omitzero"`
	Audio    *Blob            `json:"audio,omitzero"`
	Resource *ResourceContent `json:"resource,omitzero"`
}

// Blob is binary content.
type Blob struct {
	MIME string
	Data []byte
}

// NeedsCapability is the error of a call that needs input for which its client cannot be asked.
type NeedsCapability struct{ Needs Capabilities }

func (e *NeedsCapability) Error() string {
	return "the client has not declared a capability that this tool needs"
}
