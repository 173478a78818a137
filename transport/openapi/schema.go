package openapi

import (
	"reflect"
	"slices"
	"sync"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/transport/adapter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"
)

// schemas returns the schemas of requests and answers, by their names in the document. They are
// made once, when the first document is asked for.
var schemas = sync.OnceValues(func() (map[string]jsontext.Value, error) {
	made := maker{all: make(map[string]jsontext.Value)}
	answer[adapter.Problem](&made, "Problem")
	answer[agents.PointList](&made, "PointList")
	answer[agents.Reading](&made, "Reading")
	answer[agents.Readings](&made, "Readings")
	answer[agents.History](&made, "History")
	answer[agents.Why](&made, "Why")
	answer[agents.Status](&made, "Status")
	answer[agents.Output](&made, "Output")
	answer[agents.Stopped](&made, "Stopped")
	answer[agents.ShowRequest](&made, "Shown")
	answer[agentList](&made, "Agents")
	answer[task.Task](&made, "Task")
	answer[taskList](&made, "Tasks")
	body[moveBody](&made, "Move", map[string]device.Range{"for": agents.Ranges["for_seconds"]})
	body[textBody](&made, "Text", nil)
	body[askBody](&made, "Ask", map[string]device.Range{"seconds": agents.Ranges["within"]})
	body[answerBody](&made, "Answer", nil)
	return made.all, made.err
})

type maker struct {
	all map[string]jsontext.Value
	err error
}

func (m *maker) add(name string, s *jsonschema.Schema) {
	text, err := json.Marshal(s, json.Deterministic(true))
	if err != nil {
		m.err = err
	}
	m.all[name] = text
}

// schemaOptions has the schemas of types that the library does not know. A device.Value is a number, a
// bool, a text or null, a jsontext.Value any JSON, and bytes are base64.
func schemaOptions() *jsonschema.ForOptions {
	return &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[device.Value]():   {Types: []string{"number", "boolean", "string", "null"}},
		reflect.TypeFor[jsontext.Value](): {},
		reflect.TypeFor[[]byte]():         {Type: "string", ContentEncoding: "base64"},
	}}
}

func schemaOf[T any]() (*jsonschema.Schema, error) { return jsonschema.For[T](schemaOptions()) }

// answer adds the schema of an answer, which may have more than it says: members are added over time.
func answer[T any](m *maker, name string) {
	s, err := schemaOf[T]()
	if err != nil {
		m.err = err
		return
	}
	tidy(s, func(s *jsonschema.Schema) { s.AdditionalProperties = nil })
	m.add(name, s)
}

// body adds the schema of a request's body, which has nothing more than it says.
func body[T any](m *maker, name string, ranges map[string]device.Range) {
	s, err := schemaOf[T]()
	if err != nil {
		m.err = err
		return
	}
	tidy(s, func(*jsonschema.Schema) {})
	for property, r := range ranges {
		s.Properties[property].Minimum, s.Properties[property].Maximum = &r.Min, &r.Max
	}
	m.add(name, s)
}

// unwanted are properties that the answers of one site do not have. The library includes
// agents.Terms of requests, although these do not encode them; the others belong to a group.
var unwanted = []string{
	"agentsite/idempotency-key", "agentsite/expires-in", "agentsite/held", "agentsite/unconfirmed", "agentsite/via",
	"not_answered",
}

// tidy calls do for a schema and all schemas in it. It removes parts that are never sent: the nulls
// that the library allows for pointers and lists, and unwanted properties.
func tidy(s *jsonschema.Schema, do func(*jsonschema.Schema)) {
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for _, name := range unwanted {
		delete(s.Properties, name)
	}
	is := func(name string) bool { return slices.Contains(unwanted, name) }
	s.PropertyOrder, s.Required = slices.DeleteFunc(s.PropertyOrder, is), slices.DeleteFunc(s.Required, is)
	do(s)
	for _, p := range s.Properties {
		tidy(p, do)
	}
	if s.Items != nil {
		tidy(s.Items, do)
	}
}
