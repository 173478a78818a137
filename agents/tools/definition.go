package tools

import (
	"cmp"
	"context"
	"reflect"
	"slices"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/device"
)

// definition renders one operation as a tool.
type definition struct {
	op.Tool
	hints   Hints
	input   reflect.Type                           // the arguments
	request func(*agents.Offer, Args) (any, error) // of the operation
}

// names returns the possible values of the argument that names points, or the site in a group, and
// whether there is such a tool at all.
func (d *definition) names(o *agents.Offer) (names []string, offered bool) {
	switch {
	case d.Whole != nil:
		return o.Sites[d.Of.Operation], *d.Whole(o)
	case d.Points != nil:
		names = *d.Points(o)
		if d.Of == op.History && slices.Equal(names, o.Read) {
			return nil, len(names) > 0 // they are listed once, and a model has less to read
		}
		return names, len(names) > 0
	}
	return nil, len(o.Read) > 0
}

// hints are those of tools whose effect does not say them all.
var hints = map[string]Hints{
	op.ReleaseOutput.Name: {Idempotent: true},
	op.ShowText.Name:      {Idempotent: true},
	op.CaptureImage.Name:  {ReadOnly: true},
}

func hintsOf(t op.Tool) Hints {
	if h, ok := hints[t.Name]; ok {
		return h
	}
	switch t.Of.Effect() {
	case agents.Reads:
		return Hints{ReadOnly: true, Idempotent: true}
	case agents.Returns:
		return Hints{Destructive: true, Idempotent: true}
	}
	return Hints{Destructive: true} // a move again is for longer
}

// viewed are the tools whose results are shown by a view, where a client has them.
var viewed = []string{
	op.ReadPoints.Name, op.ReadHistory.Name, op.ExplainPoint.Name, SwitchOutput, SetLevel, ReleaseOutput, op.SiteStatus.Name,
}

// moves are the tools that move an output, which have arguments of their own.
var moves = map[string]definition{
	SwitchOutput: move(func(o *agents.Offer, in *switchArgs) (r agents.MoveRequest, err error) {
		if in.On == nil {
			return r, missing(o, "output", in.Output, device.Bool(true), o.Switch, "on")
		}
		return agents.MoveRequest{Output: in.Output, Value: device.Bool(*in.On), For: in.For}, nil
	}),
	SetLevel: move(func(o *agents.Offer, in *levelArgs) (r agents.MoveRequest, err error) {
		if in.Value == nil {
			return r, missing(o, "output", in.Output, device.Number(0), o.Level, "value")
		}
		return agents.MoveRequest{Output: in.Output, Value: device.Number(*in.Value), For: in.For}, nil
	}),
	ReleaseOutput: move(func(_ *agents.Offer, in *releaseArgs) (agents.MoveRequest, error) {
		return agents.MoveRequest{Output: in.Output}, nil
	}),
}

// definitions are all tools, in the order in which they are listed.
var definitions = func() (all []definition) {
	for _, t := range op.Tools {
		d, ok := moves[t.Name]
		if !ok {
			d = definition{input: t.Of.Request, request: func(o *agents.Offer, args Args) (any, error) {
				if t.Of.Field == "" && o.Sites == nil {
					return new(agents.SiteRequest), args.Decode(new(struct{}))
				}
				return t.Of.Decode(args)
			}}
		}
		d.Tool, d.hints = t, hintsOf(t)
		all = append(all, d)
	}
	return all
}()

// missing is the error of a required argument that is left out, after the name before it.
func missing(o *agents.Offer, field, name string, v device.Value, offered []string, absent string) error {
	if err := o.CheckPoint(agents.OpMove, field, name, v, offered); err != nil {
		return &malformed{err}
	}
	return invalid("%s is missing", absent)
}

// move defines a tool that moves an output, with arguments In.
func move[In any](of func(*agents.Offer, *In) (agents.MoveRequest, error)) definition {
	return definition{input: reflect.TypeFor[In](), request: func(o *agents.Offer, args Args) (any, error) {
		var both struct { // one allocation
			in In
			r  agents.MoveRequest
		}
		err := args.Decode(&both.in)
		if err == nil {
			both.r, err = of(o, &both.in)
		}
		return &both.r, err
	}}
}

// call calls the tool. An error is *malformed where the site was not asked.
func (d *definition) call(
	ctx context.Context, s agents.Site, p agents.Principal, o *agents.Offer, args Args, terms agents.Terms,
) (res Result, err error) {
	r, err := d.request(o, args)
	if _, ok := err.(*malformed); err != nil && !ok {
		err = invalid("%s: %w", d.Name, err)
	}
	if err != nil {
		return res, err
	}
	if o.Sites == nil {
		res.Value, err = d.Of.AskOne(ctx, s, p, r, terms)
	} else {
		res.Value, err = d.Of.Ask(ctx, s, p, r, terms)
	}
	if picture, ok := res.Value.(agents.Picture); ok {
		res.Content = []Content{{Image: &Blob{MIME: picture.MIME, Data: picture.Data}}}
	}
	return res, err
}

// render returns the tool of an offer, with the possible names of its points or sites.
func (d *definition) render(o *agents.Offer, names []string) (out Tool, err error) {
	out = Tool{Name: d.Name, Description: d.Description, Hints: d.hints, View: slices.Contains(viewed, d.Name)}
	if d.Of.Field == "" && o.Sites == nil {
		out.Input, err = inputSchema(reflect.TypeFor[struct{}](), "", nil)
	} else {
		out.Input, err = inputSchema(d.input, cmp.Or(d.Of.Field, "site"), names)
	}
	if err == nil {
		out.Output, err = outputOf(d.Of, o.Sites != nil)
	}
	return out, err
}
