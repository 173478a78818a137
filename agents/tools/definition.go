package tools

import (
	"context"

	"agentsite/agents"
	"agentsite/device"
)

// definition is how one operation is rendered as a tool.
type definition struct {
	tool Tool // its name, description and hints
	// field is the argument that names points; "" of a tool about a whole site, which names
	// a site in a group.
	field string
	// names returns the possible values of the argument, and whether there is such a tool at all.
	names  func(*agents.Offer) (names []string, offered bool)
	call   func(context.Context, agents.Site, agents.Principal, *agents.Offer, Args, agents.Terms) (Result, error)
	render func(*agents.Offer, []string) (Tool, error)
}

// points are the names of a tool that is there for as long as it can name a point.
func points(of func(*agents.Offer) []string) func(*agents.Offer) ([]string, bool) {
	return func(o *agents.Offer) ([]string, bool) {
		names := of(o)
		return names, len(names) > 0
	}
}

// sites are those of a tool about a whole site.
func sites(op agents.Operation, offered func(*agents.Offer) bool) func(*agents.Offer) ([]string, bool) {
	return func(o *agents.Offer) ([]string, bool) { return o.Sites[op], offered(o) }
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
	define(Tool{
		Name:        agents.OpPoints.Tool(),
		Description: "Sensors and outputs: kind, unit, range; of outputs the safe value, max_seconds away from it, other limits and who confirms a move.",
		Hints:       readOnly,
	}, "", sites(agents.OpPoints, func(o *agents.Offer) bool { return o.Points }), schema[agents.PointList],
		asks(agents.Site.Points)),
	define(Tool{
		Name:        agents.OpRead.Tool(),
		Description: "The latest readings. Quality: good, stale (too old) or fault (see why).",
		Hints:       readOnly,
	}, "points", points(func(o *agents.Offer) []string { return o.Read }), schema[agents.Readings],
		asks(agents.Site.Read)),
	define(Tool{
		Name:        agents.OpHistory.Tool(),
		Description: "How a measurement went, in steps; what changed of any other point. Times: RFC 3339.",
		Hints:       readOnly,
	}, "point", points(func(o *agents.Offer) []string { return o.History }), schema[agents.History],
		asks(agents.Site.History)),
	define(Tool{
		Name:        agents.OpWhy.Tool(),
		Description: "Why a point is so: who holds an output, since when, what forbids a change, its last changes.",
		Hints:       readOnly,
	}, "point", func(o *agents.Offer) ([]string, bool) { return nil, len(o.Read) > 0 }, anyObject, // the names are those of read_points
		asks(agents.Site.Why)),
	define(Tool{
		Name:        SwitchOutput,
		Description: "Switch an output for a time. Call again to keep it so, within the owner's limits.",
		Hints:       moves,
	}, "output", points(func(o *agents.Offer) []string { return o.Switch }), schema[agents.Output],
		func(ctx context.Context, s agents.Site, p agents.Principal, o *agents.Offer, in *switchArgs, terms agents.Terms) (any, error) {
			if in.On == nil {
				return nil, missing(o, "output", in.Output, device.Bool(true), o.Switch, "on")
			}
			return boxed(s.Move(ctx, p, agents.MoveRequest{Output: in.Output, Value: device.Bool(*in.On), For: in.For, Terms: terms}))
		}),
	define(Tool{
		Name:        SetLevel,
		Description: "Set an output for a time. Call again to keep it so, within the owner's limits.",
		Hints:       moves,
	}, "output", points(func(o *agents.Offer) []string { return o.Level }), schema[agents.Output],
		func(ctx context.Context, s agents.Site, p agents.Principal, o *agents.Offer, in *levelArgs, terms agents.Terms) (any, error) {
			if in.Value == nil {
				return nil, missing(o, "output", in.Output, device.Number(0), o.Level, "value")
			}
			return boxed(s.Move(ctx, p, agents.MoveRequest{Output: in.Output, Value: device.Number(*in.Value), For: in.For, Terms: terms}))
		}),
	define(Tool{
		Name:        ReleaseOutput,
		Description: "Return an output to safe now. Always allowed.",
		Hints:       repeats,
	}, "output", points(func(o *agents.Offer) []string { return o.Release }), schema[agents.Output],
		func(ctx context.Context, s agents.Site, p agents.Principal, o *agents.Offer, in *releaseArgs, terms agents.Terms) (any, error) {
			return boxed(s.Move(ctx, p, agents.MoveRequest{Output: in.Output, Terms: terms}))
		}),
	define(Tool{
		Name:        agents.OpStop.Tool(),
		Description: "Send every output to safe until the owner resets it in person. For when something goes wrong.",
		Hints:       stopHints,
	}, "", sites(agents.OpStop, func(o *agents.Offer) bool { return o.Stop }), schemaOfMany[agents.Stopped],
		asksEach(agents.Site.Stop)),
	define(Tool{
		Name:        agents.OpShow.Tool(),
		Description: "Show a text on a display.",
		Hints:       repeats,
	}, "display", points(func(o *agents.Offer) []string { return o.Show }), schema[agents.ShowRequest],
		func(ctx context.Context, s agents.Site, p agents.Principal, o *agents.Offer, r *agents.ShowRequest, terms agents.Terms) (any, error) {
			r.Terms = terms
			return *r, s.Show(ctx, p, *r)
		}),
	define(Tool{
		Name:        agents.OpCapture.Tool(),
		Description: "Take a picture.",
		Hints:       Hints{ReadOnly: true},
	}, "camera", points(func(o *agents.Offer) []string { return o.Capture }), schema[agents.Picture],
		asks(agents.Site.Capture)),
	define(Tool{
		Name:        agents.OpStatus.Tool(),
		Description: "What is wrong with devices; outputs away from safe, for how long, or that cannot move yet; the emergency stop.",
		Hints:       readOnly,
	}, "", sites(agents.OpStatus, func(o *agents.Offer) bool { return o.Status }), schemaOfMany[agents.Status],
		asksEach(agents.Site.Status)),
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
func define[In any](t Tool, field string, names func(*agents.Offer) ([]string, bool), output func(group bool) ([]byte, error),
	do func(context.Context, agents.Site, agents.Principal, *agents.Offer, *In, agents.Terms) (any, error)) definition {
	return definition{
		tool: t, field: field, names: names,
		call: func(ctx context.Context, s agents.Site, p agents.Principal, o *agents.Offer, args Args, terms agents.Terms) (res Result, err error) {
			var in In
			if field == "" && o.Sites == nil {
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
		render: func(o *agents.Offer, names []string) (Tool, error) {
			out := t
			var err error
			if field == "" && o.Sites == nil {
				out.Input, err = inputSchema[struct{}](field, names)
			} else if field == "" {
				out.Input, err = inputSchema[In]("site", names)
			} else {
				out.Input, err = inputSchema[In](field, names)
			}
			if err == nil {
				out.Output, err = output(o.Sites != nil)
			}
			return out, err
		},
	}
}
