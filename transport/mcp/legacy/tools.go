//lint:file-ignore SA1019 older revisions have what the newest deprecates

package legacy

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"errors"
	"time"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/transport/mcp/view"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// faultKey is the _meta key under which a failed call names its fault kind, and afterKey that of the
// seconds until it may be allowed.
const (
	faultKey = "agentsite/fault"
	afterKey = "agentsite/retry-after"
)

// fromKey is the _meta key that names the agent with whose words a call was answered.
const fromKey = "agentsite/from"

func (h *host) addTool(t tools.Tool) {
	closed := false
	out := &sdk.Tool{
		Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: stdjson.RawMessage(t.Input),
		Annotations: &sdk.ToolAnnotations{
			ReadOnlyHint: t.Hints.ReadOnly, DestructiveHint: &t.Hints.Destructive, IdempotentHint: t.Hints.Idempotent, OpenWorldHint: &closed,
		},
	}
	if t.Output != nil {
		out.OutputSchema = stdjson.RawMessage(t.Output)
	}
	if t.View { // shown removes it for clients without the extension
		out.Meta = sdk.Meta{"ui": view.Tool().UI}
	}
	h.sdk.AddTool(out, h.call)
}

// reachedKey has, in the context of a call, a *bool that call sets: the SDK knew the tool.
type reachedKey struct{}

// callUnlisted makes a call that the SDK refused, as its list may be older than the principal's permission, which an
// owner changes at any time. It tells the caller of what is missing.
func (h *host) callUnlisted(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	out, err := h.call(ctx, req)
	if unknown, ok := errors.AsType[*jsonrpc.Error](err); ok && unknown.Code == jsonrpc.CodeInvalidParams {
		return failed(device.Faultf(device.Denied, "you lack a permission for %s, which an owner can grant, or this site has nothing for it",
			req.Params.Name)), nil
	}
	return out, err
}

func (h *host) call(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if reached, ok := ctx.Value(reachedKey{}).(*bool); ok {
		*reached = true
	}
	var res tools.Result
	terms, err := termsOf(req.Params.Meta)
	if err == nil {
		err = h.rounds(ctx, req.Session, func(ex tools.Exchange) (*tools.NeedInput, error) {
			var err error
			res, err = h.srv.catalog.Call(ctx, h.who, tools.Call{
				Tool: req.Params.Name, Args: strict(req.Params.Arguments), Note: noter(ctx, req), Terms: terms, Exchange: ex,
			})
			return res.NeedInput, err
		})
	}
	switch {
	case err == nil:
		return called(res)
	case isProtocolError(err):
		return nil, asError(err)
	}
	return failed(device.AsFault(err)), nil
}

// termsOf reads the terms of a call from its _meta.
func termsOf(meta sdk.Meta) (terms agents.Terms, err error) {
	text, err := json.Marshal(meta)
	if err == nil {
		err = encoded(text).Decode(&terms)
	}
	if err != nil {
		return terms, device.Faultf(device.Invalid, "_meta: agentsite/idempotency-key is a text, agentsite/expires-in a number, agentsite/held and "+
			"agentsite/unconfirmed a bool and agentsite/via a list of texts")
	}
	return terms, nil
}

// failed is the result of a tool that could not do it.
func failed(f *device.Fault) *sdk.CallToolResult {
	meta := sdk.Meta{faultKey: string(f.Kind)}
	if f.After > 0 {
		meta[afterKey] = f.After.Round(time.Millisecond).Seconds()
	}
	return &sdk.CallToolResult{
		Meta: meta, IsError: true,
		Content: []sdk.Content{&sdk.TextContent{Text: string(f.Kind) + ": " + f.Msg}},
	}
}

// called returns the result of a successful call. The value is sent twice: as it is if it is an
// object, which these revisions require, and as JSON in a text.
func called(res tools.Result) (*sdk.CallToolResult, error) {
	out := &sdk.CallToolResult{}
	if res.From != "" {
		out.Meta = sdk.Meta{fromKey: res.From}
	}
	if res.Value != nil {
		text, err := json.Marshal(res.Value, json.Deterministic(true))
		if err != nil {
			return nil, asError(err)
		}
		out.Content = append(out.Content, &sdk.TextContent{Text: string(text)})
		if bytes.HasPrefix(text, []byte("{")) {
			out.StructuredContent = stdjson.RawMessage(text)
		}
	}
	for _, c := range res.Content {
		out.Content = append(out.Content, content(c))
	}
	return out, nil
}

func content(c tools.Content) sdk.Content {
	switch {
	case c.Image != nil:
		return &sdk.ImageContent{Data: c.Image.Data, MIMEType: c.Image.MIME}
	case c.Audio != nil:
		return &sdk.AudioContent{Data: c.Audio.Data, MIMEType: c.Audio.MIME}
	case c.Resource != nil:
		return &sdk.EmbeddedResource{Resource: contents(*c.Resource)}
	}
	return &sdk.TextContent{Text: c.Text}
}

func contents(c tools.ResourceContent) *sdk.ResourceContents {
	return &sdk.ResourceContents{URI: c.URI, MIMEType: c.MIME, Text: c.Text, Blob: c.Blob}
}

// noter sends the notes of a running call as the notifications that the client requested: progress
// with a token, log lines from the session's level on.
func noter(ctx context.Context, req *sdk.CallToolRequest) func(tools.Note) {
	token := req.Params.GetProgressToken()
	last := -1.0
	return func(n tools.Note) {
		switch {
		case n.Level != "":
			req.Session.Log(ctx, &sdk.LoggingMessageParams{Level: sdk.LoggingLevel(n.Level), Data: n.Message})
		case token != nil && n.Progress > last:
			last = n.Progress
			req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
				ProgressToken: token, Progress: n.Progress, Total: n.Total, Message: n.Message,
			})
		}
	}
}
