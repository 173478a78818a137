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

// person is somebody with a key and a command line of their own, on another machine.
type Person struct{ Folder string }

func NewPerson(t testing.TB) Person { return Person{TempDir(t)} }

// agentsite runs a command, and returns what it printed.
func (p Person) CLI(t testing.TB, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, Need(t, "the program", Program), args...)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+p.Folder)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.String())
	}
	return string(out), err
}

// must is agentsite for what has to go well.
func (p Person) MustCLI(t testing.TB, args ...string) string {
	t.Helper()
	out, err := p.CLI(t, args...)
	if err != nil {
		t.Fatal(args, err)
	}
	return out
}

// key is the person's own.
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

// as speaks to the site that i names as whoever has a key.
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
