//go:build e2e

package public

import (
	"bufio"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"agentsite/cmd/internal/e2e/harness"

	"github.com/go-json-experiment/json"
)

// register registers a client without a secret.
func (p *place) register(t *testing.T, name, callback string) (id string) {
	t.Helper()
	res, err := p.http.Post(strings.TrimSuffix(p.url, "/mcp")+"/register", "application/json",
		strings.NewReader(fmt.Sprintf(`{"client_name":%q,"redirect_uris":[%q],"token_endpoint_auth_method":"none"}`, name, callback)))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct {
		ID string `json:"client_id"`
	}
	if err := json.UnmarshalRead(res.Body, &answer); err != nil || res.StatusCode != 201 {
		t.Fatal(res.Status, err)
	}
	return answer.ID
}

var authorizeURL = regexp.MustCompile(`https://\S+/authorize\?\S+`)

// TestConformance: the public suite's scenarios of authorization servers.
func TestConformance(t *testing.T) {
	p := newPlace(t)
	port := harness.FreePort(t)
	callback := "http://127.0.0.1:" + port + "/callback"
	cmd := p.node(t, filepath.Join(npmModules, "@modelcontextprotocol/conformance/dist/index.js"), "authorization",
		"--url", strings.TrimSuffix(p.url, "/mcp"), "--client-id", p.register(t, "Suite", callback), "--resource", p.url, "-p", port)
	cmd.Dir = t.TempDir() // where the suite leaves its results
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if at := authorizeURL.FindString(lines.Text()); at != "" {
			sent := ""
			browser := *p.http // the suite answers with a page of its own
			browser.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
				if strings.HasPrefix(r.URL.String(), callback) {
					sent = r.URL.String()
				}
				return nil
			}
			p.follow(t, &browser, at, "read *", func() bool { return sent != "" })
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s\n%s", err, said.String(), p.Log)
	}
	t.Log(said.String())
}
