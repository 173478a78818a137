package legacy

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// misread are messages that older clients send, or would, and that the SDK takes for
// something else; and what they are answered with.
var misread = map[string]string{
	`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`:                                              `"id":9007199254740993,`,
	`{"jsonrpc":"2.0","id":-9007199254740993,"method":"ping"}`:                                             `"id":-9007199254740993,`,
	`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`:                                                           `"id":1.5,`,
	`{"jsonrpc":"2.0","id":1e3,"method":"ping"}`:                                                           `"id":1e3,`,
	`{"jsonrpc":"2.0","id":null,"method":"ping"}`:                                                          `"id":null,`,
	`{"jsonrpc":"2.0","id":{},"method":"ping"}`:                                                            `"id":null,`,
	`{"jsonrpc":"2.0","id":1}`:                                                                             `"id":1,`,
	`{"jsonrpc":"2.0","id":1,"method":""}`:                                                                 `"id":1,`,
	`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}`:                                `"id":1,`,
	`{"jsonrpc":"2.0"}`:                                                                                    `"id":null,`,
	`{"jsonrpc":"1.0","id":1,"method":"ping"}`:                                                             `"id":1,`,
	`{"id":1,"method":"ping"}`:                                                                             `"id":1,`,
	`{"jsonrpc":"2.0","id":1,"method":7}`:                                                                  `"code":-32600`,
	`{"jsonrpc":"2.0","id":1,"method":"ping"} x`:                                                           `"code":-32700`,
	`{"jsonrpc":"2.0","id":1,"method":"ping"}{}`:                                                           `"code":-32700`,
	`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`:                                                      `"code":-32700`,
	"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}":                                            `"code":-32700`,
	`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":1.5,"method":"ping"}]`:                `"id":1.5,`,
	`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9007199254740993}}`:         `"id":null,`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","_meta":{"progressToken":1.5}}}`: `"id":1,`,
	`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add","arguments":{},"_meta":{"progressToken":9007199254740993}}}`: `"id":2,`,
}

// exact are messages that are understood as they are.
var exact = []string{
	`{"jsonrpc":"2.0","id":9007199254740992,"method":"ping"}`, `{"jsonrpc":"2.0","id":-9007199254740992,"method":"ping"}`, `{"jsonrpc":"2.0","id":"9007199254740993","method":"ping"}`,
	` {"jsonrpc":"2.0","id":0,"method":"ping","params":{"_meta":{"progressToken":"x"}}} `, `{"jsonrpc":"2.0","id":"","method":"ping"}`,
}

// TestStreamInspected: a refused message ends no session, and the next message is served.
func TestStreamInspected(t *testing.T) {
	s, _ := newServer(t, newFake())
	c := overRaw(t, s)
	for line, says := range misread {
		c.say(line)
		c.hear(`"error":`, says)
	}
	for _, line := range exact {
		c.say(line)
		c.hear(`"result":{}`)
	}
	c.say(`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"about nothing"}}`)
	c.say("")
	c.say(`{"jsonrpc":"2.0","id":"end","method":"ping"}`)
	c.hear(`"end"`)
}

// TestHTTPInspected: every body is held to the same, that which begins a session too.
func TestHTTPInspected(t *testing.T) {
	s, _ := newServer(t, newFake())
	url := listen(t, s)
	post := func(body string) (int, string) {
		req, err := http.NewRequest("POST", url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		res, err := as("").Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(answer)
	}
	const initialize = `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"c","version":"1"},"capabilities":{}}}`
	if code, answer := post(initialize); code != http.StatusOK || !strings.Contains(answer, `"result"`) {
		t.Fatal(code, answer)
	}
	misread[initialize+" x"] = `"code":-32700`
	misread[strings.Replace(initialize, `"i"`, "9007199254740993", 1)] = `"id":9007199254740993,`
	for body, says := range misread {
		if code, answer := post(body); code != http.StatusBadRequest || !strings.Contains(answer, says) {
			t.Errorf("%s: %d %s", body, code, answer)
		}
	}
}
