package tools

import (
	"context"

	"agentsite/agents"
	"agentsite/device"
)

// definition is how one operation is rendered as a tool.
type definition struct {
	tool agents.Tool // its name, description and hints
	// field is the argument that names points; "" of a tool about a whole site, which names
	// a site in a group.
	field string
	// names returns what the argument may be, and whether there is such a tool at all.
	names  func(*agents.Offer) (names []string, offered bool)
	call   func(context.Context, agents.Site, agents.Principal, *agents.Offer, agents.Args, agents.Terms) (agents.Result, error)
	render func(*agents.Offer, []string) (agents.Tool, error)
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

// many are the results of several sites; of one site alone, its result stands for itself.
type many[T any] struct {
	Sites  []T             `json:"sites"`
	Missed []agents.Missed `json:"not_answered,omitzero"`
}

// oneOrMany returns a result of many as its tool gives it.
func oneOrMany[T any](o *agents.Offer, sites []T, missed []agents.Missed) any {
	if o.Sites == nil && len(sites) == 1 {
		return sites[0]
	}
	return many[T]{sites, missed}
}

var (
	readOnly  = agents.Hints{ReadOnly: true, Idempotent: true}
	moves     = agents.Hints{Destructive: true} // again is for longer
	repeats   = agents.Hints{Idempotent: true}
	stopHints = agents.Hints{Destructive: true, Idempotent: true}
)

// definitions are all tools, in the order in which they are listed.
var definitions = []definition{
	define(agents.Tool{
		Name:        agents.ListPoints,
		Description: "Sensors and outputs: kind, unit, range; of outputs the safe value, max_seconds away from it, other limits and who confirms a move.",
		Hints:       readOnly,
	}, "", sites(agents.OpPoints, func(o *agents.Offer) bool { return o.Points }), schema[agents.PointList],
		func(ctx context.Context, s agents.Site, p agents.Principal, o *agents.Offer, r agents.SiteRequest, terms agents.Terms) (any, error) {
			r.Terms = terms
			return boxed(s.Points(ctx, p, r))
		}),
	define(agents.Tool{
		Name:        agents.ReadPoints,
		Description: "The latest readings. Quality: good, stale (too old) or fault (see why).",
		Hints:       readOnly,
	}, "points", points(func(o *agents.Offer) []string { return o.Read }), schema[agents.Readings],
		func(ctx context.Context, s agents.Site, p agents.Principal, o *agents.Offer, r agents.ReadRequest, terms agents.Terms) (any, error) {
			r.Terms = terms
			return boxed(s.Read(ctx, p, r))
		}),
	define(agents.Tool{
		Name:        agents.ReadHistory,
		Description: "Minimum, mean and maximum of a measurement, of each step and of the whole.",
		Hints:       readOnly,
	}, "point", points(func(o *agents.Offer) []string { return o.History }), schema[agents.History],
		func(ctx context.Context, s agents.Site, p agents.Principal, o *agents.Offer, r agents.HistoryRequest, terms agents.Terms) (any, error) {
			r.Terms = terms
			return boxed(s.History(ctx, p, r))
		}),
	define(agents.Tool{
		Name:        agents.SwitchOutput,
		Description: "Switch an output for a time. Call again to keep it so, within the owner's limits.",
		Hints:       moves,
	}, "output", points(func(o *agents.Offer) []string { return o.Switch }), schema[agents.Output],
		func(ctx context.Context, s agents.Site, p agents.Principal, o *agents.Offer, in agents.SwitchArgs, terms agents.Terms) (any, error) {
			if in.On == nil {
				return nil, missing("output", in.Output, o.Switch, "on")
			}
			return boxed(s.Move(ctx, p, agents.MoveRequest{Output: in.Output, Value: device.Bool(*in.On), For: in.For, Terms: terms}))
		}),
	define(agents.Tool{
		Name:        agents.SetLevel,
		Description: "Set an output for a time. Call again to keep it so, within the owner's limits.",
		Hints:       moves,
	}, "output", points(func(o *agents.Offer) []string { return o.Level }), schema[agents.Output],
		func(ctx context.Context, s agents.Site, p agents.Principal, o *agents.Offer, in agents.LevelArgs, terms agents.Terms) (any, error) {
			if in.Value == nil {
				return nil, missing("output", in.Output, o.Level, "value")
			}
			return boxed(s.Move(ctx, p, agents.MoveRequest{Output: in.Output, Value: device.Number(*in.Value), For: in.For, Terms: terms}))
		}),
	define(agents.Tool{
		Name:        agents.ReleaseOutput,
		Description: "Return an output to safe now. Always allowed.",
		Hints:       repeats,
	}, "output", points(func(o *agents.Offer) []string { return o.Release }), schema[agents.Output],
		func(ctx context.Context, s agents.Site, p agents.Principal, o *agents.Offer, in agents.ReleaseArgs, terms agents.Terms) (any, error) {
			return boxed(s.Move(ctx, p, agents.MoveRequest{Output: in.Output, Terms: terms}))
		}),
	define(agents.Tool{
		Name:        agents.EmergencyStop,
		Description: "Send every output to safe until the owner resets it in person. For when something goes wrong.",
		Hints:       stopHints,
	}, "", sites(agents.OpStop, func(o *agents.Offer) bool { return o.Stop }), schemaOfMany[agents.Stopped],
		func(ctx context.Context, s agents.Site, p agents.Principal, o *agents.Offer, r agents.SiteRequest, terms agents.Terms) (any, error) {
			r.Terms = terms
			res, err := s.Stop(ctx, p, r)
			return oneOrMany(o, res.Sites, res.Missed), err
		}),
	define(agents.Tool{
		Name:        agents.ShowText,
		Description: "Show a text on a display.",
		Hints:       repeats,
	}, "display", points(func(o *agents.Offer) []string { return o.Show }), schema[agents.ShowRequest],
		func(ctx context.Context, s agents.Site, p agents.Principal, o *agents.Offer, r agents.ShowRequest, terms agents.Terms) (any, error) {
			r.Terms = terms
			return r, s.Show(ctx, p, r)
		}),
	define(agents.Tool{
		Name:        agents.CaptureImage,
		Description: "Take a picture.",
		Hints:       agents.Hints{ReadOnly: true},
	}, "camera", points(func(o *agents.Offer) []string { return o.Capture }), schema[agents.Picture],
		func(ctx context.Context, s agents.Site, p agents.Principal, o *agents.Offer, r agents.CaptureRequest, terms agents.Terms) (any, error) {
			r.Terms = terms
			return boxed(s.Capture(ctx, p, r))
		}),
	define(agents.Tool{
		Name:        agents.SiteStatus,
		Description: "What is wrong with devices; outputs away from safe, for how long, or that cannot move yet; the emergency stop.",
		Hints:       readOnly,
	}, "", sites(agents.OpStatus, func(o *agents.Offer) bool { return o.Status }), schemaOfMany[agents.Status],
		func(ctx context.Context, s agents.Site, p agents.Principal, o *agents.Offer, r agents.SiteRequest, terms agents.Terms) (any, error) {
			r.Terms = terms
			res, err := s.Status(ctx, p, r)
			return oneOrMany(o, res.Sites, res.Missed), err
		}),
}

func boxed[T any](v T, err error) (any, error) { return v, err }

// missing is the error of a required argument that is left out, after the name before it.
func missing(field, name string, offered []string, absent string) error {
	if err := agents.CheckName(field, name, offered); err != nil {
		return &malformed{err}
	}
	return invalid("%s is missing", absent)
}

// define makes the definition of a tool with arguments In. Decoding is strict.
func define[In any](t agents.Tool, field string, names func(*agents.Offer) ([]string, bool), output func(group bool) ([]byte, error),
	do func(context.Context, agents.Site, agents.Principal, *agents.Offer, In, agents.Terms) (any, error)) definition {
	return definition{
		tool: t, field: field, names: names,
		call: func(ctx context.Context, s agents.Site, p agents.Principal, o *agents.Offer, args agents.Args, terms agents.Terms) (res agents.Result, err error) {
			var in In
			if field == "" && o.Sites == nil {
				err = args.Decode(new(struct{}))
			} else {
				err = args.Decode(&in)
			}
			if err != nil {
				return res, invalid("%s: %w", t.Name, err)
			}
			if res.Value, err = do(ctx, s, p, o, in, terms); err != nil {
				return agents.Result{}, err
			}
			if picture, ok := res.Value.(agents.Picture); ok {
				res.Content = []agents.Content{{Image: &agents.Blob{MIME: picture.MIME, Data: picture.Data}}}
			}
			return res, nil
		},
		render: func(o *agents.Offer, names []string) (agents.Tool, error) {
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
