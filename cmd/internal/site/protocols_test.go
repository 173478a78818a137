package site_test

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"

	"agentsite/agents/llm/chat"
	"agentsite/agents/llm/chat/chattest"
	"agentsite/cmd/internal/sitetest"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
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
