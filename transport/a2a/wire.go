package a2a

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"

	"agentsite/device"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The messages of a2a.proto in their JSON form, as far as this site reads and writes them. Members
// that only 0.3 has are marked.

type message struct {
	ID       string  `json:"messageId"`
	Context  string  `json:"contextId,omitzero"`
	Task     string  `json:"taskId,omitzero"`
	Kind     string  `json:"kind,omitzero"` // 0.3
	Role     string  `json:"role"`
	Parts    []part  `json:"parts,omitzero"`
	Content  []part  `json:"content,omitzero"` // 0.3 over HTTP, in place of Parts
	Metadata rpc.Raw `json:"metadata,omitzero"`
}

type part struct {
	Kind      string         `json:"kind,omitzero"` // 0.3
	Text      *string        `json:"text,omitzero"`
	Data      jsontext.Value `json:"data,omitzero"`
	Raw       *[]byte        `json:"raw,omitzero"`
	URL       *string        `json:"url,omitzero"`
	File      *file          `json:"file,omitzero"` // 0.3
	MediaType string         `json:"mediaType,omitzero"`
}

// file is that of 0.3.
type file struct {
	Bytes     []byte `json:"bytes,omitzero"`
	WithBytes []byte `json:"fileWithBytes,omitzero"` // over HTTP
	URI       string `json:"uri,omitzero"`
	MIME      string `json:"mimeType,omitzero"`
}

type status struct {
	State     string   `json:"state"`
	Message   *message `json:"message,omitzero"`
	Timestamp string   `json:"timestamp,omitzero"`
}

type artifact struct {
	ID    string `json:"artifactId"`
	Name  string `json:"name,omitzero"`
	Parts []part `json:"parts"`
}

type wireTask struct {
	ID        string            `json:"id"`
	Context   string            `json:"contextId"`
	Kind      string            `json:"kind,omitzero"` // 0.3
	Status    status            `json:"status"`
	Artifacts []artifact        `json:"artifacts,omitzero"`
	History   []message         `json:"history,omitzero"`
	Metadata  map[string]string `json:"metadata,omitzero"`
}

type statusUpdate struct {
	Task    string `json:"taskId"`
	Context string `json:"contextId"`
	Kind    string `json:"kind,omitzero"` // 0.3
	Status  status `json:"status"`
	Final   *bool  `json:"final,omitzero"` // 0.3
}

type artifactUpdate struct {
	Task     string   `json:"taskId"`
	Context  string   `json:"contextId"`
	Kind     string   `json:"kind,omitzero"` // 0.3
	Artifact artifact `json:"artifact"`
	Last     bool     `json:"lastChunk,omitzero"`
}

// sendParams are those of sending a message.
type sendParams struct {
	Message       message  `json:"message"`
	Request       *message `json:"request,omitzero"` // 0.3 over HTTP: another name of Message
	Configuration struct {
		Accepts   []string    `json:"acceptedOutputModes,omitzero"`
		History   *int        `json:"historyLength,omitzero"`
		Immediate bool        `json:"returnImmediately,omitzero"`
		Blocking  *bool       `json:"blocking,omitzero"` // 0.3
		Push      *pushConfig `json:"taskPushNotificationConfig,omitzero"`
		PushOld   *pushConfig `json:"pushNotificationConfig,omitzero"` // 0.3, and an example of 1.0
		PushProto *pushConfig `json:"pushNotification,omitzero"`       // 0.3 over HTTP
	} `json:"configuration,omitzero"`
}

// taskParams name a task.
type taskParams struct {
	ID      string `json:"id"`
	History *int   `json:"historyLength,omitzero"`
}

// listParams are those of ListTasks.
type listParams struct {
	Context   string `json:"contextId,omitzero"`
	Status    string `json:"status,omitzero"`
	Size      *int   `json:"pageSize,omitzero"`
	Token     string `json:"pageToken,omitzero"`
	History   *int   `json:"historyLength,omitzero"`
	After     string `json:"statusTimestampAfter,omitzero"`
	Artifacts bool   `json:"includeArtifacts,omitzero"`
}

type taskList struct {
	Tasks []*wireTask `json:"tasks"`
	Next  string      `json:"nextPageToken"`
	Size  int         `json:"pageSize"`
	Total int         `json:"totalSize"`
}

// order asks an agent for a task, in a data part.
type order struct {
	Skill     string         `json:"skill,omitzero"`
	Arguments jsontext.Value `json:"arguments,omitzero"`
	Seconds   *float64       `json:"seconds,omitzero"`
}

const (
	maxID    = 128 // of messages and contexts
	maxParts = 32
	maxKey   = 64 // of the node
)

// check refuses a message that no agent takes.
func (p *sendParams) check(f form) error {
	if p.Request != nil && f.proto {
		p.Message = *p.Request
	}
	m, c := &p.Message, &p.Configuration
	f.read(m)
	bad := func(field, text string) error { return invalid("message."+field, errors.New(text)) }
	switch {
	case m.ID == "" || !printable(m.ID):
		return bad("messageId", "is 1 to 128 printable characters of ASCII")
	case m.Role != f.role(true):
		return bad("role", "is "+f.role(true)+" in a message to an agent")
	case len(m.Parts) == 0 || len(m.Parts) > maxParts:
		return bad("parts", "are 1 to 32")
	case !printable(m.Context):
		return bad("contextId", "is at most 128 printable characters of ASCII")
	}
	for _, part := range m.Parts {
		if part.Raw != nil || part.URL != nil || part.File != nil {
			return failf(errContentType, "this agent takes text and data, and no files")
		}
		if (part.Text == nil) == (part.Data == nil) {
			return bad("parts", "each has a text or data")
		}
	}
	return checkHistory(c.History)
}

func checkHistory(length *int) error {
	if length != nil && *length < 0 {
		return invalid("historyLength", errors.New("is 0 or more"))
	}
	return nil
}

func printable(id string) bool {
	return len(id) <= maxID && !strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r > '~' })
}

// content returns the text of a message's parts, one to a line, and its only data.
func (m *message) content() (text string, data rpc.Raw, err error) {
	var lines []string
	for _, part := range m.Parts {
		switch {
		case part.Text != nil:
			lines = append(lines, *part.Text)
		case !data.IsZero():
			return "", data, invalid("message.parts", errors.New("at most one has data"))
		default:
			data = rpc.RawJSON(part.Data)
		}
	}
	return strings.Join(lines, "\n"), data, nil
}

// keyOf returns the idempotency key for a messageId: that itself, or its digest where it is too long.
func keyOf(id string) string {
	if len(id) <= maxKey {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// encode returns v as JSON.
func encode(v any) (jsontext.Value, error) {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, device.Faultf(device.Internal, "encode an answer: %w", err)
	}
	return text, nil
}
