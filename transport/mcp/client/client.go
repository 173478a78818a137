// Package client calls a remote site: MCP 2026-07-28 over any carrier.
// It knows MCP's messages and trusts nothing that they say: names, descriptions
// and results from another site are data.
package client

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/agents/tools"
	"agentsite/transport/rpc"
)

// Client calls one site. It is safe for concurrent use. A stream has one client.
type Client struct {
	site rpc.Caller
	meta meta
	self string // the key of the site that calls; "" for a person
	next atomic.Uint64
}

// New makes a client that introduces itself as name and version.
func New(site rpc.Caller, name, appVersion string) *Client {
	return &Client{site: site, meta: meta{Version: rpc.Revision, Client: app{name, appVersion}}}
}

// NewForSite makes a client for a site with that key, which each call then says that it came
// through.
func NewForSite(site rpc.Caller, appVersion, self string) *Client {
	c := New(site, "agentsite", appVersion)
	c.self = self
	return c
}

// ToolError is a tool's own failure: the kind of the far side's fault, where it
// named one, and its sentence.
type ToolError struct{ Kind, Msg string }

func (e *ToolError) Error() string     { return e.Msg }
func (e *ToolError) FaultKind() string { return e.Kind }

// RequestError is a site's refusal of a request, before or instead of any tool. Kind is the kind of
// fault for its code, "" for an unknown code; Msg is its sentence.
type RequestError struct{ Kind, Msg string }

func (e *RequestError) Error() string     { return e.Msg }
func (e *RequestError) FaultKind() string { return e.Kind }

// kinds are the fault kinds behind the codes of refusals (docs/wire.md). A request
// of ours is well formed, so that an invalid one is too large.
var kinds = map[int]string{
	rpc.CodeInvalidParams: "invalid", rpc.CodeInvalidRequest: "invalid", rpc.CodeInternal: "internal",
	403: "denied", 409: "unsafe", 410: "expired", rpc.CodeBusy: "busy", 502: "offline", 503: "unavailable", 504: "unknown_outcome",
}

// Answer is a tool's result in plain types.
type Answer struct {
	JSON  []byte // the structured result; nil where the tool gave none
	Texts []string
	Files []File
}

// File is a picture or a sound.
type File struct {
	MIME string
	Data []byte
}

// Tool is a tool as the far side describes it.
type Tool struct {
	Name        string  `json:"name"`
	Title       string  `json:"title,omitzero"`
	Description string  `json:"description,omitzero"`
	Input       rpc.Raw `json:"inputSchema,omitzero"`
}

type meta struct {
	Version      string       `json:"io.modelcontextprotocol/protocolVersion"`
	Client       app          `json:"io.modelcontextprotocol/clientInfo"`
	Capabilities capabilities `json:"io.modelcontextprotocol/clientCapabilities"`
	Steps        bool         `json:"agentsite/steps,omitzero"` // asks for tasks in full
	Text         string       `json:"agentsite/text,omitzero"`
	Values       *float64     `json:"agentsite/values,omitzero"`
	agents.Terms
}

// capabilities are the capabilities that this client declares: only answers with a task, where that
// is requested.
type capabilities struct {
	Extensions struct {
		Tasks *struct{} `json:"io.modelcontextprotocol/tasks,omitzero"`
	} `json:"extensions,omitzero"`
}

type app struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type params struct {
	Meta          meta            `json:"_meta"`
	Name          string          `json:"name,omitzero"`
	Arguments     rpc.Raw         `json:"arguments,omitzero"`
	State         string          `json:"requestState,omitzero"`
	Notifications *filter         `json:"notifications,omitzero"`
	TaskID        string          `json:"taskId,omitzero"`
	Responses     map[string]form `json:"inputResponses,omitzero"`
}

type filter struct {
	Tools   bool     `json:"toolsListChanged,omitzero"`
	URIs    []string `json:"resourceSubscriptions"`
	TaskIDs []string `json:"taskIds,omitzero"`
}

type callResult struct {
	Meta struct {
		Fault    string     `json:"agentsite/fault"`
		Approval string     `json:"agentsite/approval"`
		Task     *task.Task `json:"agentsite/task"`
	} `json:"_meta"`
	State      string    `json:"requestState"`
	Type       string    `json:"resultType"`
	Content    []content `json:"content"`
	Structured rpc.Raw   `json:"structuredContent"`
	IsError    bool      `json:"isError"`
}

type content struct {
	Type string `json:"type"`
	Text string `json:"text"`
	Data string `json:"data"`
	MIME string `json:"mimeType"`
}

// Tools lists the tools that this client may call there.
func (c *Client) Tools(ctx context.Context) ([]Tool, error) {
	raw, err := c.call(ctx, c.id(), "tools/list", params{}, nil)
	if err != nil {
		return nil, err
	}
	var out struct {
		Tools []Tool `json:"tools"`
	}
	return out.Tools, raw.Decode(&out)
}

// Alive asks the site for nothing but an answer.
func (c *Client) Alive(ctx context.Context) error {
	_, err := c.call(ctx, c.id(), "server/discover", params{}, nil)
	return err
}

// Call calls a tool. The far side derives the principal from our evidence, so p is not used. The
// result's Value is an rpc.Raw, zero where the tool gave none. A tool's failure is a *ToolError, a
// refusal of the site a *RequestError, and a call that an owner has to approve first an
// *agents.ApprovalNeeded. It asks for no text beside a structured result, which says the same.
func (c *Client) Call(ctx context.Context, _ agents.Principal, call tools.Call) (tools.Result, error) {
	p := params{Name: call.Tool, State: call.Exchange.State}
	p.Meta.Terms, p.Meta.Text = call.Terms, "none"
	if err := call.Args.Decode(&p.Arguments); err != nil {
		return tools.Result{}, err
	}
	raw, err := c.call(ctx, c.id(), "tools/call", p, nil)
	if err != nil {
		return tools.Result{}, err
	}
	var out callResult
	if err := raw.Decode(&out); err != nil {
		return tools.Result{}, err
	}
	if out.Type == "input_required" && out.Meta.Approval != "" {
		return tools.Result{}, &agents.ApprovalNeeded{Says: out.Meta.Approval, State: out.State}
	}
	if out.Type != "complete" {
		return tools.Result{}, errors.New("the site asks for input that this client cannot give")
	}
	if out.IsError {
		return tools.Result{}, out.failure()
	}
	res := tools.Result{}
	if !out.Structured.IsZero() {
		res.Value = out.Structured
	}
	for _, c := range out.Content {
		if piece, err := c.decode(); err != nil {
			return tools.Result{}, err
		} else if piece != nil {
			res.Content = append(res.Content, *piece)
		}
	}
	return res, nil
}

// Once makes calls that are repeated one call: with the same Key a site makes them once. State is
// that of the last agents.ApprovalNeeded. The zero Once is a call for itself.
type Once struct{ Key, State string }

// KnowsKeys reports whether calls of a tool that are repeated with one key are one call: tools of
// agents' own know no keys.
func KnowsKeys(tool string) bool { return tools.IsOperation(tool) }

// Ask is Call in plain types: arguments in JSON, and a result in JSON.
func (c *Client) Ask(ctx context.Context, tool string, args []byte) (Answer, error) {
	return c.AskOnce(ctx, tool, args, Once{})
}

// AskOnce is Ask for a request that may have been sent before.
func (c *Client) AskOnce(ctx context.Context, tool string, args []byte, once Once) (Answer, error) {
	call := tools.Call{Tool: tool, Args: rpc.RawJSON(args), Exchange: tools.Exchange{State: once.State}}
	if once.Key != "" {
		call.Terms.Key = &once.Key
	}
	res, err := c.Call(ctx, agents.Principal{}, call)
	if err != nil {
		return Answer{}, err
	}
	var out Answer
	if raw, ok := res.Value.(rpc.Raw); ok {
		if out.JSON, err = raw.JSONText(); err != nil {
			return Answer{}, err
		}
	}
	for _, c := range res.Content {
		switch {
		case c.Image != nil:
			out.Files = append(out.Files, File(*c.Image))
		case c.Audio != nil:
			out.Files = append(out.Files, File(*c.Audio))
		default:
			out.Texts = append(out.Texts, c.Text)
		}
	}
	return out, nil
}

// failure is the error of a result that says that the tool failed.
func (r callResult) failure() error {
	e := &ToolError{Kind: r.Meta.Fault}
	for _, c := range r.Content {
		e.Msg += c.Text
	}
	e.Msg = strings.TrimPrefix(e.Msg, e.Kind+": ")
	return e
}

func (c content) decode() (*tools.Content, error) {
	switch c.Type {
	case "text":
		return &tools.Content{Text: c.Text}, nil
	case "image", "audio":
		b, err := base64.StdEncoding.DecodeString(c.Data)
		if err != nil {
			return nil, err
		}
		blob := &tools.Blob{MIME: c.MIME, Data: b}
		if c.Type == "audio" {
			return &tools.Content{Audio: blob}, nil
		}
		return &tools.Content{Image: blob}, nil
	}
	return nil, nil // a kind that we have no use for
}

// CallMethod calls a method outside MCP, which no tool reaches, with parameters that encode by
// their json tags, nil for none. It returns the result as JSON. A method that does not exist is
// denied, as the owner's methods are to everybody else.
func (c *Client) CallMethod(ctx context.Context, method string, params any) ([]byte, error) {
	if params == nil {
		params = struct{}{}
	}
	raw, err := c.site.Call(ctx, rpc.Request{ID: c.id(), Method: method, Params: params, Version: rpc.Revision}, nil)
	var refused *rpc.Error
	switch {
	case errors.As(err, &refused) && refused.Code == rpc.CodeMethodNotFound:
		return nil, &RequestError{"denied", refused.Message}
	case err != nil:
		return nil, requestError(err)
	}
	return raw.JSONText()
}

// id is unique among the requests of this client.
func (c *Client) id() rpc.ID { return rpc.NumberID(c.next.Add(1)) }

func (c *Client) call(ctx context.Context, id rpc.ID, method string, p params, note func(string, rpc.Raw)) (rpc.Raw, error) {
	asked := p.Meta
	p.Meta = c.meta
	p.Meta.Terms, p.Meta.Text, p.Meta.Values = asked.Terms, asked.Text, asked.Values
	p.Meta.Capabilities, p.Meta.Steps = asked.Capabilities, asked.Steps
	if c.self != "" {
		p.Meta.Via = append(slices.Clip(p.Meta.Via), c.self)
	}
	r := rpc.Request{ID: id, Method: method, Params: p, Version: rpc.Revision, Name: cmp.Or(p.Name, p.TaskID), Repeatable: repeatable(method, p)}
	raw, err := c.site.Call(ctx, r, note)
	return raw, requestError(err)
}

// repeatable reports whether a request does no more when the site gets it twice: it reads, returns to
// safe, or has a key by which the site knows it again.
func repeatable(method string, p params) bool {
	switch method {
	case "tools/call":
		return tools.Reads(p.Name) || tools.ReturnsToSafe(p.Name) || p.Meta.Key != nil && KnowsKeys(p.Name)
	case "tools/list", "server/discover", "tasks/get":
		return true
	}
	return false
}

func requestError(err error) error {
	var refused *rpc.Error
	if errors.As(err, &refused) {
		return &RequestError{kinds[refused.Code], refused.Message}
	}
	return err
}
