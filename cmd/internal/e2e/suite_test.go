//go:build conformance

package e2e

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"agentsite/agents/conformance"
	"agentsite/device"
	"agentsite/node"
	httpcarrier "agentsite/transport/http"
	"agentsite/transport/mcp"
	"agentsite/transport/mcp/legacy"
	"agentsite/transport/rpc"
)

type forgetful struct{}

func (forgetful) Record(device.Reading) {}

// serve runs the fixtures behind the handlers that a site has, with a token.
func serve(t *testing.T, token string) (backend string) {
	hub := node.NewHub(forgetful{}, func(address string) string { return address })
	fixtures := conformance.New(hub.Announce)
	door := node.New(hub, token, fixtures)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	methods := mcp.New(door, mcp.Implementation{Name: "suite", Version: "1"}, "", t.Context().Done()).Methods()
	older := legacy.New(door, "suite", "1", "")
	h := httpcarrier.Handler(httpcarrier.Options{
		Hosts:      []string{ln.Addr().String()},
		Dispatcher: rpc.NewDispatcher(methods),
		Admit:      func(e rpc.Evidence) error { _, err := door.Who(node.Evidence(e)); return err },
		Legacy: func(w http.ResponseWriter, r *http.Request, e rpc.Evidence) {
			older.ServeHTTP(w, r, node.Evidence(e))
		},
	})
	go fixtures.Run(t.Context())
	go httpcarrier.Serve(t.Context(), ln, h)
	t.Cleanup(older.Close)
	return "http://" + ln.Addr().String()
}

// TestSuite runs the public conformance suite. CONFORMANCE is the command that it
// is started with: node …/conformance/dist/index.js.
func TestSuite(t *testing.T) {
	command := strings.Fields(os.Getenv("CONFORMANCE"))
	if len(command) == 0 {
		t.Skip("CONFORMANCE does not say where the suite is")
	}
	const token = "for-the-suite"
	url := Proxy(t, serve(t, token), token) + "/mcp"
	for _, set := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(set, func(t *testing.T) {
			args := append(command[1:], "server", "--url", url, "--requirements", set)
			out, err := exec.CommandContext(t.Context(), command[0], args...).CombinedOutput()
			t.Logf("%s", out)
			if err != nil {
				t.Error(err)
			}
		})
	}
}
