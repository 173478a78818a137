package wot

import (
	"cmp"
	"strings"
	"time"

	"agentsite/agents/task"
	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// chatAction is the action that a client of Eclipse LMOS invokes to talk with an agent
// (ConversationalAgent.chat of lmos-kotlin-sdk): task.TalkSkill in the SDK's words.
const chatAction = "chat"

// chatRequest is AgentRequest of the SDK, as far as it is read.
type chatRequest struct {
	Messages     []chatMessage `json:"messages"`
	Conversation struct {
		ID string `json:"conversationId"`
	} `json:"conversationContext"`
}

// chatMessage is Message of the SDK.
type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	Format  string `json:"format,omitzero"`
}

// chatResult is AgentResult of the SDK.
type chatResult struct {
	Status   string        `json:"status"`
	Seconds  float64       `json:"responseTime"`
	Messages []chatMessage `json:"messages"`
}

// readChat decodes the input of chatAction into a request. In a conversation the last message is new,
// and the site knows those before; without one, all messages are.
func readChat(input jsontext.Value, r *task.Request) error {
	var q chatRequest
	if err := json.Unmarshal(input, &q); err != nil {
		return device.Faultf(device.Invalid, "the input: %w", err)
	}
	if len(q.Messages) == 0 {
		return device.Faultf(device.Invalid, "the input: messages is missing, such as [{\"role\": \"user\", \"content\": \"how warm is it?\"}]")
	}
	r.Context = q.Conversation.ID
	last := len(q.Messages) - 1
	if r.Text = q.Messages[last].Content; r.Context == "" && last > 0 {
		var b strings.Builder
		for _, m := range q.Messages {
			b.WriteString(m.Role + ": " + m.Content + "\n")
		}
		r.Text = b.String()
	}
	return nil
}

// chatOf returns a task as the answer of chatAction. One that was not done is an error.
func chatOf(t task.Task) (any, error) {
	out := chatResult{Status: string(t.State), Seconds: -1}
	says := ""
	switch {
	case t.State == task.Completed:
		words, ok := t.Words()
		if !ok {
			words = string(t.Result)
		}
		says = words
	case t.State.Ended():
		return nil, device.Faultf(cmp.Or(device.FaultKind(t.Fault), device.Unavailable), "the task was %s: %s", t.State, cmp.Or(t.Says, "nobody said why"))
	case t.Question != nil:
		says = t.Question.Text
	default:
		says = "It goes on as task " + t.ID + "."
	}
	begun, err := time.Parse(time.RFC3339, t.Created)
	ended, err2 := time.Parse(time.RFC3339, t.Changed)
	if err == nil && err2 == nil {
		out.Seconds = max(0, ended.Sub(begun).Seconds())
	}
	out.Messages = []chatMessage{{"assistant", says, "text"}}
	return out, nil
}

// chats reports whether an agent has chatAction: it understands words, and has no skill of that name.
func chats(a task.Agent) bool { return hasSkill(a, task.TalkSkill) && !hasSkill(a, chatAction) }

// chatAffordance describes chatAction.
func chatAffordance(href string) *affordance {
	text := map[string]any{"type": "string"}
	list := map[string]any{"type": "array", "items": map[string]any{
		"type": "object", "required": []string{"role", "content"}, "properties": map[string]any{"role": text, "content": text, "format": text},
	}}
	return &affordance{
		schema: schema{Description: "talks with the agent, as clients of Eclipse LMOS do"},
		Input: map[string]any{"type": "object", "required": []string{"messages"}, "properties": map[string]any{
			"messages": list, "conversationContext": map[string]any{"type": "object", "properties": map[string]any{"conversationId": text}},
		}},
		Output:      &schema{Type: "object", Required: []string{"messages"}, Properties: map[string]*schema{"status": {Type: "string"}, "responseTime": {Type: "number", Unit: "s"}, "messages": {Type: "array"}}},
		Synchronous: new(true),
		Forms:       []form{newForm(href, "invokeaction")},
	}
}
