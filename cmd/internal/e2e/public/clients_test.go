//go:build e2e

package public

import (
	"bufio"
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/e2e/harness/npm"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// opensNothing has programs open URLs with true(1): the test is their user's browser.
const opensNothing = "BROWSER=true"

// byInspector: the MCP Inspector's command line signs in, lists and calls. A call that it may not make asks the owner, and
// succeeds once that is allowed, and it signs in again after its end. Each command is a process of its own, which has
// what the one before kept.
func (p *place) byInspector(t *testing.T, device string) {
	t.Helper()
	kept, client := harness.TempDir(t), []string(nil)
	try := func(may string, args ...string) (said string, consents int, err error) {
		t.Helper()
		args = slices.Concat([]string{"--cli", p.url, "--transport", "http", "--protocol-era", "modern"}, client, args)
		cmd := p.node(t, npm.Path(npm.Inspector), args...)
		cmd.Env = append(cmd.Env, "HOME="+kept, "MCP_STORAGE_DIR="+kept, "MCP_INSPECTOR_SECRET_STORE=file",
			"MCP_AUTO_OPEN_ENABLED=true", opensNothing)
		cmd.Stdin = strings.NewReader("y\n") // to the question whether to ask for more
		return p.run(t, cmd, may)
	}
	inspect := func(may string, consents int, args ...string) string {
		t.Helper()
		said, asked, err := try(may, args...)
		if err != nil || asked != consents {
			t.Fatalf("%q: %v, %d consents\n%s\n%s", args, err, asked, said, p.Log)
		}
		return said
	}
	call := func(tool, args string) []string {
		return []string{"--method", "tools/call", "--tool-name", tool, "--tool-args-json", args}
	}
	read := call("read_points", `{"points":["`+device+`/relay"]}`)
	said := inspect("read *", 1, "--method", "tools/list")
	if !strings.Contains(said, `"read_points"`) || !strings.Contains(said, `"switch_output"`) {
		t.Error(said)
	}
	if said := inspect("", 0, read...); !strings.Contains(said, device+"/relay") {
		t.Error(said)
	}
	turnOn := call("switch_output", `{"output":"`+device+`/relay","on":true,"for_seconds":1}`)
	if said, asked, err := try("", turnOn...); err == nil || asked > 0 {
		t.Fatalf("%v, %d consents\n%s", err, asked, said)
	}
	p.widen(t)
	if said := inspect("", 0, turnOn...); !strings.Contains(said, harness.MovedField) {
		t.Error(said)
	}
	p.owner(t, "revoke", "mcp-inspector")
	inspect("read *", 1, read...)

	// It signs in for more only with a client_id that it is given.
	kept = harness.TempDir(t)
	client = []string{"--client-id", p.register(t, "Registered", "http://127.0.0.1:6276/oauth/callback")}
	inspect("read *", 1, read...)
	if said := inspect("read *, set "+device+" max 10s", 1, turnOn...); !strings.Contains(said, harness.MovedField) {
		t.Error(said)
	}
	p.owner(t, "revoke", "registered")
}

// byAISDK: a client by the AI SDK, of programs in TypeScript and JavaScript, signs in, lists and calls, refreshes, and
// signs in again after its end. It asks for no more: it reads that it was refused.
func (p *place) byAISDK(t *testing.T, device string) {
	t.Helper()
	c := p.client(t, "ai")
	c.must(t, "connect", "read *", 1)
	if listed, ok, _ := c.do(t, "list", ""); !ok || !strings.Contains(listed, `"read_points"`) {
		t.Error(listed)
	}
	read := `call read_points {"points":["` + device + `/relay"]}`
	if v := c.must(t, read, "", 0); v["isError"] == true {
		t.Error(v)
	}
	before := c.must(t, "tokens", "", 0)
	c.must(t, "break", "", 0)
	c.must(t, read, "", 0)
	if after := c.must(t, "tokens", "", 0); after["refresh_token"] == before["refresh_token"] {
		t.Error("it did not refresh")
	}
	turnOn := `call switch_output {"output":"` + device + `/relay","on":true,"for_seconds":1}`
	if answer, ok, consents := c.do(t, turnOn, ""); ok || consents != 0 || !strings.Contains(answer, "set "+device) {
		t.Errorf("a refusal: %s, %d consents", answer, consents)
	}
	p.owner(t, "token", "change", "sdk-ai", "read *, set "+device+" max 10s")
	if answer, ok, _ := c.do(t, turnOn, ""); !ok || !strings.Contains(answer, harness.MovedField) {
		t.Error(answer)
	}
	p.owner(t, "revoke", "sdk-ai")
	if v := c.must(t, read, "read *", 1); v["isError"] == true {
		t.Error(v)
	}
}

// byRemote: by mcp-remote, which programs start that know local servers alone, a client signs in, lists and calls, asks
// for more when it needs more, and signs in again after its end, in one session.
func (p *place) byRemote(t *testing.T, device string) {
	t.Helper()
	kept := harness.TempDir(t)
	cmd := p.node(t, npm.Path(npm.Remote), p.url)
	cmd.Env = append(cmd.Env, "HOME="+kept, "MCP_REMOTE_CONFIG_DIR="+kept, opensNothing)
	pipe := func(r io.ReadCloser, err error) io.ReadCloser {
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	out, errors := pipe(cmd.StdoutPipe()), bufio.NewReader(pipe(cmd.StderrPipe()))
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Process.Kill(); cmd.Wait() })

	said, _ := p.attended(t, errors, "read *", 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
	s, err := client.Connect(ctx, &mcp.IOTransport{Reader: out, Writer: in}, nil)
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, said, p.Log)
	}
	defer s.Close()
	listed, err := s.ListTools(ctx, nil)
	if err != nil || !hasTool(listed, "read_points") || !hasTool(listed, "switch_output") {
		t.Errorf("%v %+v", err, listed)
	}
	// call calls a tool, and signs in with a permission where one is given.
	call := func(tool string, args map[string]any, may string) {
		t.Helper()
		var res *mcp.CallToolResult
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			res, err = s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
		}()
		if may != "" {
			more, _ := p.attended(t, errors, may, 1)
			said += more
		}
		<-done
		if err != nil || res.IsError {
			t.Fatalf("%s: %v %+v\n%s\n%s", tool, err, res, said, p.Log)
		}
	}
	read := map[string]any{"points": []string{device + "/relay"}}
	call("read_points", read, "")
	turnOn := map[string]any{"output": device + "/relay", "on": true, "for_seconds": 1}
	call("switch_output", turnOn, "read *, set "+device+" max 10s")
	p.owner(t, "revoke", "mcp-cli-proxy")
	call("read_points", read, "read *")
}
