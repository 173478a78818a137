// Package wot renders the operations as W3C Web of Things (Thing Description 1.1, Discovery) with
// the terms of Eclipse LMOS. The site, each device and each agent is a thing with properties,
// actions and events over HTTP.
package wot

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/transport/adapter"
	"agentsite/transport/web"
)

// The names of things that are no devices begin with these, which no device's name does.
const (
	agentPrefix = "agent:"
	sitePrefix  = "site:"
)

const tdType = "application/td+json"

// Routes returns the routes.
func Routes(s *adapter.Site) []web.Route {
	w := server{s}
	routes := []web.Route{
		s.Document(selfPath, tdType, w.self),
		s.Document("/.well-known/capabilities.json", "", w.capabilities),
		s.Route("GET /things", web.Principals, w.list),
		s.Route("GET /things/{thing}", web.Principals, w.describe),
		s.Route("GET /things/{thing}/properties", web.Principals, w.readAll),
		s.Route("GET /things/{thing}/properties/{name}", web.Principals, w.read),
		s.Route("PUT /things/{thing}/properties/{name}", web.Principals, w.write),
		s.Route("GET /things/{thing}/properties/{name}/observe", web.Principals, w.observe),
		s.Route("POST /things/{thing}/actions/{name}", web.Principals, w.invoke),
		s.Route("GET /things/{thing}/actions/{name}/{task}", web.Principals, w.query),
		s.Route("DELETE /things/{thing}/actions/{name}/{task}", web.Principals, w.cancel),
		s.Route("GET /things/{thing}/events/{name}", web.Principals, w.subscribe),
		s.Route("GET "+socketPath, web.Principals, w.socket),
	}
	if s.Things != nil {
		routes = append(routes, w.directory()...)
	}
	return routes
}

type server struct{ *adapter.Site }

// catalog lists the parts of the site that a caller may use.
type catalog struct {
	*agents.Offer
	who    agents.Principal
	points map[string]agents.Point // by address; none for a caller that may not list them
	agents []task.Agent
}

// catalog returns the catalog of a caller.
func (s server) catalog(ctx context.Context, who agents.Principal) (c catalog, err error) {
	c.who = who
	if c.Offer, err = s.Node.Offer(ctx, who); err != nil {
		return c, err
	}
	c.points = make(map[string]agents.Point)
	if c.Points {
		all, err := s.Node.Points(ctx, who, agents.SiteRequest{})
		if err != nil {
			return c, err
		}
		for _, p := range all.Points {
			c.points[p.Point] = p
		}
	}
	if s.Tasks != nil {
		c.agents, err = s.Tasks.Agents(ctx, who)
	}
	return c, err
}

// addresses returns the points that the caller may use in any way, those of a device together.
func (c catalog) addresses() []string {
	all := slices.Concat(c.Read, c.Switch, c.Level, c.Release, c.Show, c.Capture)
	slices.Sort(all)
	return slices.Compact(all)
}

// devices returns the names of the devices that have such points.
func (c catalog) devices() (names []string) {
	for _, address := range c.addresses() {
		if name, _, _ := device.SplitAddress(address); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// agent returns an agent that the caller may ask.
func (c catalog) agent(name string) (task.Agent, bool) {
	i := slices.IndexFunc(c.agents, func(a task.Agent) bool { return a.Name == name })
	if i < 0 {
		return task.Agent{}, false
	}
	return c.agents[i], true
}

// kind returns the kind of a point; "" where the caller may not know it.
func (c catalog) kind(address string) device.Kind {
	switch p, known := c.points[address]; {
	case known:
		return p.Kind
	case slices.Contains(c.Switch, address):
		return device.KindSwitch
	case slices.Contains(c.Level, address):
		return device.KindLevel
	}
	return ""
}

// subject is the thing that a request is about, by its URL.
type subject struct {
	kind string // agentPrefix, sitePrefix or "" for a device
	name string
}

// subjectOf returns the thing that a path names.
func subjectOf(r *http.Request) subject { return parseSubject(r.PathValue("thing")) }

func parseSubject(thing string) subject {
	for _, prefix := range []string{agentPrefix, sitePrefix} {
		if name, ok := strings.CutPrefix(thing, prefix); ok {
			return subject{prefix, name}
		}
	}
	return subject{"", thing}
}

// notThere is the answer about a thing, or a part of one, that the caller cannot use.
func notThere(what string) error {
	return adapter.ErrNotFound("there is no " + what + " here; /things lists the things that you may use")
}

// addressOf returns the point of a device that a request names.
func addressOf(of subject, name string) (string, error) {
	if of.kind != "" {
		return "", notThere("such property, action or event")
	}
	return device.Address(of.name, name), nil
}

// notFound returns err as 404 where the node refused a point because its caller knows no such
// point. It is asked after the node, which decides and counts.
func (s server) notFound(ctx context.Context, who agents.Principal, address string, err error) error {
	if err == nil || device.AsFault(err).Kind != device.Invalid {
		return err
	}
	o, none := s.Node.Offer(ctx, who)
	if none != nil || slices.Contains((catalog{Offer: o}).addresses(), address) {
		return err
	}
	return adapter.ErrNotFound(err.Error())
}

// self describes the site: to a stranger, that it is there.
func (s server) self(ctx context.Context, c *adapter.Call) (any, error) {
	if c.Who == (agents.Principal{}) {
		t := newThing(c.Base(), "", "agentsite", "lmos:Tool")
		if s.Things != nil {
			t.addType()
		}
		return t, nil
	}
	have, err := s.catalog(ctx, c.Who)
	if err != nil {
		return nil, err
	}
	return s.siteThing(c.Base(), have), nil
}

// things describes the site, its devices and its agents.
func (s server) things(base string, have catalog) []*thing {
	all := []*thing{s.siteThing(base, have)}
	for _, name := range have.devices() {
		all = append(all, s.deviceThing(base, name, have))
	}
	for _, a := range have.agents {
		all = append(all, s.agentThing(base, a))
	}
	return all
}

func (s server) describe(ctx context.Context, c *adapter.Call) (any, error) {
	have, err := s.catalog(ctx, c.Who)
	if err != nil {
		return nil, err
	}
	name := strings.TrimPrefix(c.Request.PathValue("thing"), s.idOf(""))
	if t := s.thing(c.Base(), parseSubject(name), have); t != nil {
		return c.Cached(tdType, t)
	}
	if s.Things != nil {
		return s.retrieve(c)
	}
	return nil, notThere("such thing")
}

// thing describes one thing; nil where the caller may use nothing of it.
func (s server) thing(base string, of subject, have catalog) *thing {
	switch {
	case of.kind == sitePrefix && of.name == s.Name:
		return s.siteThing(base, have)
	case of.kind == agentPrefix:
		if a, ok := have.agent(of.name); ok {
			return s.agentThing(base, a)
		}
	case of.kind == "" && slices.Contains(have.devices(), of.name):
		return s.deviceThing(base, of.name, have)
	}
	return nil
}

// capability is a skill as LMOS's operator collects them.
type capability struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Description string   `json:"description"`
	Examples    []string `json:"examples"`
}

type capabilities struct {
	ID           string       `json:"id"`
	Description  string       `json:"description"`
	Tenants      []string     `json:"supportedTenants"`
	Channels     []string     `json:"supportedChannels"`
	Capabilities []capability `json:"capabilities"`
}

// capabilities lists the skills of the agents that the caller may ask.
func (s server) capabilities(ctx context.Context, c *adapter.Call) (any, error) {
	out := capabilities{ID: "agentsite", Tenants: []string{}, Channels: []string{}, Capabilities: []capability{}}
	if c.Who == (agents.Principal{}) {
		return out, nil
	}
	out.ID, out.Description = s.Name, "the agents of this site"
	if s.Tasks == nil {
		return out, nil
	}
	all, err := s.Tasks.Agents(ctx, c.Who)
	for _, a := range all {
		for _, skill := range a.Skills {
			out.Capabilities = append(out.Capabilities, capability{a.Name + "/" + skill.ID, skill.ID, s.Version, skill.Description, []string{}})
		}
	}
	return out, err
}
