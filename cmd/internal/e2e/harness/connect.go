//go:build e2e

package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ConnectedSites are the sites of one person, some of which their agent may use through
// agentsite connect.
type ConnectedSites struct {
	Person
	Addresses map[string]string // where sites listen on HTTPS
	Sites     map[string]*Site
}

// StartConnectedSites starts a site for each name. One person claims all but the last, and
// permits the assistant to use them.
func StartConnectedSites(t *testing.T, names ...string) *ConnectedSites {
	t.Helper()
	h := &ConnectedSites{NewPerson(t), make(map[string]string), make(map[string]*Site)}
	for i, name := range names {
		h.Addresses[name] = "127.0.0.1:" + FreePort(t) // which is the site's after a restart, too
		h.Sites[name] = StartHTTPSAt(t, TempDir(t), h.Addresses[name], "  "+name+": { driver: sim, model: climate }")
		who := h.Person
		if i == len(names)-1 {
			who = NewPerson(t)
		}
		who.MustCLI(t, "claim", h.Sites[name].Invitation(t).String(), "--name", name)
	}
	h.MustCLI(t, "agents", "allow")
	return h
}

// Restart starts a site again, with its old data folder and address.
func (h *ConnectedSites) Restart(t *testing.T, name string) {
	t.Helper()
	h.Sites[name] = StartHTTPSAt(t, h.Sites[name].Folder, h.Addresses[name], "  "+name+": { driver: sim, model: climate }")
}

// Command returns agentsite connect, as an MCP client starts it.
func (h *ConnectedSites) Command(t *testing.T, env ...string) *exec.Cmd {
	cmd := exec.Command(Need(t, "the program", Program), "connect")
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+h.Folder, "XDG_STATE_HOME="+TempDir(t))
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// SDKClient is a client of the official Go SDK, and the notifications that it received.
type SDKClient struct {
	*mcp.ClientSession
	Process         *exec.Cmd
	ToolsChanged    chan struct{} // the tools
	ResourceUpdated chan string   // resources
}

// Connect starts agentsite connect and opens a session of an MCP revision.
func (h *ConnectedSites) Connect(t *testing.T, revision string) *SDKClient {
	return ConnectSDK(t, h.Command(t), revision)
}

// ConnectSDK starts a command that speaks MCP on its standard input and output, and opens a
// session of an MCP revision.
func ConnectSDK(t *testing.T, connect *exec.Cmd, revision string) *SDKClient {
	t.Helper()
	m := &SDKClient{Process: connect, ToolsChanged: make(chan struct{}, 100), ResourceUpdated: make(chan string, 100)}
	c := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { m.ToolsChanged <- struct{}{} },
		ResourceUpdatedHandler:     func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { m.ResourceUpdated <- r.Params.URI },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) {},
	})
	s, err := c.Connect(t.Context(), &mcp.CommandTransport{Command: m.Process}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	m.ClientSession = s
	t.Cleanup(func() { s.Close() })
	return m
}

// Call calls a tool, and returns its structured result, or the text of its error.
func (m *SDKClient) Call(t *testing.T, tool string, args map[string]any) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	res, err := m.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args, Meta: mcp.Meta{"agentsite/idempotency-key": fmt.Sprint(tool, args)}})
	if err != nil {
		return err.Error()
	}
	if res.IsError {
		return res.Content[0].(*mcp.TextContent).Text
	}
	text, err := json.Marshal(res.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// ArgumentEnum returns the JSON schema of a tool's argument, or "" where there is no such tool.
func (m *SDKClient) ArgumentEnum(t *testing.T, tool, arg string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	list, err := m.ListTools(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, have := range list.Tools {
		if have.Name == tool {
			text, err := json.Marshal(have.InputSchema.(map[string]any)["properties"].(map[string]any)[arg])
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
	}
	return ""
}

// WaitForChange waits for a notification, and fails the test after most.
func (m *SDKClient) WaitForChange(t *testing.T, most time.Duration, what string, of <-chan struct{}) {
	t.Helper()
	select {
	case <-of:
	case <-time.After(most):
		t.Errorf("after %v there was no %s", most, what)
	}
}
