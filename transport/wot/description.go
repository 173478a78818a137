package wot

import (
	"fmt"
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"
)

// thing is a Thing Description (https://www.w3.org/TR/wot-thing-description11/, section 5).
type thing struct {
	Context     []any                  `json:"@context"`
	Type        any                    `json:"@type"` // a string, or some
	ID          string                 `json:"id,omitzero"`
	Title       string                 `json:"title"`
	Description string                 `json:"description,omitzero"`
	Base        string                 `json:"base"`
	Schemes     map[string]scheme      `json:"securityDefinitions"`
	Security    string                 `json:"security"`
	Properties  map[string]*affordance `json:"properties,omitzero"`
	Actions     map[string]*affordance `json:"actions,omitzero"`
	Events      map[string]*affordance `json:"events,omitzero"`
	Forms       []form                 `json:"forms,omitzero"`
	Links       []link                 `json:"links,omitzero"`
	Metadata    *metadata              `json:"lmos:metadata,omitzero"`
}

type scheme struct {
	Scheme string `json:"scheme"`
	In     string `json:"in"`
	Format string `json:"format"`
}

// metadata are terms of LMOS.
type metadata struct {
	Vendor vendor `json:"lmos:vendor"`
}

type vendor struct {
	Name string `json:"lmos:name"`
}

// affordance is a property, an action or an event. A property is also its own schema.
type affordance struct {
	schema
	Observable  bool               `json:"observable,omitzero"`
	Input       any                `json:"input,omitzero"`
	Output      *schema            `json:"output,omitzero"`
	Data        *schema            `json:"data,omitzero"`
	Safe        bool               `json:"safe,omitzero"`
	Idempotent  bool               `json:"idempotent,omitzero"`
	Synchronous *bool              `json:"synchronous,omitzero"`
	Variables   map[string]*schema `json:"uriVariables,omitzero"`
	Forms       []form             `json:"forms"`
}

// schema is a data schema (section 5.3.2).
type schema struct {
	Description string             `json:"description,omitzero"`
	Type        string             `json:"type,omitzero"`
	Unit        string             `json:"unit,omitzero"`
	Min         *float64           `json:"minimum,omitzero"`
	Max         *float64           `json:"maximum,omitzero"`
	Enum        []string           `json:"enum,omitzero"`
	ReadOnly    bool               `json:"readOnly,omitzero"`
	WriteOnly   bool               `json:"writeOnly,omitzero"`
	OneOf       []*schema          `json:"oneOf,omitzero"`
	Properties  map[string]*schema `json:"properties,omitzero"`
	Required    []string           `json:"required,omitzero"`
	MaxLength   int                `json:"maxLength,omitzero"`
	Encoding    string             `json:"contentEncoding,omitzero"`
}

type form struct {
	Ops         []string `json:"op"`
	Href        string   `json:"href"`
	Type        string   `json:"contentType"`
	Method      string   `json:"htv:methodName,omitzero"`
	Subprotocol string   `json:"subprotocol,omitzero"`
}

// addSocket adds to each affordance of a thing the form of the WebSocket.
func (t *thing) addSocket() *thing {
	href := "ws" + strings.TrimPrefix(strings.TrimSuffix(t.Base, "/"), "http") + socketPath // wss of https
	for _, all := range []map[string]*affordance{t.Properties, t.Actions, t.Events} {
		for _, a := range all {
			var ops []string
			for _, f := range a.Forms {
				if f.Subprotocol != "sse" { // the same as those of long polling
					ops = append(ops, f.Ops...)
				}
			}
			a.Forms = append(a.Forms, form{Ops: ops, Href: href, Type: jsonType, Subprotocol: subprotocol})
		}
	}
	return t
}

type link struct {
	Rel  string `json:"rel"`
	Href string `json:"href"`
	Type string `json:"type"`
}

// newThing returns a description without affordances. Both contexts are there because consumers
// of 1.0 refuse a description with that of 1.1 alone.
func newThing(base, id, title, kind string) *thing {
	return &thing{
		Context: []any{
			"https://www.w3.org/2019/wot/td/v1", "https://www.w3.org/2022/wot/td/v1.1",
			map[string]string{"lmos": "https://eclipse.dev/lmos/protocol/v1"},
		},
		Type: kind, ID: id, Title: title, Base: base + "/",
		Schemes: map[string]scheme{"token": {"bearer", "header", "opaque"}}, Security: "token",
	}
}

// named returns a description of one of the site's things, by the name in its URLs.
func (s server) named(base, name, title, kind string) *thing {
	t := newThing(base, s.idOf(name), title, kind)
	t.Metadata = &metadata{vendor{"agentsite " + s.Version}}
	return t
}

// idOf returns the ID of a thing: a URL of the site's key, which is the same wherever the site is
// reached.
func (s server) idOf(name string) string { return s.Key.ID().String() + "/things/" + name }

// pathOf returns the path of a part of a thing, from the site's root.
func pathOf(thing string, parts ...string) string {
	return "things/" + strings.Join(append([]string{thing}, parts...), "/")
}

const jsonType = "application/json"

func newForm(href string, ops ...string) form { return form{Ops: ops, Href: href, Type: jsonType} }

// streams returns the forms for changes of an affordance: long polling, for clients that cannot
// authenticate server-sent events, and server-sent events.
func streams(href string, ops ...string) []form {
	poll := newForm(href, ops...)
	events := poll
	poll.Subprotocol, events.Subprotocol = "longpoll", "sse"
	return []form{poll, events}
}

// siteThing describes the site as a whole, with links to its parts.
func (s server) siteThing(base string, have catalog) *thing {
	name := sitePrefix + s.Name
	t := s.named(base, name, s.Name, "lmos:Tool")
	t.Description = "a site with devices and agents, which the links name"
	if have.Status {
		t.Properties = map[string]*affordance{"status": {
			schema: schema{Type: "object", Description: "how the site is", ReadOnly: true, Properties: map[string]*schema{
				"emergency_stop": {Type: "boolean"}, "uptime_seconds": {Type: "number", Unit: "s"}, "version": {Type: "string"},
			}},
			Forms: []form{newForm(pathOf(name, "properties", "status"), "readproperty")},
		}}
	}
	t.Actions = make(map[string]*affordance)
	if have.Stop {
		t.Actions["stop"] = &affordance{
			schema:     schema{Description: "sends every output to its safe value, until an owner resets the stop"},
			Idempotent: true,
			Output:     &schema{Type: "object", Properties: map[string]*schema{"emergency_stop": {Type: "boolean"}}},
			Forms:      []form{newForm(pathOf(name, "actions", "stop"), "invokeaction")},
		}
	}
	if len(have.History) > 0 {
		t.Actions["history"] = historyOf(name, have.History)
	}
	for _, d := range have.devices() {
		t.Links = append(t.Links, link{"item", pathOf(d), tdType})
	}
	for _, a := range have.agents {
		t.Links = append(t.Links, link{"item", pathOf(agentPrefix + a.Name), tdType})
	}
	t.addSocket()
	if s.Things != nil {
		s.addDirectory(t, have.who)
	}
	return t
}

// historyOf describes the action that tells how a point went.
func historyOf(site string, points []string) *affordance {
	when := func(text string) *schema { return &schema{Type: "string", Description: text} }
	return &affordance{
		schema: schema{Description: "how a point went: a measurement in steps, any other by what changed"},
		Safe:   true,
		Input: &schema{Type: "object", Required: []string{"point"}, Properties: map[string]*schema{
			"point": {Type: "string", Enum: points}, "from": when("RFC 3339"), "to": when("RFC 3339; now when left out"),
			"hours": {Type: "number", Description: "instead of from; 12 when left out"}, "steps": {Type: "number", Description: "about; 24 when left out"},
		}},
		Output: &schema{Type: "object", Properties: map[string]*schema{"point": {Type: "string"}, "unit": {Type: "string"}}},
		Forms:  []form{newForm(pathOf(site, "actions", "history"), "invokeaction")},
	}
}

// deviceThing describes a device with the points that a caller may use.
func (s server) deviceThing(base, name string, have catalog) *thing {
	t := s.named(base, name, name, "lmos:Tool")
	t.Properties, t.Actions, t.Events = make(map[string]*affordance), make(map[string]*affordance), make(map[string]*affordance)
	readable := false
	for _, address := range have.addresses() {
		of, point, _ := device.SplitAddress(address)
		if of != name {
			continue
		}
		t.Description = have.points[address].Device
		read := slices.Contains(have.Read, address)
		moved := slices.Contains(have.Switch, address) || slices.Contains(have.Level, address)
		switch {
		case have.kind(address) == device.KindEvent:
			t.Events[point] = event(name, point, have.points[address])
		case read || moved:
			t.Properties[point] = property(name, point, have.kind(address), have.points[address], read, moved)
			readable = readable || read
		}
		addActions(t.Actions, name, point, address, have)
	}
	if readable {
		t.Forms = []form{newForm(pathOf(name, "properties"), "readallproperties")}
	}
	return t.addSocket()
}

// property describes a point that is read or moved.
func property(thing, name string, kind device.Kind, p agents.Point, read, moved bool) *affordance {
	a := &affordance{
		schema:     schema{Description: p.Description, Unit: p.Unit, Min: p.Min, Max: p.Max, Enum: p.Values, ReadOnly: !moved, WriteOnly: !read},
		Observable: read,
	}
	switch {
	case kind == device.KindMeasurement, kind == device.KindLevel:
		a.Type = "number"
	case kind == device.KindSwitch, kind == device.KindState && len(p.Values) == 0:
		a.Type = "boolean"
	case kind == device.KindState:
		a.Type = "string"
	}
	href := pathOf(thing, "properties", name)
	if read {
		a.Forms = append(a.Forms, newForm(href, "readproperty"))
	}
	if moved {
		seconds := &schema{Type: "number", Unit: "s", Min: new(agents.Ranges["for_seconds"].Min), Description: "how long it is held, 60 or less when left out"}
		if p.MaxSeconds > 0 {
			seconds.Max = &p.MaxSeconds
		}
		a.Variables = map[string]*schema{"for": seconds}
		a.Description = strings.TrimPrefix(a.Description+"; a value is held for a time, and then it returns", "; ")
		if p.Limits != "" {
			a.Description += " (" + p.Limits + ")"
		}
		if p.Confirm != "" {
			a.Description += "; an " + p.Confirm + " has to approve each write"
		}
		a.Forms = append(a.Forms, newForm(href+"{?for}", "writeproperty"))
	}
	if read {
		a.Forms = append(a.Forms, streams(href+"/observe", "observeproperty", "unobserveproperty")...)
	}
	return a
}

// event describes a point that tells of events. They have a value, whose type differs.
func event(thing, name string, p agents.Point) *affordance {
	return &affordance{
		schema: schema{Description: p.Description},
		Data:   &schema{OneOf: []*schema{{Type: "boolean"}, {Type: "number"}, {Type: "string"}}},
		Forms:  streams(pathOf(thing, "events", name), "subscribeevent", "unsubscribeevent"),
	}
}

// The names of a device's actions are these with the point's name, as points' names have no dot.
const (
	releaseAction = "release."
	showAction    = "show."
	captureAction = "capture."
)

// maxShown bounds the length of a text for a display.
const maxShown = 500

func addActions(all map[string]*affordance, thing, point, address string, have catalog) {
	add := func(offered []string, prefix string, a affordance) {
		if slices.Contains(offered, address) {
			a.Forms = []form{newForm(pathOf(thing, "actions", prefix+point), "invokeaction")}
			all[prefix+point] = &a
		}
	}
	add(have.Release, releaseAction, affordance{schema: schema{Description: "returns " + point + " to its safe value"}, Idempotent: true})
	add(have.Show, showAction, affordance{
		schema: schema{Description: "shows a text on " + point}, Idempotent: true,
		Input: &schema{Type: "string", MaxLength: maxShown},
	})
	add(have.Capture, captureAction, affordance{
		schema: schema{Description: "takes a picture with " + point}, Safe: true,
		Output: &schema{Type: "object", Properties: map[string]*schema{
			"time": {Type: "string"}, "mime_type": {Type: "string"}, "data": {Type: "string", Encoding: "base64"},
		}},
	})
}

// answerAction is the action that answers a task's question. No skill has a capital letter.
const answerAction = "answerTask"

// agentThing describes an agent by its skills.
func (s server) agentThing(base string, a task.Agent) *thing {
	name := agentPrefix + a.Name
	t := s.named(base, name, a.Name, "lmos:Agent")
	t.Description, t.Actions = a.Description, make(map[string]*affordance)
	for _, skill := range a.Skills {
		href := pathOf(name, "actions", skill.ID)
		t.Actions[skill.ID] = &affordance{
			schema:      schema{Description: skill.Description},
			Input:       inputOf(skill.Input),
			Output:      taskSchema(),
			Synchronous: new(false),
			Variables: map[string]*schema{
				"wait": {Type: "number", Unit: "s", Min: new(0.0), Max: new(maxWait.Seconds()), Description: fmt.Sprintf("how long the answer waits for the end; %v when left out", maxWait.Seconds())},
				"task": {Type: "string", Description: "the id of the task"},
			},
			Forms: []form{
				newForm(href+"{?wait}", "invokeaction"),
				{Ops: []string{"queryaction"}, Href: href + "/{task}", Type: jsonType, Method: "GET"},
				{Ops: []string{"cancelaction"}, Href: href + "/{task}", Type: jsonType, Method: "DELETE"},
			},
		}
	}
	if chats(a) {
		t.Actions[chatAction] = chatAffordance(pathOf(name, "actions", chatAction))
	}
	t.Actions[answerAction] = &affordance{
		schema: schema{Description: "answers the question of a task that is in state input_required"},
		Input: &schema{Type: "object", Required: []string{"task", "answer"}, Properties: map[string]*schema{
			"task": {Type: "string"}, "answer": {Type: "string"}, "question": {Type: "string", Description: "its id; the current when left out"},
		}},
		Output: taskSchema(),
		Forms:  []form{newForm(pathOf(name, "actions", answerAction), "invokeaction")},
	}
	return t.addSocket()
}

// taskSchema describes task.Task.
func taskSchema() *schema {
	return &schema{Type: "object", Required: []string{"id", "state"}, Properties: map[string]*schema{
		"id": {Type: "string"}, "agent": {Type: "string"}, "says": {Type: "string"}, "fault": {Type: "string"}, "result": {},
		"state": {Type: "string", Enum: []string{
			string(task.Submitted), string(task.Working), string(task.InputRequired), string(task.AuthRequired),
			string(task.Completed), string(task.Failed), string(task.Rejected), string(task.Canceled),
		}},
		"question": {Type: "object", Properties: map[string]*schema{"id": {Type: "string"}, "text": {Type: "string"}}},
	}}
}
