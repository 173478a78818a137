package adapter

import (
	"context"
	"errors"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/transport/rpc"
)

// toolResult is the result of a tool that has more than a value: pictures, and contents of hosted
// agents' tools.
type toolResult struct {
	Value   any       `json:"value,omitzero"`
	Content []content `json:"content"`
}

// content is a text, or bytes in base64.
type content struct {
	Text string `json:"text,omitzero"`
	MIME string `json:"mime_type,omitzero"`
	Data []byte `json:"data,omitzero"`
}

// Tool calls a tool of the site with arguments in JSON, for protocols that render operations as
// named methods. Errors are those of agents.Site; ErrNotFound for a tool that who is not
// offered.
func (s *Site) Tool(ctx context.Context, who agents.Principal, name string, args []byte, t agents.Terms) (any, error) {
	raw, err := rpc.ParseJSON(args)
	if err != nil {
		return nil, device.Faultf(device.Invalid, "%s: %w", name, err)
	}
	res, err := s.Tools.Call(ctx, who, tools.Call{
		Tool: name, Args: rpc.Strict{Raw: raw}, Note: func(tools.Note) {}, Terms: t, Exchange: tools.Exchange{State: t.Approval},
	})
	var asks *tools.NeedsCapability
	switch {
	case errors.Is(err, tools.ErrNotFound):
		return nil, ErrNotFound("there is no such operation here for you")
	case errors.As(err, &asks):
		return nil, device.Faultf(device.Unavailable, "%s asks its caller something, which this protocol cannot; call it by MCP", name)
	case err != nil:
		return nil, err
	case res.NeedInput != nil:
		return nil, &agents.ApprovalNeeded{Says: res.NeedInput.Elsewhere, State: res.NeedInput.State}
	case len(res.Content) > 0:
		return toolResult{res.Value, contents(res.Content)}, nil
	case res.Value == nil:
		return struct{}{}, nil
	}
	return res.Value, nil
}

func contents(all []tools.Content) (out []content) {
	for _, c := range all {
		switch {
		case c.Image != nil:
			out = append(out, content{MIME: c.Image.MIME, Data: c.Image.Data})
		case c.Audio != nil:
			out = append(out, content{MIME: c.Audio.MIME, Data: c.Audio.Data})
		case c.Resource != nil:
			out = append(out, content{Text: c.Resource.Text, MIME: c.Resource.MIME, Data: c.Resource.Blob})
		default:
			out = append(out, content{Text: c.Text})
		}
	}
	return out
}
