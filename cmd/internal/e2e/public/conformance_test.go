//go:build e2e

package public

import (
	"fmt"
	"strings"
	"testing"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/e2e/harness/npm"

	"github.com/go-json-experiment/json"
)

// register registers a client without a secret.
func (p *place) register(t testing.TB, name, callback string) (id string) {
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

// TestConformance: the public suite's scenarios of authorization servers.
func TestConformance(t *testing.T) { newPlace(t).byAuthorizationSuite(t) }

// byAuthorizationSuite is TestConformance at a site.
func (p *place) byAuthorizationSuite(t *testing.T) {
	t.Helper()
	port := harness.FreePort(t)
	cmd := p.node(t, npm.Path(npm.Suite), "authorization", "--url", strings.TrimSuffix(p.url, "/mcp"),
		"--client-id", p.register(t, "Suite", "http://127.0.0.1:"+port+"/callback"), "--resource", p.url, "-p", port)
	cmd.Dir = t.TempDir() // where the suite leaves its results
	said, _, err := p.run(t, cmd, "read *")
	if err != nil {
		t.Errorf("%v\n%s\n%s", err, said, p.Log)
	}
	t.Log(said)
}
