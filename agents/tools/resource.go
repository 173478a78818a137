package tools

import (
	"context"

	"agentsite/agents"
)

// Library is an Agent that also has resources.
type Library interface {
	Resources() []Resource
	Templates() []Template
	// ReadResource returns the contents of a URI, or ErrNotFound.
	ReadResource(ctx context.Context, p agents.Principal, uri string) ([]ResourceContent, error)
}

// Coach is an Agent that also has prompts.
type Coach interface {
	Prompts() []Prompt
	// Prompt writes one out, or returns ErrNotFound.
	Prompt(ctx context.Context, p agents.Principal, name string, args map[string]string, ex Exchange) (PromptResult, error)
}

// Completer is an Agent that completes the arguments of its prompts and templates. It returns nil
// for a resource that is not its own.
type Completer interface {
	Complete(p agents.Principal, ref Reference, argument, prefix string) []string
}

// Resource is something to read by URI.
type Resource struct {
	URI, Name, Title, Description, MIME string
}

// Template is a family of resources: an RFC 6570 level 1 URI template.
type Template struct {
	URITemplate, Name, Title, Description, MIME string
}

// ResourceContent is the content of a resource: a text or a blob.
type ResourceContent struct {
	URI, MIME string
	Text      string
	Blob      []byte
}

// Prompt is a message that a person picks to start a conversation with.
type Prompt struct {
	Name, Title, Description string
	Arguments                []Argument
}

type Argument struct {
	Name, Description string
	Required          bool
}

// PromptResult is a prompt written out.
type PromptResult struct {
	Description string
	Messages    []Message
	NeedInput   *NeedInput // instead of messages
}

type Message struct {
	Role    string // user or assistant
	Content Content
}

// Reference names the subject of Complete: a prompt, or a URI template.
type Reference struct{ Prompt, URITemplate string }

type notFound struct{}

func (notFound) Error() string { return "there is no such thing here" }

// ErrNotFound says that a name or a URI is not known.
var ErrNotFound error = notFound{}
