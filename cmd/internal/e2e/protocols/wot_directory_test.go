//go:build e2e

package protocols

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// TestDirectory: registrations survive a loss of power, and another site registers itself.
func TestDirectory(t *testing.T) {
	program := harness.Need(t, "the program", harness.Program)
	folder := harness.TempDir(t)
	const config = "site: { name: shed }\nhttp: { https: none }\nwot: { directory: on }\n"
	r := harness.StartIn(t, folder, config, nil, program)
	ask := func(verb, path, body string) (int, string) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		q, err := http.NewRequestWithContext(ctx, verb, r.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Authorization", "Bearer "+r.Token)
		res, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(text)
	}
	const lamp = `{"@context":"https://www.w3.org/2022/wot/td/v1.1","id":"urn:example:lamp","title":"Lamp","security":"n","securityDefinitions":{"n":{"scheme":"nosec"}},"registration":{"ttl":3600}}`
	if status, text := ask("PUT", "/things/urn:example:lamp", lamp); status != http.StatusCreated {
		t.Fatal(status, text)
	}
	if err := r.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-r.Ended
	r.Ended <- nil
	r = harness.StartIn(t, folder, config, nil, program)
	if status, text := ask("GET", "/things/urn:example:lamp", ""); status != http.StatusOK || !strings.Contains(text, `"ttl":3600`) {
		t.Error(status, text)
	}

	other := harness.TempDir(t)
	if err := os.WriteFile(filepath.Join(other, "shed.token"), []byte(r.Token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := harness.StartIn(t, other, "site: { name: barn }\nwot: { register: \""+r.URL+"\", key_file: shed.token }\n", nil, program, "--listen-https=127.0.0.1:0")
	harness.WaitFor(t, 30*time.Second, "the other site registers itself", func() bool {
		_, text := ask("GET", "/things", "")
		return strings.Contains(text, "/things/site:barn") && strings.Contains(text, `"@type":"ThingLink"`)
	})
	if log := b.Log.String(); strings.Contains(log, r.Token) {
		t.Error("the log has the token")
	}
}
