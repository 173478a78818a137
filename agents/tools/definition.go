package tools

import (
	"cmp"
	"context"
	"slices"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/device"
)

// definition renders one operation as a tool.
type definition struct {
	op.Tool
	hints  Hints
	call   func(context.Context, agents.Site, agents.Principal, *agents.Offer, Args, agents.Terms) (Result, error)
	render func(*agents.Offer, []string) (Tool, error)
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

// asks calls an operation whose request is the arguments.
func asks[R, A any, P interface {
	*R
	SetTerms(agents.Terms)
}](do func(agents.Site, context.Context, agents.Principal, R) (A, error)) func(context.Context, agents.Site, agents.Principal, *agents.Offer, P, agents.Terms) (any, error) {
	return func(ctx context.Context, s agents.Site, p agents.Principal, _ *agents.Offer, r P, t agents.Terms) (any, error) {
		r.SetTerms(t)
		return do(s, ctx, p, *r)
	}
}

// asksEach calls an operation that each site of a group answers. The answer of one site alone
// stands for itself.
func asksEach[T any](do func(agents.Site, context.Context, agents.Principal, agents.SiteRequest) (agents.Answers[T], error)) func(context.Context, agents.Site, agents.Principal, *agents.Offer, *agents.SiteRequest, agents.Terms) (any, error) {
	return func(ctx context.Context, s agents.Site, p agents.Principal, o *agents.Offer, r *agents.SiteRequest, t agents.Terms) (any, error) {
		r.Terms = t
		all, err := do(s, ctx, p, *r)
		if o.Sites == nil && len(all.Sites) == 1 {
			return all.Sites[0], err
		}
		return all, err
	}
}

var (
	readOnly  = Hints{ReadOnly: true, Idempotent: true}
	moves     = Hints{Destructive: true} // again is for longer
	repeats   = Hints{Idempotent: true}
	stopHints = Hints{Destructive: true, Idempotent: true}
)

// definitions are all tools, in the order in which they are listed.
var definitions = []definition{
	define(op.ListPoints, readOnly, schema[agents.PointList], asks(agents.Site.Points)),
	define(op.ReadPoints, readOnly, schema[agents.Readings], asks(agents.Site.Read)),
	define(op.ReadHistory, readOnly, schema[agents.History], asks(agents.Site.History)),
	define(op.ExplainPoint, readOnly, anyObject, asks(agents.Site.Why)),
	define(op.SwitchOutput, moves, schema[agents.Output],
		func(ctx context.Context, s agents.Site, p agents.Principal, o *agents.Offer, in *switchArgs, terms agents.Terms) (any, error) {
			if in.On == nil {
				return nil, missing(o, "output", in.Output, device.Bool(true), o.Switch, "on")
			}
			return boxed(s.Move(ctx, p, agents.MoveRequest{Output: in.Output, Value: device.Bool(*in.On), For: in.For, Terms: terms}))
		}),
	define(op.SetLevel, moves, schema[agents.Output],
		func(ctx context.Context, s agents.Site, p agents.Principal, o *agents.Offer, in *levelArgs, terms agents.Terms) (any, error) {
			if in.Value == nil {
				return nil, missing(o, "output", in.Output, device.Number(0), o.Level, "value")
			}
			return boxed(s.Move(ctx, p, agents.MoveRequest{Output: in.Output, Value: device.Number(*in.Value), For: in.For, Terms: terms}))
		}),
	define(op.ReleaseOutput, repeats, schema[agents.Output],
		func(ctx context.Context, s agents.Site, p agents.Principal, o *agents.Offer, in *releaseArgs, terms agents.Terms) (any, error) {
			return boxed(s.Move(ctx, p, agents.MoveRequest{Output: in.Output, Terms: terms}))
		}),
	define(op.EmergencyStop, stopHints, schemaOfMany[agents.Stopped], asksEach(agents.Site.Stop)),
	define(op.ShowText, repeats, schema[agents.ShowRequest],
		func(ctx context.Context, s agents.Site, p agents.Principal, o *agents.Offer, r *agents.ShowRequest, terms agents.Terms) (any, error) {
			r.Terms = terms
			return *r, s.Show(ctx, p, *r)
		}),
	define(op.CaptureImage, Hints{ReadOnly: true}, schema[agents.Picture], asks(agents.Site.Capture)),
	define(op.SiteStatus, readOnly, schemaOfMany[agents.Status], asksEach(agents.Site.Status)),
}

func boxed[T any](v T, err error) (any, error) { return v, err }

// missing is the error of a required argument that is left out, after the name before it.
func missing(o *agents.Offer, field, name string, v device.Value, offered []string, absent string) error {
	if err := o.CheckPoint(agents.OpMove, field, name, v, offered); err != nil {
		return &malformed{err}
	}
	return invalid("%s is missing", absent)
}

// define makes the definition of a tool with arguments In. Decoding is strict.
func define[In any](t op.Tool, hints Hints, output func(group bool) ([]byte, error),
	do func(context.Context, agents.Site, agents.Principal, *agents.Offer, *In, agents.Terms) (any, error)) definition {
	return definition{
		Tool: t, hints: hints,
		call: func(ctx context.Context, s agents.Site, p agents.Principal, o *agents.Offer, args Args, terms agents.Terms) (res Result, err error) {
			var in In
			if t.Field == "" && o.Sites == nil {
				err = args.Decode(new(struct{}))
			} else {
				err = args.Decode(&in)
			}
			if err != nil {
				return res, invalid("%s: %w", t.Name, err)
			}
			if res.Value, err = do(ctx, s, p, o, &in, terms); err != nil {
				return Result{}, err
			}
			if picture, ok := res.Value.(agents.Picture); ok {
				res.Content = []Content{{Image: &Blob{MIME: picture.MIME, Data: picture.Data}}}
			}
			return res, nil
		},
		render: func(o *agents.Offer, names []string) (out Tool, err error) {
			out = Tool{Name: t.Name, Description: t.Description, Hints: hints}
			if t.Field == "" && o.Sites == nil {
				out.Input, err = inputSchema[struct{}]("", nil)
			} else {
				out.Input, err = inputSchema[In](cmp.Or(t.Field, "site"), names)
			}
			if err == nil {
				out.Output, err = output(o.Sites != nil)
			}
			return out, err
		},
	}
}
