package mcp

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"io"
	"strings"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	maxResult = 256 << 10
	maxArgs   = 64 << 10
	maxSays   = 2 << 10 // of a child's in a fault
	maxParts  = 4096
	partSize  = 64 // what a part of an answer counts beside its content
)

// Call implements tools.Agent. A call that the child may or may not have made is
// device.UnknownOutcome, and is never repeated.
func (a *Agent) Call(ctx context.Context, _ agents.Principal, call tools.Call) (tools.Result, error) {
	var none tools.Result
	tool := ""
	for _, t := range a.Allowed {
		if a.offeredAs(t) == call.Tool {
			tool = t
		}
	}
	if _, ok := a.accepted(tool); !ok {
		return none, tools.ErrNotFound
	}
	args := make(map[string]any)
	if err := call.Args.Decode(&args); err != nil {
		return none, device.Faultf(device.Invalid, "the arguments are not an object: %w", err)
	}
	text, err := json.Marshal(args)
	if err != nil || len(text) > maxArgs {
		return none, device.Faultf(device.Invalid, "the arguments are more than %d KiB, or cannot be written as JSON", maxArgs>>10)
	}
	c, done, err := a.use(ctx, call.Account)
	if err != nil {
		return none, err
	}
	defer done()
	if _, ok := a.accepted(tool); !ok { // as the start has shown
		return none, device.Faultf(device.Denied, "%s changed this tool; an owner has to accept it again: agentsite agents tools %s", a.name, a.name)
	}
	calling, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	a.mu.Lock()
	c.asked[call.Account]++
	a.mu.Unlock()
	res, err := c.session.CallTool(calling, &sdk.CallToolParams{Name: tool, Arguments: stdjson.RawMessage(text)})
	if calling.Err() == nil && !c.hasEnded(err) {
		a.answered(c, call.Account, err == nil)
	}
	if err != nil {
		return none, a.failed(ctx, calling, c, err)
	}
	return a.result(res)
}

// answered notes that a call of an account has its answer.
func (a *Agent) answered(c *child, account string, well bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.asked[account]--; c.asked[account] == 0 {
		delete(c.asked, account)
	}
	if well {
		a.crashes, a.last = 0, ""
		delete(a.blamed, account)
	}
}

// hasEnded reports whether the child has ended, as the error of a call or the child itself says.
func (c *child) hasEnded(err error) bool {
	return c.cause.Load() != nil || c.over.Load() || errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, io.EOF)
}

// failed returns the fault of a call that was not answered well.
func (a *Agent) failed(ctx, calling context.Context, c *child, err error) error {
	var refused *jsonrpc.Error
	var fault *device.Fault
	if calling.Err() != nil {
		go c.probe()
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case calling.Err() != nil:
		return device.Faultf(device.UnknownOutcome, "%s did not answer in %v; whether it did what was asked is not known", a.name, callTime)
	case errors.As(err, &fault):
		return device.Faultf(fault.Kind, "%s: %s", a.name, fault.Msg)
	case errors.As(err, &refused) && !c.hasEnded(err):
		return device.Faultf(device.Invalid, "%s refuses, in its own words: %s", a.name, device.Clip(refused.Message, maxSays))
	}
	cause := c.cause.Load()
	switch {
	case cause != nil:
		return device.Faultf(device.UnknownOutcome, "%s failed during the call (%s); whether it did what was asked is not known", a.name, *cause)
	case c.hasEnded(err):
		return device.Faultf(device.UnknownOutcome, "%s ended during the call; whether it did what was asked is not known", a.name)
	}
	return device.Faultf(device.UnknownOutcome, "%s goes on, but its answer cannot be read (%s); whether it did what was asked is not known", a.name, device.Clip(err.Error(), 200))
}

// result converts a child's answer.
func (a *Agent) result(res *sdk.CallToolResult) (tools.Result, error) {
	out := tools.Result{From: KindName + ":" + a.name}
	size := 0
	var words []string
	for _, part := range res.Content {
		c := tools.Content{}
		switch p := part.(type) {
		case *sdk.TextContent:
			c.Text = p.Text
			words = append(words, p.Text)
			size += len(p.Text)
		case *sdk.ImageContent:
			c.Image = &tools.Blob{MIME: p.MIMEType, Data: p.Data}
			size += len(p.Data) + len(p.MIMEType)
		case *sdk.AudioContent:
			c.Audio = &tools.Blob{MIME: p.MIMEType, Data: p.Data}
			size += len(p.Data) + len(p.MIMEType)
		case *sdk.EmbeddedResource:
			if p.Resource == nil {
				continue
			}
			c.Resource = &tools.ResourceContent{URI: p.Resource.URI, MIME: p.Resource.MIMEType, Text: p.Resource.Text, Blob: p.Resource.Blob}
			size += len(p.Resource.URI) + len(p.Resource.MIMEType) + len(p.Resource.Text) + len(p.Resource.Blob)
		default: // links, which a client would follow
			continue
		}
		out.Content = append(out.Content, c)
		size += partSize
	}
	if res.StructuredContent != nil {
		text, err := json.Marshal(res.StructuredContent)
		if err != nil {
			return tools.Result{}, device.Faultf(device.Internal, "the answer of %s cannot be written: %w", a.name, err)
		}
		size += len(text)
		out.Value = res.StructuredContent
	}
	switch {
	case size > maxResult:
		return tools.Result{}, device.Faultf(device.Invalid, "%s did it, but its answer has %d KiB and is not passed on; at most %d KiB are: ask for less", a.name, size>>10, maxResult>>10)
	case res.IsError:
		return tools.Result{}, device.Faultf(device.Invalid, "%s failed, in its own words: %s", a.name, device.Clip(strings.Join(words, "\n"), maxSays))
	}
	return out, nil
}
