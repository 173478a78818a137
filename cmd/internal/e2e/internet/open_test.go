//go:build e2e && linux

package internet

import (
	"context"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/discovery/bed"
)

// TestOpenRelayed: the page of all sites has one that is reached through a relay, with its values, and stops
// it within a second.
func TestOpenRelayed(t *testing.T) {
	t.Parallel()
	w := newWay(t, "relayed")
	harness.WaitFor(t, time.Minute, "the site is reached", func() bool {
		_, err := w.ann.CLI(t, w.peer, "ping", "-c1")
		return err == nil
	})
	w.ann.MustCLI(t, "claim", w.site.Invitation(t).String())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	open, screen := w.ann.Command(ctx, "open", "--no-browser", "--data", harness.TempDir(t)), &harness.LogBuffer{}
	open.Stdout, open.Stderr = screen, screen
	in, err := open.StdinPipe() // until the test ends
	if err == nil {
		err = open.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); cancel(); open.Wait() }()
	var link []string
	harness.WaitFor(t, 30*time.Second, "it prints a link", func() bool {
		link = regexp.MustCompile(`http://[^:]+:(\d+)/#k=(\S+)`).FindStringSubmatch(screen.String())
		return link != nil
	})
	post := func(path, token, method, tool, body string) string {
		t.Helper()
		argv := bed.On(w.ann.Host, "curl", "-sS", "-N", "--max-time", "10", "http://127.0.0.1:"+link[1]+path, "-d", body,
			"-H", "Content-Type: application/json", "-H", "Accept: application/json, text/event-stream", "-H", "Authorization: Bearer "+token,
			"-H", "Mcp-Protocol-Version: 2026-07-28", "-H", "Mcp-Method: "+method, "-H", "Mcp-Name: "+tool)
		says, err := exec.Command(argv[0], argv[1:]...).Output()
		if err != nil && method != "subscriptions/listen" {
			t.Fatal(path, method, err)
		}
		return string(says)
	}
	token := regexp.MustCompile(`"token":"(\w+)"`).FindStringSubmatch(post("/page/session", "", "", "", `{"key":"`+link[2]+`"}`))
	if token == nil {
		t.Fatal("no session")
	}
	const site = "/at/shed/mcp"
	harness.WaitFor(t, 30*time.Second, "the site answers", func() bool {
		return strings.Contains(post(site, token[1], "tools/call", "site_status", harness.ToolCall("site_status", "{}")), "uptime_seconds")
	})
	values := post(site, token[1], "subscriptions/listen", "", `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"_meta":{
		"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"agentsite/values":0.5},"notifications":{}}}`)
	if !strings.Contains(values, `"io.modelcontextprotocol/subscriptionId":7`) || !strings.Contains(values, "lamp/relay") {
		t.Errorf("the values: %s", values)
	}
	began := time.Now()
	says := post(site, token[1], "tools/call", "emergency_stop", harness.ToolCall("emergency_stop", "{}"))
	took := time.Since(began)
	if t.Logf("the stop took %v", took); took > time.Second || !strings.Contains(says, "lamp/relay") {
		t.Errorf("after %v: %s", took, says)
	}
	if paths := w.ann.Ping(t, 1, w.peer); paths[0] != "relayed" {
		t.Errorf("the way is %q", paths)
	}
}
