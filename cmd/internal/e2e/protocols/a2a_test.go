//go:build e2e

package protocols

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// TestA2A asks by A2A with the protocol's own clients, and verifies cards by libraries of others.
// Push notifications come to a receiver on this machine.
func TestA2A(t *testing.T) {
	var last sync.Map // of what each path was told
	hooks := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Authorization") != "Bearer secret" || r.Header.Get("X-A2A-Notification-Token") != "own" {
			t.Error(err, r.Header)
		}
		last.Store(r.URL.Path, string(body))
	}))
	defer hooks.Close()
	r := harness.Start(t, `site: { name: zorilla }
http: { push_hosts: ["`+strings.TrimPrefix(hooks.URL, "http://")+`"] }
devices:
  greenhouse: { driver: sim, every: 1s, points: { vent: { min_off: 0s }, heater: { min_off: 0s }, lamp: { min_off: 0s } } }
agents:
  warming: { kind: routine, may: set greenhouse/heater, description: warms, steps: [ { set: { greenhouse/heater: on }, for: 100ms } ] }
  beds: { kind: routine, may: set greenhouse/lamp, steps: [ { ask: "Is the tank full?", options: [yes, no], else: stop }, { set: { greenhouse/lamp: on }, for: 1s } ] }
  flush: { kind: routine, may: set greenhouse/lamp, steps: [ { wait: 10m } ] }
`, harness.Need(t, "the program", harness.Program))
	harness.WaitFor(t, time.Minute, "the routines can be asked", func() bool {
		out, err := r.CLI(t, "call", "ask_agent", "{}")
		return err == nil && strings.Contains(out, "flush")
	})
	t.Log(script(t, 2*time.Minute, "a2a.mjs", r.URL, r.Token, r.DID(t), hooks.URL))
	for path, state := range map[string]string{
		"/1.0/JsonRpcTransportFactory": `{"task":{`, "/1.0/RestTransportFactory": `{"task":{`, "/0.3": `"state":"canceled"`, "/0.3/rest": `"state":"canceled"`,
	} {
		harness.WaitFor(t, time.Minute, "the last notification of "+path, func() bool {
			body, _ := last.Load(path)
			text, _ := body.(string)
			return strings.Contains(text, state) && (strings.Contains(text, "TASK_STATE_CANCELED") || strings.Contains(text, `"kind":"task"`))
		})
	}
}

// a2aBindings are the versions and bindings of A2A: the path of the things, and what a message is.
var a2aBindings = map[string]struct {
	version, path string
	message       func(data, metadata map[string]any) any
}{
	"a2a": {"1.0", "/a2a", func(data, metadata map[string]any) any {
		return inRPC("SendMessage", a2aMessage("ROLE_USER", "parts", map[string]any{"data": data}, metadata))
	}},
	"a2a over HTTP": {"1.0", "/a2a/message:send", func(data, metadata map[string]any) any {
		return a2aMessage("ROLE_USER", "parts", map[string]any{"data": data}, metadata)
	}},
	"a2a 0.3": {"", "/a2a", func(data, metadata map[string]any) any {
		return inRPC("message/send", a2aMessage("user", "parts", map[string]any{"kind": "data", "data": data}, metadata))
	}},
	"a2a 0.3 over HTTP": {"", "/a2a/v1/message:send", func(data, metadata map[string]any) any {
		return a2aMessage("ROLE_USER", "content", map[string]any{"data": map[string]any{"data": data}}, metadata)
	}},
}

func inRPC(method string, params any) any {
	return map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
}

func a2aMessage(role, parts string, part, metadata map[string]any) any {
	return map[string]any{"message": map[string]any{"messageId": rand.Text(), "role": role, parts: []any{part}, "metadata": metadata}}
}

// siteReason finds the kind of a fault among the details of an error.
var siteReason = regexp.MustCompile(`"reason":"([A-Z_]+)","domain":"agentsite"`)

// speakA2A asks the things by one of a2aBindings.
func speakA2A(binding string) func(*testing.T, *site) speaker {
	b := a2aBindings[binding]
	return func(t *testing.T, s *site) speaker {
		return func(ctx context.Context, r request) (string, error) {
			data := map[string]any{"operation": r.op}
			switch r.op {
			case "read":
				data["points"] = []string{r.point}
			case "history":
				data["point"] = r.point
			case "stop":
			case "move":
				data["output"] = r.point
				if !r.value.IsZero() {
					data["value"] = r.value
				}
				if r.length != 0 {
					data["for"] = r.length
				}
			default:
				return "", fmt.Errorf("nobody asks for %s", r.op)
			}
			meta := map[string]any{}
			if r.key != "" {
				meta["agentsite/idempotency-key"] = r.key
			}
			if r.within != 0 {
				meta["agentsite/expires-in"] = r.within
			}
			text, err := json.Marshal(b.message(data, meta))
			if err != nil {
				return "", err
			}
			q, err := http.NewRequestWithContext(ctx, "POST", s.URL+b.path, bytes.NewReader(text))
			if err != nil {
				return "", err
			}
			q.Header.Set("Authorization", "Bearer "+s.token)
			if b.version != "" {
				q.Header.Set("A2A-Version", b.version)
			}
			res, err := http.DefaultClient.Do(q)
			if err != nil {
				return "", err
			}
			defer res.Body.Close()
			answer, err := io.ReadAll(res.Body)
			if err != nil {
				return "", err
			}
			kind := siteReason.FindSubmatch(answer)
			switch {
			case bytes.Contains(answer, []byte(`"state":"TASK_STATE_AUTH_REQUIRED"`)) || bytes.Contains(answer, []byte(`"state":"auth-required"`)):
				return approval, nil
			case kind != nil:
				return strings.ToLower(string(kind[1])), errors.New(string(answer))
			case res.StatusCode >= 300 || bytes.Contains(answer, []byte(`"error":{`)):
				return "", errors.New(string(answer))
			}
			return "", nil
		}
	}
}
