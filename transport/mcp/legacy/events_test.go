package legacy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"agentsite/agents/event/eventtest"
	"agentsite/transport/mcp/events"
	"agentsite/transport/rpc"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestEvents: a client that initializes sees the capability in both places, and polls.
func TestEvents(t *testing.T) {
	s, _ := newServer(t, newFake())
	source := eventtest.New()
	s.Events = &events.Server{Source: source}
	source.Add("room/lamp")
	url := listen(t, s)

	c := newClient(nil)
	type params struct {
		sdk.ParamsBase
		Name      string         `json:"name,omitempty"`
		Arguments map[string]any `json:"arguments,omitempty"`
		Cursor    *string        `json:"cursor"`
	}
	type polled struct {
		sdk.ResultBase
		Events []struct {
			ID   string         `json:"eventId"`
			Data map[string]any `json:"data"`
		} `json:"events"`
		Cursor *string `json:"cursor"`
		Next   int     `json:"nextPollMs"`
	}
	if err := sdk.AddSendingCustomMethod[*params, *polled](c, "events/poll"); err != nil {
		t.Fatal(err)
	}
	session, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: url, HTTPClient: as("agent"), DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if _, ok := session.InitializeResult().Capabilities.Extensions[events.Extension]; !ok {
		t.Errorf("%+v", session.InitializeResult().Capabilities)
	}
	ask := func(p *params) (*polled, error) {
		return sdk.CallCustomMethod[*params, *polled](t.Context(), session, "events/poll", p)
	}
	zero := "0"
	got, err := ask(&params{Name: eventtest.Name, Arguments: map[string]any{"point": "room/lamp"}, Cursor: &zero})
	if err != nil || len(
		got.Events,
	) != 1 || got.Events[0].ID != "e1" || got.Events[0].Data["value"] != 1. || got.Cursor == nil || got.Next != 5000 {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = ask(&params{Name: eventtest.Name, Arguments: map[string]any{"point": "room/lamp"}})
	if err != nil || len(got.Events) != 0 || got.Cursor == nil {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = ask(&params{Name: "no.such", Arguments: map[string]any{"point": "a/b"}})
	if wire, ok := asWire(err); !ok || wire.Code != -32011 || string(wire.Data) != `{"kind":"event"}` {
		t.Errorf("%v", err)
	}
	if _, err = ask(&params{Name: eventtest.Name}); !hasCode(err, -32602) {
		t.Error(err)
	}

	// The draft's place of the capability is outside of the SDK's type.
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize",`+
		`"params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`, rpc.Handshakes[0])))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	res, err := as("agent").Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	_, data, _ := strings.Cut(string(text), "data: ")
	var answer struct {
		Result struct {
			Version      string                     `json:"protocolVersion"`
			Capabilities map[string]json.RawMessage `json:"capabilities"`
		} `json:"result"`
	}
	if err != nil || json.Unmarshal(
		[]byte(data), &answer,
	) != nil || string(answer.Result.Capabilities["events"]) != "{}" ||
		answer.Result.Version != rpc.Handshakes[0] || answer.Result.Capabilities["tools"] == nil {
		t.Errorf("%s, %v", text, err)
	}
}
