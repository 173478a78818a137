package llm

import (
	"bytes"
	"strings"
	"testing"

	"agentsite/agents"
	"agentsite/agents/llm/chat"
	"agentsite/agents/llm/chat/chattest"
	"agentsite/agents/tools"

	"github.com/go-json-experiment/json/jsontext"
)

// TestCheck: a check tells a model that is fit from one that always acts, and a server that cuts the
// beginning of what is too long from one that does not.
func TestCheck(t *testing.T) {
	if lampTools[0].Name != agents.OpRead.Tool() || lampTools[1].Name != tools.SwitchOutput {
		t.Error("a site's tools have other names")
	}
	for name, tt := range map[string]struct {
		eager, forgets bool
		want           string
	}{
		"fit":     {false, false, "server context looks acts restraint restraint"},
		"eager":   {true, false, "server context looks acts !restraint !restraint"},
		"forgets": {false, true, "server !context looks acts restraint restraint"},
	} {
		t.Run(name, func(t *testing.T) {
			s := chattest.New(t, chattest.Plain, func(body []byte) (a chat.Answer) {
				_, asked, _ := bytes.Cut(body, []byte(`"role":"user"`))
				said := string(asked)
				switch {
				case strings.Contains(said, "How warm") || !tt.eager && strings.Contains(said, "Is the lamp"):
					a.Calls = []chat.Call{{ID: "1", Name: "read_points", Arguments: jsontext.Value("{}")}}
				case strings.Contains(said, "Switch the lamp") || tt.eager && strings.Contains(said, "lamp/relay"):
					a.Calls = []chat.Call{{ID: "1", Name: "switch_output", Arguments: jsontext.Value(`{"output":"lamp/relay","on":true}`)}}
				case strings.Contains(said, "Remember this word: "):
					_, word, _ := strings.Cut(said, "Remember this word: ")
					if a.Text = word[:8]; tt.forgets {
						a.Text = "tomatoes"
					}
				default:
					a.Text = "Hello"
				}
				return a
			})
			a := New(&World{})
			a.Model = Model{URL: s.Endpoint(), Name: "m"}
			if _, err := a.Define(); err != nil {
				t.Fatal(err)
			}
			defer a.model.(*chat.Endpoint).CloseIdle()
			var got []string
			if err := a.Check(t.Context(), func(f Finding) {
				word := f.Check
				if !f.OK {
					word = "!" + word
				}
				got = append(got, word)
			}); err != nil || strings.Join(got, " ") != tt.want {
				t.Errorf("%v %v, want %s", got, err, tt.want)
			}
			s.Close()
			got = nil
			if a.Check(t.Context(), func(f Finding) { got = append(got, f.Check) }); len(got) != 1 {
				t.Errorf("without a server: %v", got)
			}
		})
	}
}
