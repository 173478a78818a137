package tasks

import (
	"reflect"
	"testing"

	"agentsite/agents/task"

	"github.com/go-json-experiment/json/jsontext"
)

// TestAskedIsWhole: an approval and an idempotency key are for all that the agent is told, whatever a
// request comes to have.
func TestAskedIsWhole(t *testing.T) {
	seconds := 5.0
	values := map[string]any{"Agent": "a", "Skill": "s", "Text": "t", "Arguments": jsontext.Value(`{"a":1}`), "Seconds": &seconds, "Context": "c"}
	about := reflect.TypeFor[task.Request]()
	for i := range about.NumField() {
		f := about.Field(i)
		if f.Tag.Get("json") == "-" {
			continue
		}
		var r task.Request
		v := values[f.Name]
		if v == nil {
			t.Errorf("%s is not among the values of this test", f.Name)
			continue
		}
		reflect.ValueOf(&r).Elem().Field(i).Set(reflect.ValueOf(v))
		if string(digestOf(r)) == string(digestOf(task.Request{})) || reflect.DeepEqual(argsOf(r), argsOf(task.Request{})) {
			t.Errorf("%s is not approved", f.Name)
		}
	}
}
