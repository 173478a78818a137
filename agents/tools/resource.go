package tools

// Resource is something to read by URI. It and the types below encode as MCP has them.
type Resource struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Title       string `json:"title,omitzero"`
	Description string `json:"description,omitzero"`
	MIME        string `json:"mimeType,omitzero"`
}

// Template is a family of resources: an RFC 6570 level 1 URI template.
type Template struct {
	URITemplate string `json:"uriTemplate"`
	Name        string `json:"name"`
	Title       string `json:"title,omitzero"`
	Description string `json:"description,omitzero"`
	MIME        string `json:"mimeType,omitzero"`
}

// ResourceContent is the content of a resource: a text or a blob.
type ResourceContent struct {
	URI, MIME string
	Text      string
	Blob      []byte
}

// Prompt is a message that a person picks to start a conversation with.
type Prompt struct {
	Name        string     `json:"name"`
	Title       string     `json:"title,omitzero"`
	Description string     `json:"description,omitzero"`
	Arguments   []Argument `json:"arguments,omitzero"`
}

type Argument struct {
	Name        string `json:"name"`
	Description string `json:"description,omitzero"`
	Required    bool   `json:"required,omitzero"`
}

// Completions are the values that an argument may be completed to. Where there are too many,
// they are the first.
type Completions struct {
	Values []string `json:"values"`
	Total  int      `json:"total"`
	More   bool     `json:"hasMore"`
}

// maxCompletions bounds Completions, as MCP does.
const maxCompletions = 100

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
