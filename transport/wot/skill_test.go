package wot

import (
	"testing"

	"agentsite/agents/task"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

func TestInputOf(t *testing.T) {
	for in, want := range map[string]string{
		``:                    `{"description":"what is wanted, in words","type":"string"}`,
		`[1]`:                 `{"description":"what is wanted, in words","type":"string"}`,
		`{"type":"object"}`:   `{"type":"object"}`,
		`{"type":["object"]}`: `{}`,
		`{"type":"object","$schema":"x","$defs":{"a":{}},"additionalProperties":false,"properties":{"n":{"type":"integer","minimum":1,"maximum":"2"},"x":true},"required":["n"]}`: `{"properties":{"n":{"minimum":1,"type":"integer"}},"required":["n"],"type":"object"}`,
		`{"type":"array","items":{"enum":["a"],"title":7},"required":["n"]}`:                                                                                                      `{"items":{"enum":["a"]},"type":"array"}`,
		`{"properties":{},"required":[1]}`: `{"properties":{}}`,
	} {
		text, err := json.Marshal(inputOf(jsontext.Value(in)), json.Deterministic(true))
		if err != nil || string(text) != want {
			t.Errorf("%s: %s %v, want %s", in, text, err, want)
		}
	}
}

// FuzzSkillInput: for any input schema of a skill, its description can be encoded, is within the
// depth limit, and has only types of a data schema.
func FuzzSkillInput(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"array","items":{"enum":[1]}}},"required":["a"]}`)
	f.Add(`{"type":["a"],"default":{"x":[]},"const":null}`)
	f.Fuzz(func(t *testing.T, in string) {
		out := inputOf(jsontext.Value(in))
		if _, err := json.Marshal(out); err != nil {
			t.Fatal(err)
		}
		var check func(v any, depth int)
		check = func(v any, depth int) {
			m, _ := v.(map[string]any)
			if depth > maxSchemaDepth {
				t.Fatalf("%s nests too deep", in)
			}
			if kind, there := m["type"]; there {
				if _, ok := kind.(string); !ok {
					t.Fatalf("%s: the type is %v", in, kind)
				}
			}
			properties, _ := m["properties"].(map[string]any)
			for _, p := range properties {
				check(p, depth+1)
			}
			if items, there := m["items"]; there {
				check(items, depth+1)
			}
		}
		check(out, 0)
	})
}

// FuzzSocketMessage: whatever a client sends is a request or an error, and an answer can say to
// which message it is one.
func FuzzSocketMessage(f *testing.F) {
	f.Add(`{"thingId":"t","messageId":"m","messageType":"writeProperty","name":"vent","data":{"a":[1]}}`)
	f.Add(`{"thingID":"t","messageID":"m","correlationID":"c","input":null,"agentsite/via":["a"]}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseRequest([]byte(text))
		if r == nil || err == nil && r.MessageID != "" && r.CorrelationID == "" {
			t.Fatalf("%q: %+v %v", text, r, err)
		}
		if err != nil {
			return
		}
		if value, err := textOf(r.Data.IsZero(), r.Data.JSONText); err != nil || len(value) > len(text) || !r.Data.IsZero() && !value.IsValid() {
			t.Fatalf("%q: %s %v", text, value, err)
		}
		if _, err := json.Marshal(status(r, task.Task{})); err != nil {
			t.Fatal(err)
		}
	})
}
