package tools

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/device"
)

// definition renders one operation as a tool.
type definition struct {
	op.Tool
	hints  Hints
	input  reflect.Type // the arguments
	output func(group bool) ([]byte, error)
	call   func(context.Context, agents.Site, agents.Principal, *agents.Offer, Args, agents.Terms) (Result, error)
}

// names returns the possible values of the argument that names points, or the site in a group, and
// whether there is such a tool at all.
func (d *definition) names(o *agents.Offer) (names []string, offered bool) {
	switch {
	case d.Whole != nil:
		return o.Sites[d.Op], *d.Whole(o)
	case d.Points != nil:
		names = *d.Points(o)
		if d.Op == agents.OpHistory && slices.Equal(names, o.Read) {
			return nil, len(names) > 0 // they are listed once, and a model has less to read
		}
		return names, len(names) > 0
	}
	return nil, len(o.Read) > 0
}

var (
	readOnly  = Hints{ReadOnly: true, Idempotent: true}
	moves     = Hints{Destructive: true} // again is for longer
	repeats   = Hints{Idempotent: true}
	stopHints = Hints{Destructive: true, Idempotent: true}
)

// definitions are all tools, in the order in which they are listed.
var definitions = []definition{
	operation(op.ListPoints, op.Points, readOnly),
	operation(op.ReadPoints, op.Read, readOnly),
	operation(op.ReadHistory, op.History, readOnly),
	operation(op.ExplainPoint, op.Why, readOnly),
	move(op.SwitchOutput, moves, func(o *agents.Offer, in *switchArgs) (r agents.MoveRequest, err error) {
		if in.On == nil {
			return r, missing(o, "output", in.Output, device.Bool(true), o.Switch, "on")
		}
		return agents.MoveRequest{Output: in.Output, Value: device.Bool(*in.On), For: in.For}, nil
	}),
	move(op.SetLevel, moves, func(o *agents.Offer, in *levelArgs) (r agents.MoveRequest, err error) {
		if in.Value == nil {
			return r, missing(o, "output", in.Output, device.Number(0), o.Level, "value")
		}
		return agents.MoveRequest{Output: in.Output, Value: device.Number(*in.Value), For: in.For}, nil
	}),
	move(op.ReleaseOutput, repeats, func(_ *agents.Offer, in *releaseArgs) (agents.MoveRequest, error) {
		return agents.MoveRequest{Output: in.Output}, nil
	}),
	operation(op.EmergencyStop, op.Stop, stopHints),
	operation(op.ShowText, op.Show, repeats),
	operation(op.CaptureImage, op.Capture, Hints{ReadOnly: true}),
	operation(op.SiteStatus, op.Status, readOnly),
}

// missing is the error of a required argument that is left out, after the name before it.
func missing(o *agents.Offer, field, name string, v device.Value, offered []string, absent string) error {
	if err := o.CheckPoint(agents.OpMove, field, name, v, offered); err != nil {
		return &op.Malformed{Err: err}
	}
	return invalid("%s is missing", absent)
}

// operation defines a tool whose arguments are the request of an operation.
func operation(t op.Tool, of *op.Operation, hints Hints) definition {
	return definition{
		Tool: t, hints: hints, input: of.Request, output: outputOf(of),
		call: func(ctx context.Context, s agents.Site, p agents.Principal, o *agents.Offer, args Args, terms agents.Terms) (res Result, err error) {
			request, do := op.Decoder(args), of.Do
			if o.Sites == nil {
				do = of.Of
				if t.Field == "" {
					request = nothing{args}
				}
			}
			res.Value, err = do(ctx, s, p, request, terms)
			if wrong, ok := errors.AsType[*op.Malformed](err); ok {
				err = invalid("%s: %w", t.Name, wrong.Err)
			}
			if err != nil {
				return Result{}, err
			}
			if picture, ok := res.Value.(agents.Picture); ok {
				res.Content = []Content{{Image: &Blob{MIME: picture.MIME, Data: picture.Data}}}
			}
			return res, nil
		},
	}
}

// nothing are the arguments of a tool that takes none.
type nothing struct{ Args }

func (n nothing) Decode(any) error { return n.Args.Decode(new(struct{})) }

// move defines a tool that moves an output, with arguments In.
func move[In any](t op.Tool, hints Hints, of func(*agents.Offer, *In) (agents.MoveRequest, error)) definition {
	return definition{
		Tool: t, hints: hints, input: reflect.TypeFor[In](), output: outputOf(op.Move),
		call: func(ctx context.Context, s agents.Site, p agents.Principal, o *agents.Offer, args Args, terms agents.Terms) (res Result, err error) {
			var in In
			if err := args.Decode(&in); err != nil {
				return res, invalid("%s: %w", t.Name, err)
			}
			r, err := of(o, &in)
			if err != nil {
				return res, err
			}
			r.Terms = terms
			out, err := s.Move(ctx, p, r)
			if err != nil {
				return res, err
			}
			return Result{Value: out}, nil
		},
	}
}

// render returns the tool of an offer, with the possible names of its points or sites.
func (d *definition) render(o *agents.Offer, names []string) (out Tool, err error) {
	out = Tool{Name: d.Name, Description: d.Description, Hints: d.hints}
	if d.Field == "" && o.Sites == nil {
		out.Input, err = inputSchema(reflect.TypeFor[struct{}](), "", nil)
	} else {
		out.Input, err = inputSchema(d.input, cmp.Or(d.Field, "site"), names)
	}
	if err == nil {
		out.Output, err = d.output(o.Sites != nil)
	}
	return out, err
}
