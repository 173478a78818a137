package metrics

import (
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentsite/device/guard"
	"agentsite/node"
	"agentsite/node/history"
	"agentsite/transport/rpc"
	"agentsite/transport/web"
)

// stoppedGuard returns a guard without outputs whose emergency stop is latched.
func stoppedGuard(t *testing.T) *guard.Guard {
	t.Helper()
	g, err := guard.New(nil, guard.Latch{File: filepath.Join(t.TempDir(), "armed")})
	if err != nil || !g.Stopped() {
		t.Fatalf("stopped: %v, %v", g.Stopped(), err)
	}
	return g
}

func TestMetrics(t *testing.T) {
	w := httptest.NewRecorder()
	hub := node.NewHub(nil, history.New(nil), func(address string) string { return address })
	route := Route(node.New(node.Parts{Hub: hub}), hub, stoppedGuard(t), `1.0 "x"`)
	route.Serve(w, httptest.NewRequest("GET", "/metrics", nil), web.Caller{Sender: rpc.Sender{Who: node.LocalOwner}})
	if got := w.Header().Get("Content-Type"); got != "text/plain; version=0.0.4; charset=utf-8" {
		t.Error(got)
	}
	help := regexp.MustCompile(`^# HELP ([a-z_]+) [A-Z0-9].*\.$`)
	kind := regexp.MustCompile(`^# TYPE ([a-z_]+) (gauge|counter)$`)
	sample := regexp.MustCompile(`^([a-z_]+)(\{[a-z]+="(?:[^"\\\n]|\\["\\n])*"\})? ([0-9.e+]+)$`)
	var lines []string
	for line := range strings.Lines(w.Body.String()) {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	if len(lines) != 3*6 || !strings.HasSuffix(w.Body.String(), "\n") {
		t.Fatalf("%d lines:\n%s", len(lines), w.Body)
	}
	values := map[string]string{}
	for trio := range slices.Chunk(lines, 3) {
		h, k, s := help.FindStringSubmatch(trio[0]), kind.FindStringSubmatch(trio[1]), sample.FindStringSubmatch(trio[2])
		if h == nil || k == nil || s == nil || h[1] != k[1] || k[1] != s[1] || values[s[1]] != "" {
			t.Errorf("not the text format:\n%s", strings.Join(trio, "\n"))
			continue
		}
		if (k[2] == "counter") != strings.HasSuffix(k[1], "_total") {
			t.Errorf("%s is a %s", k[1], k[2])
		}
		values[s[1]] = s[2] + s[3]
	}
	for name, want := range map[string]string{
		"agentsite_info": `{version="1.0 \"x\""}1`, "agentsite_readings_total": "0", "agentsite_watchers": "0", "agentsite_emergency_stop": "1", "agentsite_outputs_away_from_safe": "0",
	} {
		if values[name] != want {
			t.Errorf("%s is %s, want %s", name, values[name], want)
		}
	}
}
