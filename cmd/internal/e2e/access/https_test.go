//go:build e2e

package access

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// TestTokensOverHTTPS: a token counts at its own site, in a header, until its end.
func TestTokensOverHTTPS(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", harness.TempDir(t))
	r, other := harness.StartHTTPS(t, harness.TempDir(t)), harness.StartHTTPS(t, harness.TempDir(t))
	at := r.HTTPS(t)
	foreign, _ := other.AddToken(t, "kitchen", "read *")
	good, _ := r.AddToken(t, "kitchen", "read *")
	revoked, _ := r.AddToken(t, "hall", "read *")
	if _, err := r.CLI(t, "token", "revoke", "hall"); err != nil {
		t.Fatal(err)
	}
	short, err := r.CLI(t, "token", "add", "short", "read *", "--until", "5s")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(token string, change func(*http.Request)) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequest("POST", at.URL+"/mcp", strings.NewReader(harness.ToolCall("read_points", "{}")))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": "application/json", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "read_points"} {
			req.Header.Set(name, value)
		}
		change(req)
		res, err := at.Client(t, token).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, string(b)
	}
	asItIs := func(*http.Request) {}
	if res, answer := ask(good, asItIs); res.StatusCode != 200 || !strings.Contains(answer, "box/relay") {
		t.Errorf("a good one: %d %s", res.StatusCode, answer)
	}
	if res, answer := ask(good, func(r *http.Request) { r.Host = at.Host }); res.StatusCode != 200 {
		t.Errorf("by the site's name: %d %s", res.StatusCode, answer)
	}
	harness.WaitFor(t, time.Minute, "a token ends", func() bool {
		_, answer := ask(strings.TrimSpace(short), asItIs)
		return strings.Contains(answer, "this token has ended")
	})
	metadata := at.URL + "/.well-known/oauth-protected-resource/mcp"
	for name, tt := range map[string]struct {
		token  string
		change func(*http.Request)
		says   string
	}{
		"none":            {"", asItIs, "token in a header"},
		"of another site": {foreign, asItIs, "unknown or revoked token"},
		"revoked":         {revoked, asItIs, "unknown or revoked token"},
		"ended":           {strings.TrimSpace(short), asItIs, "this token has ended"},
		"of the folder":   {r.Token, asItIs, "unknown or revoked token"},
		"in the address":  {"", func(r *http.Request) { r.URL.RawQuery = "access_token=" + good + "&token=" + good }, "token in a header"},
		"in a cookie":     {"", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "token", Value: good}) }, "token in a header"},
		"as a password":   {"", func(r *http.Request) { r.SetBasicAuth("token", good) }, "token in a header"},
		"half of it":      {good[:32], asItIs, "unknown or revoked token"},
		"twice over":      {good + good, asItIs, "unknown or revoked token"},
	} {
		res, answer := ask(tt.token, tt.change)
		if challenge := res.Header.Get("WWW-Authenticate"); res.StatusCode != 401 || !strings.Contains(answer, tt.says) || !strings.HasPrefix(challenge, "Bearer ") || !strings.Contains(challenge, `resource_metadata="`+metadata+`"`) {
			t.Errorf("%s: %d %s %s", name, res.StatusCode, challenge, answer)
		}
		if strings.Contains(answer, "box/relay") || strings.Contains(answer, good) {
			t.Errorf("%s: tells %s", name, answer)
		}
	}

	res, err := at.Client(t, "").Get(at.URL + "/.well-known/oauth-protected-resource/mcp")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var described struct {
		Resource string   `json:"resource"`
		Methods  []string `json:"bearer_methods_supported"`
	}
	if err := json.NewDecoder(res.Body).Decode(&described); err != nil || described.Resource != at.URL+"/mcp" || len(described.Methods) != 1 || described.Methods[0] != "header" {
		t.Errorf("%+v, %v", described, err)
	}
}

// TestUsualClients: curl, OpenSSL and Node trust the site's certificate in the way that
// they trust any, and nothing older than TLS 1.3 is spoken.
func TestUsualClients(t *testing.T) {
	r := harness.StartHTTPS(t, harness.TempDir(t))
	at := r.HTTPS(t)
	address := strings.TrimPrefix(at.URL, "https://")
	_, port, _ := net.SplitHostPort(address)
	name, _, _ := net.SplitHostPort(at.Host)
	const fetch = `fetch(process.argv[1]).then(r => r.text()).then(t => process.stdout.write(t), e => { console.error(e.cause ?? e); process.exit(1) })`
	trusting := []string{"-sS", "--cacert", at.Certificate}
	client := []string{"s_client", "-connect", address, "-CAfile", at.Certificate, "-verify_return_error"}
	for what, tt := range map[string]struct {
		tool string
		args []string
		says string
		ok   bool // and does not fail
	}{
		"curl":                  {"curl", append(trusting, at.URL+"/healthz"), "ok\n", true},
		"curl, by name":         {"curl", append(trusting, "--resolve", at.Host+":127.0.0.1", "https://"+at.Host+"/healthz"), "ok\n", true},
		"curl, localhost":       {"curl", append(trusting, "https://localhost:"+port+"/healthz"), "ok\n", true},
		"curl, another's name":  {"curl", append(trusting, "--resolve", "other.local:"+port+":127.0.0.1", "https://other.local:"+port+"/healthz"), "'other.local'", false},
		"curl, without it":      {"curl", []string{"-sS", at.URL + "/healthz"}, "certificate", false},
		"curl, TLS 1.2":         {"curl", append(trusting, "--tls-max", "1.2", at.URL+"/healthz"), "alert", false},
		"openssl":               {"openssl", append(client, "-verify_ip", "127.0.0.1"), "Verify return code: 0 (ok)", true},
		"openssl, by name":      {"openssl", append(client, "-verify_hostname", name), "TLSv1.3", true},
		"openssl, another name": {"openssl", append(client, "-verify_hostname", "other.local"), "ostname mismatch", false},
		"openssl, TLS 1.2":      {"openssl", append(client, "-tls1_2"), "alert protocol version", false},
		"Node":                  {harness.NodeProgram, []string{"-e", fetch, at.URL + "/healthz"}, "ok\n", true},
	} {
		t.Run(what, func(t *testing.T) {
			path, _ := exec.LookPath(tt.tool)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, harness.Need(t, what, path), tt.args...) // openssl ends, with nothing to read
			cmd.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+at.Certificate)
			out, err := cmd.CombinedOutput()
			if (err == nil) != tt.ok || !strings.Contains(string(out), tt.says) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	t.Run("Node, without it", func(t *testing.T) {
		out, err := exec.Command(harness.Need(t, "Node 22", harness.NodeProgram), "-e", fetch, at.URL+"/healthz").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "certificate") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}
