//go:build e2e

package harness

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/transport/mcp/client"
	"agentsite/transport/rpc"
	"agentsite/transport/web"
)

// Person is somebody on another machine, with a key and a configuration folder.
type Person struct{ Folder string }

// NewPerson returns a person with an empty configuration folder.
func NewPerson(t testing.TB) Person { return Person{TempDir(t)} }

// CLI runs agentsite with these arguments and the person's configuration, and returns its
// output.
func (p Person) CLI(t testing.TB, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, Need(t, "the program", Program), args...)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+p.Folder)
	return output(cmd)
}

// output runs a command. Its error has what the command says.
func output(cmd *exec.Cmd) (string, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.String())
	}
	return string(out), err
}

// MustCLI is CLI, and fails the test where the command fails.
func (p Person) MustCLI(t testing.TB, args ...string) string {
	t.Helper()
	out, err := p.CLI(t, args...)
	if err != nil {
		t.Fatal(args, err)
	}
	return out
}

// Key returns the person's key.
func (p Person) Key(t testing.TB) identity.Key {
	t.Helper()
	p.MustCLI(t, "identity", "--card", "-")
	text, err := os.ReadFile(filepath.Join(p.Folder, "agentsite", "owner", "key"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := identity.ParsePEM(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// DialAs connects over HTTPS to the site of an invitation, and authenticates with key.
func DialAs(t testing.TB, key identity.Key, i access.Invitation) *client.Client {
	t.Helper()
	secured, err := web.ClientTLS(key, i.Site)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: secured}
	t.Cleanup(transport.CloseIdleConnections)
	at := "https://" + i.Addresses[0] + "/mcp"
	return client.New(&web.Client{URL: at, Codec: rpc.JSON, HTTP: &http.Client{Transport: transport}}, "e2e", "1")
}
