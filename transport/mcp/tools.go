package mcp

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"slices"
	"time"

	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/transport/mcp/view"
	"agentsite/transport/rpc"
)

func (s *Server) toolsList(ctx context.Context, r request, p *listParams) (any, error) {
	tools, err := s.catalog.Listed(ctx, r.who)
	if err != nil {
		return nil, err
	}
	out := toolsResult{Result: s.completed(), Cached: cached(cacheFor), Tools: make([]tool, len(tools))}
	shows := r.meta.shows()
	for i, t := range tools {
		out.Tools[i] = tool{
			Name: t.Name, Title: t.Title, Description: t.Description, Input: rpc.RawJSON(t.Input),
			Annotations: annotate(t.Hints),
		}
		if t.Output != nil {
			out.Tools[i].Output = rpc.RawJSON(t.Output)
		}
		if shows && t.View {
			out.Tools[i].Meta = view.Tool()
		}
	}
	return out, p.whole()
}

// shows reports whether the client has the view.
func (m *RequestMeta) shows() bool {
	var s view.Settings
	ui := m.Capabilities.Extensions.UI
	return !ui.IsZero() && ui.Decode(&s) == nil && s.Shows()
}

func annotate(h tools.Hints) annotations {
	if h.ReadOnly {
		return annotations{ReadOnly: true} // the others mean nothing then
	}
	a := annotations{Idempotent: h.Idempotent}
	if !h.Destructive {
		a.Destructive = &h.Destructive
	}
	return a
}

// Urgent tells a call that returns outputs to safe, as the cancelling of a task does, for an
// rpc.Dispatcher.
func Urgent(method string, params rpc.Raw) bool {
	if method == cancelMethod {
		return true
	}
	var p struct {
		Name      string  `json:"name"`
		Arguments rpc.Raw `json:"arguments"`
	}
	if method != "tools/call" || params.Decode(&p) != nil {
		return false
	}
	var ask struct {
		Cancel bool `json:"cancel"`
	}
	return tools.ReturnsToSafe(p.Name) || p.Name == tools.AskAgent && p.Arguments.Decode(&ask) == nil && ask.Cancel
}

func (s *Server) toolsCall(ctx context.Context, r request, p *callParams) (any, error) {
	ex, err := s.exchange(r, &p.Round, p.Name, p.Arguments)
	if err != nil {
		return nil, err
	}
	res, err := s.catalog.Call(ctx, r.who, tools.Call{
		Tool: p.Name, Args: rpc.Strict{Raw: p.Arguments}, Note: r.noter(), Terms: r.meta.Terms, Exchange: ex,
	})
	switch {
	case err == tools.ErrNotFound:
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "Unknown tool: %.60q; tools/list names them", p.Name)
	case isProtocolError(err):
		return nil, err
	case err != nil:
		return s.failed(device.AsFault(err)), nil
	case res.NeedInput != nil:
		return s.inputRequired(r, res.NeedInput, p.Name, p.Arguments)
	case res.Task != nil:
		return s.taskCreated(r, *res.Task)
	}
	twice := r.meta.Text != textNone
	if res.Value != nil && len(res.Content) == 0 && res.From == "" {
		return &answer{s.done[r.Codec()], res.Value, twice}, nil
	}
	return s.callResult(res, twice)
}

// isProtocolError tells what the client has done wrong from what went wrong with
// the tool, which the model should see.
func isProtocolError(err error) bool {
	switch err.(type) {
	case *rpc.Error, *tools.NeedsCapability:
		return true
	}
	return false
}

// failed is the result of a tool that could not do it. Its caller is known and is
// told why, a defect of ours included.
func (s *Server) failed(f *device.Fault) *CallResult {
	if f.Kind == device.Internal && !errors.Is(f, context.Canceled) { // a caller that left is no defect
		slog.Error("a tool failed", "err", f)
	}
	out := &CallResult{Result: s.completed(), IsError: true, Content: []Content{{Type: "text", Text: string(f.Kind) + ": " + f.Msg}}}
	out.Meta.Fault, out.Meta.After = string(f.Kind), f.After.Round(time.Millisecond).Seconds()
	return out
}

// textNone in _meta asks for structured results alone.
const textNone = "none"

// callResult is the result of a successful call. The value is sent twice, as the specification
// asks for: as it is, and as JSON in a text, for clients that show models nothing else. A caller
// may decline the text.
func (s *Server) callResult(res tools.Result, twice bool) (*CallResult, error) {
	out := &CallResult{Result: s.completed(), Content: make([]Content, 0, len(res.Content)+1)}
	out.Meta.From = res.From
	if twice && res.Value != nil && (res.From == "" || len(res.Content) == 0) { // another program has written its own text
		var text bytes.Buffer
		if err := rpc.JSON.Encode(&text, res.Value); err != nil {
			return nil, err
		}
		out.Content = append(out.Content, Content{Type: "text", Text: text.String()})
	}
	out.Structured = res.Value
	for _, c := range res.Content {
		out.Content = append(out.Content, content(c))
	}
	return out, nil
}

func content(c tools.Content) Content {
	switch {
	case c.Image != nil:
		return blob("image", c.Image)
	case c.Audio != nil:
		return blob("audio", c.Audio)
	case c.Resource != nil:
		r := contents(*c.Resource)
		return Content{Type: "resource", Resource: &r}
	}
	return Content{Type: "text", Text: c.Text}
}

func blob(kind string, b *tools.Blob) Content {
	return Content{Type: kind, Data: base64.StdEncoding.EncodeToString(b.Data), MIME: b.MIME}
}

func contents(c tools.ResourceContent) resourceContents {
	out := resourceContents{URI: c.URI, MIME: c.MIME}
	if c.Blob != nil {
		out.Blob = base64.StdEncoding.EncodeToString(c.Blob)
	} else {
		out.Text = &c.Text
	}
	return out
}

// levels are the log levels, lowest first.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// noter sends the notes of a running call as the notifications that the client requested: progress
// with a token, log lines from a level on.
func (r request) noter() func(tools.Note) {
	if r.meta.LogLevel == "" && r.meta.ProgressToken.IsZero() {
		return unheard
	}
	last := -1.0
	return func(n tools.Note) {
		switch {
		case n.Level != "":
			wanted := slices.Index(levels, r.meta.LogLevel)
			if wanted >= 0 && slices.Index(levels, n.Level) >= wanted {
				r.Notify("notifications/message", logParams{n.Level, n.Message})
			}
		case !r.meta.ProgressToken.IsZero() && n.Progress > last:
			last = n.Progress
			r.Notify("notifications/progress", progressParams{r.meta.ProgressToken, n.Progress, n.Total, n.Message})
		}
	}
}

func unheard(tools.Note) {}
