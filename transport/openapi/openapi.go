// Package openapi renders the operations as plain HTTP for people and scripts: JSON under /api. An
// OpenAPI document and the flows of an agents.json describe it; each shows its reader only
// operations that the reader may use.
package openapi

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/transport/adapter"
	"agentsite/transport/web"
)

// Routes returns the routes.
func Routes(s *adapter.Site) (all []web.Route) {
	a := api{s}
	for _, o := range operations() {
		if a.Tasks != nil || !o.tasks {
			all = append(all, a.route(o))
		}
	}
	for _, row := range a.Owners {
		all = append(all, a.ownerRoute(row))
	}
	return append(all, a.Document(documentPath, "application/json", a.document), a.Document(flowsPath, "application/json", a.flows))
}

type api struct{ *adapter.Site }

// operation is an operation of the site as a route, and as the documents describe it.
type operation struct {
	id, verb, path string
	summary        string
	describe       string // details that the summary leaves out
	// offered reports whether a reader may use it.
	offered func(*reader) bool
	// names returns the possible values of {device}/{point} in its path, or of the query's point;
	// nil if it names none.
	names  func(*agents.Offer) []string
	query  []parameter
	body   string // its schema; "" for none
	needs  bool   // the body
	result string // its schema; "" where the answer is not JSON, or where it is named after answer
	media  string // of an answer that is not JSON
	status int    // of an answer; 0 for 200
	tasks  bool   // it is about tasks of hosted agents
	// tool names a call that was refused before it reached the node; "" where nothing is asked but to read.
	tool string
	// does is the operation that it asks; nil for anything else. answer is the type of its answer.
	does   *op.Operation
	answer reflect.Type
	// serve answers. It is api.do where it is left out.
	serve func(a api, ctx context.Context, c *call) (any, error)
}

// parameter is a parameter of a query. point is one of the operation's names.
type parameter struct {
	name, describe string
	number, many   bool // a number within agents.Ranges; more than once
	needed         bool
}

// call is a request to an operation.
type call struct {
	*adapter.Call
	*operation
	terms   agents.Terms
	query   url.Values
	numbers map[string]*float64
}

// route returns the route of an operation.
func (a api) route(o *operation) web.Route {
	return a.Route(o.verb+" "+o.path, web.Principals, func(ctx context.Context, c *adapter.Call) (any, error) {
		asked := &call{Call: c, operation: o}
		if err := asked.parse(); err != nil {
			return nil, a.refuse(asked, err)
		}
		v, err := o.serve(a, ctx, asked)
		if err != nil {
			return nil, a.notFound(ctx, asked, err)
		}
		if o.status != 0 {
			return &adapter.Answer{Status: o.status, Value: v}, nil
		}
		return v, nil
	})
}

// parse decodes the query and the headers. A query with more than the operation's parameters is
// invalid, but for those of the emergency stop, which no mistake keeps from stopping.
func (c *call) parse() (err error) {
	if c.terms, err = c.Terms(); c.id == stopID {
		return nil
	}
	if err != nil {
		return err
	}
	if c.query, err = url.ParseQuery(c.Request.URL.RawQuery); err != nil {
		return device.Faultf(device.Invalid, "the query is not well formed: separate parameters by &, and write %%20 for a space")
	}
	c.numbers = make(map[string]*float64)
	names := make([]string, len(c.operation.query))
	for i, p := range c.operation.query {
		names[i] = p.name
		values := c.query[p.name]
		if len(values) > 1 && !p.many {
			return device.Faultf(device.Invalid, "%s comes more than once", p.name)
		}
		if !p.number || len(values) == 0 {
			continue
		}
		n, err := strconv.ParseFloat(values[0], 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return device.Faultf(device.Invalid, "%s takes a number, not %.40q", p.name, values[0])
		}
		c.numbers[p.name] = &n
		if err := agents.CheckNumber(p.name, &n); err != nil {
			return err
		}
	}
	for name := range c.query {
		if !slices.Contains(names, name) {
			return device.Faultf(device.Invalid, "there is no parameter %.40q%s", name, device.Suggest(name, names, "parameter"))
		}
	}
	return nil
}

// point returns the point that the path or the query names.
func (c *call) point() string {
	if strings.Contains(c.path, "{device}") {
		return device.Address(c.Request.PathValue("device"), c.Request.PathValue("point"))
	}
	return c.query.Get("point")
}

// refuse counts a call that was refused before it reached the node, unless it only reads.
func (a api) refuse(c *call, err error) error {
	if c.tool == "" {
		return err
	}
	return a.Node.Refuse(c.Who, c.tool, err)
}

// notFound returns err as 404 where the call was refused because its caller knows nothing by the name
// in the path. It is asked after the node, which decides and counts.
func (a api) notFound(ctx context.Context, c *call, err error) error {
	if device.AsFault(err).Kind != device.Invalid {
		return err
	}
	known := true
	switch r := c.Request; {
	case strings.Contains(c.path, "{device}"):
		o, none := a.Node.Offer(ctx, c.Who)
		known = none != nil || slices.Contains(slices.Concat(o.Read, o.Show, o.Capture, o.Switch, o.Level, o.Release), c.point())
	case strings.Contains(c.path, "{agent}"):
		all, none := a.Tasks.Agents(ctx, c.Who)
		known = none != nil || slices.ContainsFunc(all, func(agent task.Agent) bool { return agent.Name == r.PathValue("agent") })
	case strings.Contains(c.path, "{task}"):
		_, none := a.Tasks.Task(ctx, c.Who, r.PathValue("task"))
		known = none == nil || device.AsFault(none).Kind != device.Invalid
	}
	if known {
		return err
	}
	return adapter.ErrNotFound(err.Error())
}

// decode decodes the body into v, and counts a refusal.
func (a api) decode(c *call, v any) error {
	if err := c.decode(v); err != nil {
		return a.refuse(c, err)
	}
	return nil
}

// decode decodes the body into v.
func (c *call) decode(v any) error {
	if c.needs && len(c.Body()) == 0 {
		return device.Faultf(device.Invalid, "the body is missing: send JSON, as %s says", documentPath)
	}
	return c.Decode(v)
}

// reader is a principal as the documents see it.
type reader struct {
	*agents.Offer
	agents []string // that it may ask
	owner  bool
}

// reader returns a call's reader; nil for a stranger.
func (a api) reader(ctx context.Context, c *adapter.Call) (*reader, error) {
	if c.Who.ID == "" {
		return nil, nil
	}
	offer, err := a.Node.Offer(ctx, c.Who)
	if err != nil {
		return nil, err
	}
	r := &reader{Offer: offer, owner: c.Who.Owner}
	if a.Tasks != nil {
		all, err := a.Tasks.Agents(ctx, c.Who)
		if err != nil {
			return nil, err
		}
		for _, agent := range all {
			r.agents = append(r.agents, agent.Name)
		}
	}
	return r, nil
}

// uses are the operations that a reader may use.
func (r *reader) uses() (all []*operation) {
	for _, o := range operations() {
		if r != nil && o.offered(r) {
			all = append(all, o)
		}
	}
	return all
}

// succeeds returns the status of an answer.
func (o *operation) succeeds() int {
	if o.status != 0 {
		return o.status
	}
	return http.StatusOK
}
