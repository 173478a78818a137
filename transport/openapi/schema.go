package openapi

import (
	"cmp"
	"reflect"
	"slices"
	"sync"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/transport/adapter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"
)

// types are the types behind the schemas of bodies and answers, by their names in the document. An
// operation's own types are in its row.
var types = map[string]reflect.Type{
	"Problem": reflect.TypeFor[adapter.Problem](), "Reading": reflect.TypeFor[agents.Reading](),
	"Agents": reflect.TypeFor[agentList](), "Task": reflect.TypeFor[task.Task](), "Tasks": reflect.TypeFor[taskList](),
	"Ask": reflect.TypeFor[askBody](), "Answer": reflect.TypeFor[answerBody](),
}

// ranges are those of numbers in bodies.
var ranges = map[string]device.Range{"for": agents.Ranges["for_seconds"], "seconds": agents.Ranges["within"]}

// schemas returns the schemas of requests and answers, by their names in the document. They are
// made once, when the first document is asked for.
var schemas = sync.OnceValues(func() (map[string]jsontext.Value, error) {
	made := make(map[string]jsontext.Value)
	add := func(name string, own reflect.Type, body bool, field string) error {
		s, err := schemaOf(cmp.Or(types[name], own), body)
		if err != nil {
			return err
		}
		remove(s, field)
		for name, p := range s.Properties {
			if r, ok := ranges[name]; ok && body {
				p.Minimum, p.Maximum = &r.Min, &r.Max
			}
		}
		made[name], err = json.Marshal(s, json.Deterministic(true))
		return err
	}
	err := add("Problem", nil, false, "")
	for _, o := range operations() {
		if err == nil && o.body != "" {
			does := cmp.Or(o.does, new(op.Operation))
			err = add(o.body, does.Request, true, does.Field) // which the path names
		}
		if err == nil && o.result != "" {
			err = add(o.result, o.answer, false, "")
		}
	}
	return made, err
})

// schemaOptions has the schemas of types that the library does not know. A device.Value is a number, a
// bool, a text or null, a jsontext.Value any JSON, and bytes are base64.
func schemaOptions() *jsonschema.ForOptions {
	return &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[device.Value]():   {Types: []string{"number", "boolean", "string", "null"}},
		reflect.TypeFor[jsontext.Value](): {},
		reflect.TypeFor[[]byte]():         {Type: "string", ContentEncoding: "base64"},
	}}
}

// schemaOf returns the schema of a body, which has nothing more than it says, or of an answer, which
// may: members are added over time.
func schemaOf(t reflect.Type, body bool) (*jsonschema.Schema, error) {
	s, err := jsonschema.ForType(t, schemaOptions())
	if err == nil {
		tidy(s, body)
	}
	return s, err
}

// unwanted are properties that the answers of one site do not have. The library includes
// agents.Terms of requests, although these do not encode them; the others belong to a group.
var unwanted = []string{
	"agentsite/idempotency-key", "agentsite/expires-in", "agentsite/held", "agentsite/unconfirmed", "agentsite/via",
	"not_answered",
}

// tidy removes the parts of a schema that are never sent: the nulls that the library allows for
// pointers and lists, and unwanted properties.
func tidy(s *jsonschema.Schema, body bool) {
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	remove(s, unwanted...)
	if !body {
		s.AdditionalProperties = nil
	}
	for _, p := range s.Properties {
		tidy(p, body)
	}
	if s.Items != nil {
		tidy(s.Items, body)
	}
}

func remove(s *jsonschema.Schema, names ...string) {
	for _, name := range names {
		delete(s.Properties, name)
	}
	is := func(name string) bool { return slices.Contains(names, name) }
	s.PropertyOrder, s.Required = slices.DeleteFunc(s.PropertyOrder, is), slices.DeleteFunc(s.Required, is)
}
