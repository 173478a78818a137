package wot

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node/things"
	"agentsite/transport/adapter"
	"agentsite/transport/web"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The directory of W3C Web of Things Discovery (section 7.3): others register descriptions, which
// stand beside those of the site's own things.

// The names in the permission "use NAME": to register things, and to read those that others
// registered.
const (
	registerThing = "register_thing"
	listThings    = "list_things"
)

const (
	mergePatchType   = "application/merge-patch+json"
	eventsType       = "text/event-stream"
	discoveryContext = "https://www.w3.org/2022/wot/discovery"
)

// directory returns the routes of a site that is a directory.
func (s server) directory() []web.Route {
	return []web.Route{
		s.Route("POST /things", web.Principals, s.create),
		s.Route("PUT /things/{thing}", web.Principals, s.put),
		s.Route("PATCH /things/{thing}", web.Principals, s.patch),
		s.Route("DELETE /things/{thing}", web.Principals, s.remove),
		s.Route("GET /events", web.Principals, s.events),
		s.Route("GET /events/{type}", web.Principals, s.events),
		// Other requests there are answered as a problem, and not by net/http.
		s.Route("/things", web.Principals, unsupported("GET, HEAD, POST")),
		s.Route("/things/{thing}", web.Principals, unsupported("GET, HEAD, PUT, PATCH, DELETE")),
		s.Route("/search/{language}", web.Principals, func(context.Context, *adapter.Call) (any, error) {
			return nil, adapter.ErrNotFound("this directory has no search; GET /things lists it, with limit and offset")
		}),
	}
}

func unsupported(allow string) func(context.Context, *adapter.Call) (any, error) {
	return func(_ context.Context, c *adapter.Call) (any, error) {
		c.Writer.Header().Set("Allow", allow)
		return adapter.Refuse(http.StatusMethodNotAllowed, "here are "+allow), nil
	}
}

// reader returns a caller, and whether it may read others' registrations.
func (s server) reader(who agents.Principal) (things.Caller, error) {
	account, err := s.Node.Account(who)
	if err != nil {
		return things.Caller{}, err
	}
	c := things.Caller{ID: who.ID, Account: account, Owner: s.Node.Owner(who) == nil}
	err = s.Node.May(who, agents.Ask{Tool: listThings})
	if c.Reads = err == nil; err != nil && device.AsFault(err).Kind == device.Denied {
		err = nil // it reads its own registrations
	}
	return c, err
}

// charged is reader, and charges the permission.
func (s server) charged(who agents.Principal) (things.Caller, error) {
	c, err := s.reader(who)
	if err == nil && c.Reads {
		err = s.Node.Use(who, listThings)
	}
	return c, err
}

// registrar returns a caller that may register things, and the ID in the URL and the body of its
// request. The body's media type has to be one of types.
func (s server) registrar(c *adapter.Call, types ...string) (by things.Caller, id string, body jsontext.Value, err error) {
	if err = s.Node.Use(c.Who, registerThing); err == nil {
		by, err = s.reader(c.Who)
	}
	if err != nil {
		return by, "", nil, err
	}
	id = c.Request.PathValue("thing")
	if parseSubject(id).kind != "" {
		return by, "", nil, device.Faultf(device.Denied, "this is the name of a thing of the site's own")
	}
	if types == nil {
		return by, id, nil, nil
	}
	is, _, _ := mime.ParseMediaType(cmp.Or(c.Request.Header.Get("Content-Type"), types[0]))
	if !slices.Contains(types, is) {
		return by, "", nil, unsupportedType(types[0])
	}
	if err = c.Decode(&body); err == nil && body.Kind() != '{' {
		err = errors.New("a description is a JSON object")
	}
	if err != nil {
		err = things.Invalid{{Field: "(root)", Description: err.Error()}}
	}
	return by, id, body, err
}

// unsupportedType is the media type that a body should have.
type unsupportedType string

func (t unsupportedType) Error() string { return "the Content-Type has to be " + string(t) }

// refused renders the errors of the directory.
func refused(err error) (any, error) {
	var invalid things.Invalid
	var media unsupportedType
	switch {
	case errors.Is(err, things.ErrNone):
		return nil, adapter.ErrNotFound(err.Error())
	case errors.As(err, &media):
		return adapter.Refuse(http.StatusUnsupportedMediaType, err.Error()), nil
	case errors.As(err, &invalid):
		a := adapter.Refuse(http.StatusBadRequest, err.Error())
		a.Value = struct {
			adapter.Problem
			Errors things.Invalid `json:"validationErrors"`
		}{a.Value.(adapter.Problem), invalid}
		return a, nil
	}
	return nil, err
}

// descriptionTypes are those of a whole description.
var descriptionTypes = []string{tdType, jsonType, "application/ld+json"}

// create registers a description without an ID.
func (s server) create(_ context.Context, c *adapter.Call) (any, error) {
	by, _, body, err := s.registrar(c, descriptionTypes...)
	var id string
	if err == nil {
		id, err = s.Things.Add(by, body)
	}
	if err != nil {
		return refused(err)
	}
	c.Writer.Header().Set("Location", "/things/"+url.PathEscape(id))
	return &adapter.Answer{Status: http.StatusCreated}, nil
}

func (s server) put(_ context.Context, c *adapter.Call) (any, error) {
	by, id, body, err := s.registrar(c, descriptionTypes...)
	var created bool
	if err == nil {
		created, err = s.Things.Put(by, id, body)
	}
	switch {
	case err != nil:
		return refused(err)
	case created:
		c.Writer.Header().Set("Location", "/things/"+url.PathEscape(id))
		return &adapter.Answer{Status: http.StatusCreated}, nil
	}
	return noContent, nil
}

func (s server) patch(_ context.Context, c *adapter.Call) (any, error) {
	by, id, body, err := s.registrar(c, mergePatchType)
	if err == nil && c.Request.Header.Get("Content-Type") == "" {
		err = unsupportedType(mergePatchType)
	}
	if err == nil {
		err = s.Things.Patch(by, id, body)
	}
	if err != nil {
		return refused(err)
	}
	return noContent, nil
}

func (s server) remove(_ context.Context, c *adapter.Call) (any, error) {
	by, id, _, err := s.registrar(c)
	if err == nil {
		err = s.Things.Delete(by, id)
	}
	if err != nil {
		return refused(err)
	}
	return noContent, nil
}

// retrieve returns a registered description.
func (s server) retrieve(c *adapter.Call) (any, error) {
	by, err := s.charged(c.Who)
	if err != nil {
		return nil, err
	}
	id := c.Request.PathValue("thing")
	t, ok := s.Things.Get(by, id)
	links := s.links(by)
	if i := find(links, id); i >= 0 && t.By != by.ID {
		return c.Cached(tdType, links[i].td)
	}
	if !ok {
		return nil, notThere("such thing")
	}
	return &adapter.Answer{Type: tdType, Value: []byte(t.Text)}, nil
}

// member is a description in a list.
type member struct {
	id string
	td any
}

// list returns the descriptions of the site's own and the registered things, in the order of their
// IDs, or a page of them.
func (s server) list(ctx context.Context, c *adapter.Call) (any, error) {
	p, err := parsePage(c.Request.URL.Query())
	if err != nil {
		return nil, err
	}
	have, err := s.catalog(ctx, c.Who)
	if err != nil {
		return nil, err
	}
	var all []member
	for _, t := range s.things(c.Base(), have) {
		all = append(all, member{t.ID, t})
	}
	if s.Things != nil {
		by, err := s.charged(c.Who)
		if err != nil {
			return nil, err
		}
		links := s.links(by)
		for _, t := range s.Things.List(by) {
			if i := find(links, t.ID); i < 0 {
				all = append(all, member{t.ID, t.Text})
			} else if t.By == by.ID {
				links[i].td = t.Text
			}
		}
		all = append(all, links...)
	}
	slices.SortFunc(all, func(a, b member) int { return strings.Compare(a.id, b.id) })
	return p.answer(c.Writer.Header(), all), nil
}

// page is which part of a list is asked for.
type page struct {
	offset, limit int // limit is 0 for all
	collection    bool
}

func parsePage(query url.Values) (p page, err error) {
	for name, values := range query {
		n, wrong := strconv.Atoi(values[0])
		switch {
		case name == "offset" && wrong == nil && n >= 0:
			p.offset = n
		case name == "limit" && wrong == nil && n > 0:
			p.limit = n
		case name == "format" && (values[0] == "array" || values[0] == "collection"):
			p.collection = values[0] == "collection"
		default:
			return p, device.Faultf(device.Invalid, "the list takes offset from 0, limit from 1 and format, array or collection; it is always in the order of the ids, and takes no %.40q of %.40q", name, values[0])
		}
	}
	return p, nil
}

func (p page) url() string {
	q := make(url.Values)
	if p.offset > 0 || p.limit > 0 {
		q.Set("offset", strconv.Itoa(p.offset))
	}
	if p.limit > 0 {
		q.Set("limit", strconv.Itoa(p.limit))
	}
	if p.collection {
		q.Set("format", "collection")
	}
	return strings.TrimSuffix("/things?"+q.Encode(), "?")
}

// answer returns the page, and sets the links to the next page and to the whole list, whose ETag
// depends on the IDs.
func (p page) answer(h http.Header, all []member) *adapter.Answer {
	sum := sha256.New()
	for _, m := range all {
		sum.Write([]byte(m.id + "\n"))
	}
	total := len(all)
	all = all[min(p.offset, total):]
	next := ""
	if p.limit > 0 && len(all) > p.limit {
		all = all[:p.limit]
		after := p
		after.offset += p.limit
		next = after.url()
		h.Add("Link", "<"+next+`>; rel="next"`)
	}
	h.Add("Link", `</things>; rel="canonical"; etag="`+base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:12])+`"`)
	tds := make([]any, len(all))
	for i, m := range all {
		tds[i] = m.td
	}
	if !p.collection {
		return &adapter.Answer{Type: "application/ld+json", Value: tds}
	}
	return &adapter.Answer{Type: "application/ld+json", Value: collection{discoveryContext, "ThingCollection", p.url(), total, tds, next}}
}

// collection is a page whose links and total stand in its body.
type collection struct {
	Context string `json:"@context"`
	Type    string `json:"@type"`
	ID      string `json:"@id"`
	Total   int    `json:"total"`
	Members []any  `json:"members"`
	Next    string `json:"next,omitzero"`
}

// events tells what is registered, updated and removed.
func (s server) events(ctx context.Context, c *adapter.Call) (any, error) {
	kind := c.Request.PathValue("type")
	if kind != "" && kind != things.Created && kind != things.Updated && kind != things.Deleted {
		return nil, notThere("event of this type")
	}
	if diff := c.Request.URL.Query().Get("diff"); diff != "" && diff != "false" && kind != things.Deleted {
		return adapter.Refuse(http.StatusNotImplemented, "this directory tells which thing has changed, and not how: leave out diff, and retrieve the thing"), nil
	}
	if c.Request.Method == http.MethodHead {
		return &adapter.Answer{Type: eventsType, Value: []byte{}}, nil
	}
	begun := false
	err := s.While(ctx, c.Who, func(ctx context.Context) error {
		if _, err := s.charged(c.Who); err != nil {
			return err
		}
		out := web.NewEvents(c.Writer)
		defer out.Close()
		begin := func() { begun = true; out.Begin() }
		return s.Things.Watch(ctx, c.Request.Header.Get("Last-Event-ID"), begin, func() (things.Caller, error) { return s.reader(c.Who) }, func(e things.Event) error {
			if kind != "" && kind != e.Type {
				return nil
			}
			text, err := json.Marshal(struct {
				ID string `json:"id"`
			}{e.Thing})
			if err != nil {
				return err
			}
			return out.SendID(e.ID, e.Type, text)
		})
	})
	if begun {
		return adapter.Answered, nil
	}
	return nil, err
}

// addType says that a thing is a directory.
func (t *thing) addType() {
	t.Type = []any{t.Type, "ThingDirectory"}
	t.Context = append(t.Context, discoveryContext)
}

// addDirectory describes the actions on the directory that a caller may use, in the names of its
// Thing Model.
func (s server) addDirectory(t *thing, who agents.Principal) {
	t.addType()
	id := map[string]*schema{"id": {Type: "string"}}
	one := func(method, contentType, op string) []form {
		return []form{{Ops: []string{op}, Href: "things/{id}", Type: contentType, Method: method}}
	}
	if t.Properties == nil {
		t.Properties = make(map[string]*affordance)
	}
	t.Properties["things"] = &affordance{
		schema: schema{Type: "array", ReadOnly: true, Description: "all Thing Descriptions"},
		Variables: map[string]*schema{
			"offset": {Type: "number"}, "limit": {Type: "number"}, "format": {Type: "string", Enum: []string{"array", "collection"}},
		},
		Forms: []form{{Ops: []string{"readproperty"}, Href: "things{?offset,limit,format}", Type: "application/ld+json", Method: "GET"}},
	}
	t.Actions["retrieveThing"] = &affordance{Safe: true, Idempotent: true, Variables: id, Output: &schema{Type: "object"}, Forms: one("GET", tdType, "invokeaction")}
	if s.Node.May(who, agents.Ask{Tool: registerThing}) == nil {
		object := &schema{Type: "object"}
		for name, how := range map[string][2]string{
			"createThing": {"PUT", tdType}, "updateThing": {"PUT", tdType}, "partiallyUpdateThing": {"PATCH", mergePatchType}, "deleteThing": {"DELETE", ""},
		} {
			a := &affordance{Variables: id, Forms: one(how[0], cmp.Or(how[1], jsonType), "invokeaction")}
			if how[1] != "" {
				a.Input = object
			}
			t.Actions[name] = a
		}
		t.Actions["createAnonymousThing"] = &affordance{Input: object, Forms: []form{{Ops: []string{"invokeaction"}, Href: "things", Type: tdType, Method: "POST"}}}
	}
	t.Events = make(map[string]*affordance)
	for name, kind := range map[string]string{"thingCreated": things.Created, "thingUpdated": things.Updated, "thingDeleted": things.Deleted} {
		t.Events[name] = &affordance{
			Data:  &schema{Type: "object", Properties: id},
			Forms: []form{{Ops: []string{"subscribeevent", "unsubscribeevent"}, Href: "events/" + kind, Type: jsonType, Subprotocol: "sse"}},
		}
	}
}
