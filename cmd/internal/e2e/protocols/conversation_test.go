//go:build e2e

package protocols

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentsite/agents/llm/chat"
	"agentsite/agents/llm/chat/chattest"
	"agentsite/cmd/internal/e2e/harness"
)

// TestConversation: a model is told all turns of a conversation, the first too, by clients of others.
func TestConversation(t *testing.T) {
	model := chattest.New(t, chattest.Plain, func(body []byte) chat.Answer {
		var asked struct {
			Messages []struct{ Role, Content string }
		}
		if err := json.Unmarshal(body, &asked); err != nil {
			t.Error(err)
		}
		told := 0
		for _, m := range asked.Messages {
			if m.Role != "user" {
				continue
			}
			if told++; !strings.Contains(m.Content, fmt.Sprint(told)) {
				t.Errorf("turn %d: %q", told, m.Content)
			}
		}
		return chat.Answer{Text: fmt.Sprintf("told %d", told)}
	})
	r := harness.Start(t, fmt.Sprintf(`site: { name: shed }
protocols: [a2a, wot]
wot: { directory: on }
devices: { greenhouse: { driver: sim } }
agents: { gpt: { kind: llm, model: { url: %q, name: test }, may: read greenhouse } }
`, model.Endpoint()), harness.Need(t, "the program", harness.Program))
	t.Log(script(t, time.Minute, "conversation.mjs", r.URL, r.Token))
}
