package site

import (
	"context"
	"errors"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node"
	"agentsite/node/config"
	"agentsite/transport/rpc"
)

// ResetMethod ends the emergency stop, ReloadMethod reads the configuration again, and
// TakeOverMethod makes the owner the holder of the output that its name says.
// RequestsMethod lists the calls that wait for the owner; ApproveMethod and DenyMethod
// answer the one whose handle is their name.
const (
	ResetMethod    = "owner/reset"
	ReloadMethod   = "owner/reload"
	TakeOverMethod = "owner/take-over"
	RequestsMethod = "owner/requests"
	ApproveMethod  = "owner/approve"
	DenyMethod     = "owner/deny"
)

// Requests answers RequestsMethod.
type Requests struct {
	Requests []Request `json:"requests"`
}

// Request is a call that waits for the owner.
type Request struct {
	Handle string  `json:"handle"`
	Who    string  `json:"who"`
	Tool   string  `json:"tool"`
	Args   rpc.Raw `json:"arguments"`
	Left   float64 `json:"seconds_left"`
}

// ownersOutputs is what only an owner may do with the outputs.
type ownersOutputs interface {
	Reset(ctx context.Context) error
	TakeOver(ctx context.Context, holder, output string) error
}

// addOwner adds the owner's own methods. They stand outside MCP: no model's client
// names them, and only the owner's evidence opens them.
func addOwner(methods map[string]rpc.Method, door *node.Node, outputs ownersOutputs, reload func(context.Context) error) {
	methods[ResetMethod] = ownersOnly(door, "reset", func(ctx context.Context, who agents.Principal, _ string) (any, error) {
		if err := door.Own(who, "reset", "", func() error { return outputs.Reset(ctx) }); err != nil {
			return nil, rpc.Errorf(rpc.CodeInternal, "%v", err)
		}
		return struct{}{}, nil
	})
	methods[ReloadMethod] = ownersOnly(door, "reload", func(ctx context.Context, who agents.Principal, _ string) (any, error) {
		err := door.Own(who, "reload", "", func() error { return reload(ctx) })
		var mistake *config.Error
		switch {
		case err == nil:
			return struct{}{}, nil
		case errors.As(err, &mistake), device.AsFault(err).Kind == device.Invalid:
			return nil, rpc.Errorf(rpc.CodeInvalidParams, "%v", err)
		case device.AsFault(err).Kind == device.Offline:
			return nil, rpc.Errorf(502, "%v", err) // as docs/wire.md has it
		}
		return nil, rpc.Errorf(rpc.CodeInternal, "%v", err)
	})
	methods[TakeOverMethod] = ownersOnly(door, "set --take-over", func(ctx context.Context, who agents.Principal, output string) (any, error) {
		if err := door.Own(who, "take-over", output, func() error { return outputs.TakeOver(ctx, who.ID, output) }); err != nil {
			return nil, rpc.Errorf(rpc.CodeInvalidParams, "%v", err)
		}
		return struct{}{}, nil
	})
	methods[RequestsMethod] = ownersOnly(door, "approve", func(_ context.Context, who agents.Principal, _ string) (any, error) {
		all, err := door.Requests(who)
		out := Requests{Requests: []Request{}}
		for _, r := range all {
			out.Requests = append(out.Requests, Request{r.Handle, r.Who, r.Tool, rpc.RawJSON(r.Args), r.Left.Seconds()})
		}
		return out, err
	})
	for method, ok := range map[string]bool{ApproveMethod: true, DenyMethod: false} {
		methods[method] = ownersOnly(door, "approve", func(_ context.Context, who agents.Principal, handle string) (any, error) {
			if err := door.Approve(who, handle, ok); err != nil {
				return nil, rpc.Errorf(rpc.CodeInvalidParams, "%v", err)
			}
			return struct{}{}, nil
		})
	}
}

// About names what an owner's method is about.
type About struct {
	Name string `json:"name,omitzero"`
}

func ownersOnly(door *node.Node, command string, do func(ctx context.Context, who agents.Principal, name string) (any, error)) rpc.Method {
	return ownersMethod(door, command, func(ctx context.Context, who agents.Principal, a About) (any, error) { return do(ctx, who, a.Name) })
}

func ownersMethod[P any](door *node.Node, command string, do func(ctx context.Context, who agents.Principal, about P) (any, error)) rpc.Method {
	return func(ctx context.Context, c *rpc.Call) (any, error) {
		who, err := door.Who(node.Evidence(c.Evidence))
		if err != nil || !who.Owner {
			return nil, rpc.Errorf(rpc.CodeMethodNotFound, "this is an owner's: run agentsite %s on the site's own machine, or with --site where you own it", command)
		}
		var about P
		if err := c.Params.Decode(&about); err != nil && !c.Params.IsZero() {
			return nil, rpc.Errorf(rpc.CodeInvalidParams, "params: %v", err)
		}
		return do(ctx, who, about)
	}
}
