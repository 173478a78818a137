package tools

import (
	"context"
	"errors"
	"slices"
	"sync"

	"agentsite/agents"
	"agentsite/agents/skill"
	"agentsite/agents/task"
	"agentsite/device"
)

// Site is a site that is rendered. The node and a group are.
type Site interface {
	agents.Site
	// Notify tells about changes until ctx ends: of the offers that which names, and of the
	// resources among uris. It calls emit from one goroutine, first with the zero Change
	// once nothing can be missed any more.
	Notify(ctx context.Context, p agents.Principal, which agents.Change, uris []string, emit func(agents.Change) error) error
}

// Hosted is the agents that offer tools of their own beside a site's. A node has them.
type Hosted interface {
	Tools(p agents.Principal) ([]Tool, error)
	Call(ctx context.Context, p agents.Principal, c Call) (Result, error)
	// Refuse counts a call that was refused before it reached an operation.
	Refuse(p agents.Principal, tool string, err error) error
}

// Catalog presents a site in MCP's terms: its tools and those of hosted agents, its resources and
// its prompts. If a hosted agent's tool has the name of a site's, the site's is used. It is safe for
// concurrent use.
type Catalog struct {
	// Tasks are the agents that take tasks, and Hold takes a place for a call of p that waits for
	// one. They are set before the first call; a site without such agents has none.
	Tasks task.Host
	Hold  func(p agents.Principal) (leave func(), err error)
	// WishAsk reports whether p, a program that signed in, may ask an owner for AskAgent; nil for nobody.
	WishAsk func(p agents.Principal) bool
	// Skills returns the site's skills; nil for none. It is set before the first call.
	Skills func() []skill.Skill

	site   Site
	hosted Hosted

	mu       sync.Mutex
	rendered map[*agents.Offer]rendered
}

// rendered are the tools of an offer, and those of its wishes.
type rendered struct{ tools, wishes []Tool }

// maxRendered bounds for how many offers the tools are kept; others are rendered again.
const maxRendered = 32

// New makes the catalog of a site.
func New(site Site, hosted Hosted) *Catalog {
	return &Catalog{site: site, hosted: hosted, rendered: make(map[*agents.Offer]rendered)}
}

// Tools lists the tools that p may call.
func (c *Catalog) Tools(ctx context.Context, p agents.Principal) ([]Tool, error) {
	all, _, err := c.list(ctx, p)
	return all, err
}

// Listed lists the tools that p may call, and after them those that it may ask an owner for. A model calls
// only what is listed to it, and it asks by calling one of these.
func (c *Catalog) Listed(ctx context.Context, p agents.Principal) ([]Tool, error) {
	all, wishes, err := c.list(ctx, p)
	if len(wishes) == 0 {
		return all, err
	}
	return slices.Concat(all, wishes), err
}

func (c *Catalog) list(ctx context.Context, p agents.Principal) (all, wishes []Tool, err error) {
	own, err := c.hosted.Tools(p)
	if err != nil {
		return nil, nil, err
	}
	o, err := c.site.Offer(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	r, err := c.render(o)
	if err != nil {
		return nil, nil, err
	}
	ask, wish, err := c.askTool(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	all, wishes = r.tools, r.wishes
	if len(own)+len(ask) > 0 {
		all = slices.Concat(all, ask, own)
	}
	if wish != nil {
		wishes = slices.Concat(wishes, wish)
	}
	return all, wishes, nil
}

// render returns the tools of an offer. The slices are not changed.
func (c *Catalog) render(o *agents.Offer) (r rendered, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.rendered[o]; ok {
		return r, nil
	}
	for i := range definitions {
		d := &definitions[i]
		names, offered := d.names(o)
		wish := false
		if !offered {
			names, wish = o.Wishes[d.Name]
		}
		if !offered && !wish {
			continue
		}
		t, err := d.render(o, names)
		switch {
		case err != nil:
			return r, err
		case wish:
			r.wishes = append(r.wishes, wished(t))
		default:
			r.tools = append(r.tools, t)
		}
	}
	if len(c.rendered) >= maxRendered {
		clear(c.rendered)
	}
	c.rendered[o] = r
	return r, nil
}

// NotYet ends the description of a tool that its reader may not call, and may ask an owner for.
const NotYet = " Not allowed yet: a call asks the site's owner, and is refused until they allow it."

// wished returns a tool for a reader who may only ask an owner for it, which every call does.
func wished(t Tool) Tool {
	t.Description += NotYet
	t.Hints.ReadOnly, t.View = false, false
	return t
}

// Call calls a tool. An operation that p may not ask for is denied; any other name that nobody
// offers p is ErrNotFound.
func (c *Catalog) Call(ctx context.Context, p agents.Principal, call Call) (Result, error) {
	if call.Tool == AskAgent && c.Tasks != nil {
		res, err := c.ask(ctx, p, call)
		return c.called(p, call, res, err)
	}
	o, err := c.site.Offer(ctx, p)
	if err != nil {
		return Result{}, err
	}
	i := slices.IndexFunc(definitions, func(d definition) bool { return d.Name == call.Tool })
	if i < 0 {
		return c.hosted.Call(ctx, p, call)
	}
	d := &definitions[i]
	if _, offered := d.names(o); !offered {
		return c.hosted.Call(ctx, p, call)
	}
	terms := call.Terms
	terms.Approval = call.Exchange.State
	res, err := d.call(ctx, c.site, p, o, call.Args, terms)
	if wrong, ok := errors.AsType[*malformed](err); ok && d.hints.ReadOnly {
		return Result{}, wrong.error
	}
	return c.called(p, call, res, err)
}

// called returns the result of a call. It counts malformed calls. If an owner has to approve the
// call, the result asks the caller to repeat it after the approval.
func (c *Catalog) called(p agents.Principal, call Call, res Result, err error) (Result, error) {
	if needs, ok := errors.AsType[*agents.ApprovalNeeded](err); ok {
		return Result{NeedInput: needInput(needs, call.Exchange)}, nil
	}
	if wrong, ok := errors.AsType[*malformed](err); ok {
		return Result{}, c.hosted.Refuse(p, call.Tool, wrong.error)
	}
	return res, err
}

// malformed is the error of arguments that no operation was asked with.
type malformed struct{ error }

// needInput renders that an owner has to approve a call. A client that can ask its person does, so
// that the person reads the requirement.
func needInput(needs *agents.ApprovalNeeded, ex Exchange) *NeedInput {
	need := &NeedInput{State: needs.State, Elsewhere: needs.Says}
	if ex.Can.Elicitation {
		need.Questions = []Question{{Key: "approval", Method: "elicitation/create", Params: map[string]any{
			"mode": "form", "message": "Nothing that is answered here approves it: " + needs.Says + ".",
			"requestedSchema": map[string]any{"type": "object", "properties": map[string]any{}},
		}}}
	}
	return need
}

// Notify tells about changes, as Site.Notify does. A skill changes with the list of resources and never by itself.
func (c *Catalog) Notify(ctx context.Context, p agents.Principal, which agents.Change, uris []string, emit func(agents.Change) error) error {
	uris = slices.DeleteFunc(slices.Clone(uris), skill.IsURI)
	return c.site.Notify(ctx, p, which, uris, emit)
}

// Watch tells p about changes of the site, as agents.Site does.
func (c *Catalog) Watch(ctx context.Context, p agents.Principal, r agents.WatchRequest, emit func(agents.Update) error) error {
	return c.site.Watch(ctx, p, r, emit)
}

// invalid is a malformed request.
func invalid(format string, args ...any) error {
	return &malformed{device.Faultf(device.Invalid, format, args...)}
}
