package adapter_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/transport/adapter"
	"agentsite/transport/adapter/adaptertest"
)

// TestTool: results, and errors as those of operations.
func TestTool(t *testing.T) {
	s := adaptertest.New(t, nil, "pump")
	who, err := s.Node.Bearer(adaptertest.SiteToken, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ tool, args, want string }{
		{"read_points", `{"points":["greenhouse/temperature"]}`, `"greenhouse/temperature"`},
		{"read_points", `{"point":"x"}`, "invalid"},
		{"read_points", strings.Repeat("[", 1000), "invalid"},
		{"read_points", `{`, "invalid"},
		{"no_such", `{}`, "none"},
		{"switch_output", `{"output":"greenhouse/pump","on":true}`, "approval"},
		{"switch_output", `{"output":"greenhouse/valve","on":1}`, "invalid"},
	} {
		v, err := s.Tool(t.Context(), who, c.tool, []byte(c.args), agents.Terms{})
		got, _ := json.Marshal(v)
		var none adapter.ErrNotFound
		var needs *agents.ApprovalNeeded
		switch {
		case errors.As(err, &none):
			got = []byte("none")
		case errors.As(err, &needs) && needs.State != "" && needs.Says != "":
			got = []byte("approval")
		case err != nil:
			got = []byte(device.AsFault(err).Kind)
		}
		if !strings.Contains(string(got), c.want) {
			t.Errorf("%s %.60s: %s %v, want %s", c.tool, c.args, got, err, c.want)
		}
	}
}
