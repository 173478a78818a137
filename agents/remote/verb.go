package remote

import (
	"fmt"
	"slices"
	"strings"

	"agentsite/agents"

	"github.com/go-json-experiment/json"
)

// verb is what is known of a tool that sites offer.
type verb struct {
	name string
	arg  string // the argument that names a point; "" where it is about whole sites
	acts bool   // it may move something
	soon bool   // it waits for no place: it goes to safe
	// moves says that it moves an output away from safe.
	moves bool
}

const (
	listPoints    = "list_points"
	readPoints    = "read_points"
	emergencyStop = "emergency_stop"
	siteStatus    = "site_status"
	captureImage  = "capture_image"
	showText      = "show_text"
	readHistory   = "read_history"
)

// verbs are all that are called, in the order in which they are offered.
var verbs = []verb{
	{name: listPoints},
	{name: readPoints, arg: "points"},
	{name: readHistory, arg: "point"},
	{name: "switch_output", arg: "output", acts: true, moves: true},
	{name: "set_level", arg: "output", acts: true, moves: true},
	{name: "release_output", arg: "output", acts: true, soon: true},
	{name: emergencyStop, acts: true, soon: true},
	{name: showText, arg: "display", acts: true},
	{name: captureImage, arg: "camera"},
	{name: siteStatus},
}

func verbNamed(name string) (verb, bool) {
	i := slices.IndexFunc(verbs, func(v verb) bool { return v.name == name })
	if i < 0 {
		return verb{}, false
	}
	return verbs[i], true
}

// siteArg is the argument that names a whole site.
const siteArg = "site"

// tool is the verb as it is offered here: its text, with names for what it can be about.
func (v verb) tool(text agents.Tool, names []string) agents.Tool {
	in := parse(text.Input)
	arguments := inside(in, "properties")
	if v.arg == "" {
		arguments[siteArg] = object{"type": "string", "description": "all when left out", "enum": names}
	} else {
		about := inside(arguments, v.arg)
		if about["type"] == "array" {
			about = inside(about, "items")
		}
		about["enum"] = names
	}
	delete(in, "additionalProperties")
	text.Input = write(in)
	if text.Output == nil {
		return text
	}
	out := parse(text.Output)
	switch v.name {
	case siteStatus, emergencyStop:
		inside(out, "properties")[siteArg] = object{"type": "string"}
		out = object{"type": "object", "properties": object{"sites": object{"type": "array", "items": out}}}
	case listPoints:
		points := inside(inside(out, "properties"), "points")
		delete(inside(inside(points, "items"), "properties"), "description") // see point
	case readPoints:
	default:
		return text
	}
	inside(out, "properties")["not_answered"] = object{"type": "array", "items": object{
		"type": "object", "properties": object{siteArg: object{"type": "string"}, "why": object{"type": "string"}},
	}}
	text.Output = write(out)
	return text
}

// object is a part of a schema.
type object = map[string]any

func parse(schema []byte) object {
	o := object{}
	if json.Unmarshal(schema, &o) != nil {
		return object{}
	}
	return o
}

// inside is the object of a name in another, made where it is not there.
func inside(o object, name string) object {
	in, ok := o[name].(object)
	if !ok {
		in = object{}
		o[name] = in
	}
	return in
}

func write(o object) []byte {
	b, _ := json.Marshal(o, json.Deterministic(true)) // of what parse made, and our own texts
	return b
}

// choice lists what something may be, as the end of a sentence.
func choice(names []string) string {
	const most = 30
	switch {
	case len(names) > most:
		return fmt.Sprintf("; use one of %s and %d more (list_points names them)", strings.Join(names[:most], ", "), len(names)-most)
	case len(names) > 0:
		return "; use " + strings.Join(names, ", ")
	}
	return ""
}
