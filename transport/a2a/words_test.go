package a2a_test

import (
	"strings"
	"testing"

	"agentsite/agents/task/tasktest"
	"agentsite/transport/adapter/adaptertest"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
)

// TestWords: the words of a result are a text, alone where the client accepts nothing else.
func TestWords(t *testing.T) {
	s := newSite(t)
	each(t, s, adaptertest.SiteToken, tasktest.Helper.Name, func(t *testing.T, c *a2aclient.Client) {
		for _, tt := range []struct {
			result map[string]any // the result
			modes  []string
			want   string
		}{
			{map[string]any{"text": "it is off", "receipt": 1}, nil, `it is off / data`},
			{map[string]any{"text": "it is off", "receipt": 1}, []string{"text/plain", "application/json"}, `it is off / data`},
			{map[string]any{"text": "it is off", "receipt": 1}, []string{"text/plain"}, `it is off`},
			{map[string]any{"a": 1}, []string{"text/plain"}, `{"a":1}`},
			{map[string]any{"a": 1}, []string{"*/*"}, `data`},
		} {
			r := say(data(map[string]any{"skill": "echo", "arguments": tt.result}))
			r.Config = &sdk.SendMessageConfig{AcceptedOutputModes: tt.modes}
			got, err := c.SendMessage(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			var parts []string
			for _, p := range got.(*sdk.Task).Artifacts[0].Parts {
				if p.Data() != nil {
					parts = append(parts, "data")
				} else {
					parts = append(parts, p.Text())
				}
			}
			if got := strings.Join(parts, " / "); got != tt.want {
				t.Errorf("%v as %v: %s, want %s", tt.result, tt.modes, got, tt.want)
			}
		}
	})
}
