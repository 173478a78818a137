package site_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"agentsite/agents/llm/chat"
	"agentsite/agents/llm/chat/chattest"
	"agentsite/cmd/internal/sitetest"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const talkConfig = `site: { name: house }
http: { https: none }
protocols: [a2a, wot]
devices: { climate: { driver: sim, model: climate, every: 1s } }
agents: { gpt: { kind: llm, model: { url: %q, name: test }, may: read climate } }
`

// startTalk starts a site with a language model, which answers with the number of the asker's messages.
func startTalk(t *testing.T) (*sitetest.Site, *http.Client) {
	model := chattest.New(t, chattest.Plain, func(body []byte) chat.Answer {
		return chat.Answer{Text: fmt.Sprintf("turn %d", bytes.Count(body, []byte(`"role":"user"`)))}
	})
	s := sitetest.Start(t, fmt.Sprintf(talkConfig, model.Endpoint()))
	with := &http.Client{Transport: withToken{s.Token, &http.Transport{DisableKeepAlives: true}}}
	return s, with
}

// withToken sends a token with each request.
type withToken struct {
	token string
	http.RoundTripper
}

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.token)
	return w.RoundTripper.RoundTrip(r)
}

// TestConversation: a client of the A2A library for Go begins without a context, goes on in that which
// the site returns, and each turn knows those before. The answers are texts.
func TestConversation(t *testing.T) {
	s, with := startTalk(t)
	card, err := agentcard.NewResolver(with).Resolve(t.Context(), s.URL+"/a2a/agents/gpt")
	if err != nil {
		t.Fatal(err)
	}
	for _, binding := range []sdk.TransportProtocol{sdk.TransportProtocolJSONRPC, sdk.TransportProtocolHTTPJSON} {
		c, err := a2aclient.NewFromCard(t.Context(), card, a2aclient.WithJSONRPCTransport(with), a2aclient.WithRESTTransport(with),
			a2aclient.WithConfig(a2aclient.Config{PreferredTransports: []sdk.TransportProtocol{binding}}))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Destroy()
		conversation := ""
		for turn := 1; turn <= 3; turn++ {
			m := sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart("and now?"))
			m.ContextID = conversation
			got, err := c.SendMessage(t.Context(), &sdk.SendMessageRequest{Message: m})
			if err != nil {
				t.Fatal(err)
			}
			of := got.(*sdk.Task)
			if of.Status.State != sdk.TaskStateCompleted || of.Artifacts[0].Parts[0].Text() != fmt.Sprintf("turn %d", turn) || conversation != "" && of.ContextID != conversation {
				t.Errorf("%s, turn %d in %q: %s in %q: %v", binding, turn, conversation, of.Status.State, of.ContextID, of.Artifacts[0].Parts[0])
			}
			conversation = of.ContextID
		}
	}
}

// TestChat: what the Kotlin SDK of Eclipse LMOS sends as an AgentRequest is answered with its AgentResult, over
// HTTP by the form of the description and by the WebSocket. A conversation goes on by its conversationId.
func TestChat(t *testing.T) {
	s, with := startTalk(t)
	ask := func(path, body string) (status int, answer string) {
		t.Helper()
		method := http.MethodGet
		if body != "" {
			method = http.MethodPost
		}
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		res, err := with.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(text)
	}
	var thing struct {
		ID      string
		Actions map[string]struct{ Forms []struct{ Href string } }
	}
	if _, text := ask("/things/agent:gpt", ""); json.Unmarshal([]byte(text), &thing, json.MatchCaseInsensitiveNames(true)) != nil || len(thing.Actions["chat"].Forms) == 0 {
		t.Fatal(text)
	}
	request := func(conversation string) string {
		context := "null"
		if conversation != "" {
			context = fmt.Sprintf(`{"conversationId":%q,"turnId":"1","anonymizationEntities":null}`, conversation)
		}
		return `{"messages":[{"role":"user","content":"how warm is it?","format":"text","turnId":"1","binaryData":null}],` +
			`"conversationContext":` + context + `,"systemContext":null,"userContext":{"userId":"ann","userToken":null,"profile":[]}}`
	}
	type result struct {
		Messages []struct{ Role, Content, Format string }
	}
	says := func(text []byte) string {
		var r result
		if err := json.Unmarshal(text, &r, json.MatchCaseInsensitiveNames(true)); err != nil || len(r.Messages) != 1 || r.Messages[0].Role != "assistant" || r.Messages[0].Format != "text" {
			return string(text)
		}
		return r.Messages[0].Content
	}
	for _, tt := range []struct{ conversation, want string }{{"", "turn 1"}, {"c1", "turn 1"}, {"c1", "turn 2"}, {"c1", "turn 3"}, {"c2", "turn 1"}} {
		if status, text := ask("/"+thing.Actions["chat"].Forms[0].Href, request(tt.conversation)); status != 200 || says([]byte(text)) != tt.want {
			t.Errorf("in %q: %d %s, want %s", tt.conversation, status, text, tt.want)
		}
	}
	if status, text := ask("/"+thing.Actions["chat"].Forms[0].Href, `{"messages":[]}`); status != 400 {
		t.Error(status, text)
	}

	conn, _, err := websocket.Dial(t.Context(), s.URL+"/lmosprotocol", &websocket.DialOptions{HTTPClient: with, Subprotocols: []string{"lmosprotocol"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	if err := conn.Write(t.Context(), websocket.MessageText, fmt.Appendf(nil, `{"thingId":%q,"messageId":"m1","messageType":"invokeAction","action":"chat","input":%s}`, thing.ID, request("c1"))); err != nil {
		t.Fatal(err)
	}
	for {
		_, text, err := conn.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var m struct {
			Status string
			Output jsontext.Value
		}
		if err := json.Unmarshal(text, &m, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatal(err)
		}
		if m.Status == "pending" {
			continue
		}
		if m.Status != "completed" || says(m.Output) != "turn 4" {
			t.Errorf("%s", text)
		}
		break
	}
}
