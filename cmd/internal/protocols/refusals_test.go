package protocols

import (
	"maps"
	"slices"
	"testing"

	"agentsite/transport/adapter/adaptertest"

	"github.com/go-json-experiment/json"
)

// TestRefusals: what never becomes a call is refused in its protocol's form: without a token, by a wrong
// verb, at an unknown path.
func TestRefusals(t *testing.T) {
	s := adaptertest.New(t, nil)
	s.Serve(t, Routes(slices.Sorted(maps.Keys(adapters)), &s.Site))
	messages := func(status int) map[string]any { // JSON-RPC
		code := -32600.0
		if status == 401 {
			code = 403
		}
		return map[string]any{"error.code": code, "jsonrpc": "2.0"}
	}
	problem := func(status int) map[string]any { return map[string]any{"status": float64(status)} }
	google := func(status int) map[string]any {
		name := map[int]string{401: "UNAUTHENTICATED", 404: "NOT_FOUND", 405: "UNIMPLEMENTED"}[status]
		return map[string]any{"error.code": float64(status), "error.status": name}
	}
	legacy := func(status int) map[string]any { return map[string]any{"code": float64(status)} }
	for _, tt := range []struct {
		verb, path string
		status     int
		form       func(status int) map[string]any
	}{
		{"POST", "/a2a", 401, messages}, {"GET", "/a2a", 405, messages}, {"PUT", "/a2a/agents/x", 405, messages},
		{"POST", "/a2a/message:send", 401, google}, {"GET", "/a2a/message:send", 405, google}, {"GET", "/a2a/x/y", 404, google},
		{"GET", "/a2a/v1/card", 401, legacy}, {"POST", "/a2a/v1/card", 405, legacy},
		{"POST", "/anp/rpc", 401, messages}, {"GET", "/anp/rpc", 405, messages}, {"GET", "/anp/x", 404, messages},
		{"GET", "/api/points", 401, problem}, {"PUT", "/api/points", 405, problem}, {"GET", "/api/x", 404, problem},
		{"POST", "/agora", 401, problem}, {"GET", "/agora", 405, problem}, {"GET", "/agora/x", 404, problem},
		{"POST", "/aitp/v1/threads", 401, problem}, {"DELETE", "/aitp/v1/threads", 405, problem}, {"GET", "/aitp/x", 404, problem},
		{"GET", "/things", 401, problem}, {"PATCH", "/things/x/properties/y", 405, problem}, {"GET", "/things/x/y/z/a", 404, problem},
	} {
		res, text := s.Ask(t, tt.verb, tt.path, "", "")
		var body map[string]any
		if err := json.Unmarshal([]byte(text), &body); err != nil || res.StatusCode != tt.status {
			t.Errorf("%s %s: %d %s", tt.verb, tt.path, res.StatusCode, text)
			continue
		}
		if inner, ok := body["error"].(map[string]any); ok {
			body["error.code"], body["error.status"] = inner["code"], inner["status"]
		}
		for name, want := range tt.form(tt.status) {
			if body[name] != want {
				t.Errorf("%s %s: %s is %v, want %v: %s", tt.verb, tt.path, name, body[name], want, text)
			}
		}
	}
}
