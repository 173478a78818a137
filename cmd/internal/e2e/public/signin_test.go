//go:build e2e

// Package public tests sites that clients reach by their URL alone, and sign in at.
package public

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"

	"github.com/go-json-experiment/json"
)

// place is a site at which clients sign in by its name on the network.
type place struct {
	*harness.Site
	url, certificate string
	http             *http.Client // resolves every name to this machine
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{Site: harness.StartHTTPS(t, harness.TempDir(t), "http: { oauth: on }")}
	at := p.HTTPS(t)
	p.url, p.certificate = "https://"+at.Host+"/mcp", at.Certificate
	return p.claim(t)
}

// newDomain is newPlace at a domain with a certificate of its own.
func newDomain(t *testing.T) *place {
	t.Helper()
	const name = "garden.example.org"
	folder := harness.TempDir(t)
	certificate := selfSigned(t, folder, name)
	port := harness.FreePort(t)
	domain := name + ":" + port
	p := &place{url: "https://" + domain + "/mcp", certificate: certificate}
	p.Site = harness.StartHTTPSAt(t, folder, "127.0.0.1:"+port,
		"http: { oauth: on, domain: \""+domain+"\", certificate: domain.pem, certificate_key: domain.key }")
	return p.claim(t)
}

// selfSigned writes a certificate for a name and its key into a folder, and returns the file of the certificate.
func selfSigned(t *testing.T, folder, name string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{"domain.pem": {Type: "CERTIFICATE", Bytes: der}, "domain.key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(folder, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(folder, "domain.pem")
}

// claim gives the site an owner and the time, and makes the client of a browser.
func (p *place) claim(t *testing.T) *place {
	t.Helper()
	p.owner(t, "token", "add", "first", "read *") // its signer becomes the owner
	p.owner(t, "clock", "--set")
	text, err := os.ReadFile(p.certificate)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(text)
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trusted},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, _ := net.SplitHostPort(address)
			return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:"+port)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	p.http = &http.Client{Transport: transport, Timeout: 20 * time.Second}
	return p
}

// owner runs a command of the site's owner.
func (p *place) owner(t testing.TB, args ...string) string {
	t.Helper()
	out, err := p.CLI(t, args...)
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, p.Log)
	}
	return out
}

var shownCode = regexp.MustCompile(`<p class=code>([A-Z2-7]{4}-[A-Z2-7]{4})<`)

// consent opens the URL that a client has for its user's browser, and follows it until it is back at the client, which
// answers "back". The owner allows what the code on the page stands for, with a permission; for "", they say no.
func (p *place) consent(t *testing.T, at, may string) {
	t.Helper()
	p.follow(t, p.http, at, may, nil)
}

// follow is consent with the client of a browser, until it is sent back.
func (p *place) follow(t testing.TB, browser *http.Client, at, may string, sent func() bool) {
	t.Helper()
	code := ""
	for start := time.Now(); time.Since(start) < 30*time.Second; time.Sleep(50 * time.Millisecond) {
		res, err := browser.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if string(text) == "back" || sent != nil && sent() {
			return
		}
		at = res.Request.URL.String()
		found := shownCode.FindSubmatch(text)
		switch {
		case found == nil:
			t.Fatalf("%d %s", res.StatusCode, text)
		case code == "":
			code = string(found[1])
			if may == "" {
				p.owner(t, "approve", code, "--deny")
			} else {
				p.owner(t, "approve", code, "--may", may)
			}
		}
	}
	t.Fatal("the browser was not sent back")
}

// stopAt has a browser stop where it is sent to a URL, and notes it.
func stopAt(callback string, sent *string) func(*http.Request, []*http.Request) error {
	return func(r *http.Request, _ []*http.Request) error {
		if !strings.HasPrefix(r.URL.String(), callback) {
			return nil
		}
		*sent = r.URL.String()
		return http.ErrUseLastResponse
	}
}

// client is one by the TypeScript SDK, in a process of its own.
type client struct {
	place *place
	in    io.Writer
	lines chan string
}

// node returns a program of Node that trusts the site's certificate, and for which every name is this machine.
func (p *place) node(t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	program := harness.Need(t, "Node 22", harness.NodeProgram)
	preload, err := filepath.Abs("testdata/here.mjs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, append([]string{"--import", preload, script}, args...)...)
	cmd.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+p.certificate)
	return cmd
}

var npmModules = os.Getenv("NPM_MODULES")

func (p *place) client(t *testing.T, major string, more ...string) *client {
	t.Helper()
	cmd := p.node(t, "testdata/client.mjs", append([]string{major, p.url, npmModules}, more...)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Process.Kill(); cmd.Wait() })
	c := &client{p, in, make(chan string, 16)}
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			c.lines <- lines.Text()
		}
		close(c.lines)
	}()
	return c
}

// do has the client do something, and allows what it asks for by the way. It returns the answer, and whether the client
// failed.
func (c *client) do(t *testing.T, command, may string) (answer string, ok bool, consents int) {
	t.Helper()
	fmt.Fprintln(c.in, command)
	for {
		select {
		case line, open := <-c.lines:
			what, rest, _ := strings.Cut(line, " ")
			switch {
			case !open:
				t.Fatal("the client ended")
			case what == "OPEN":
				consents++
				c.place.consent(t, rest, may)
			case what == "RESULT", what == "ERROR":
				return rest, what == "RESULT", consents
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s takes too long\n%s", command, c.place.Log)
		}
	}
}

// must is do for what succeeds.
func (c *client) must(t *testing.T, command, may string, consents int) (v map[string]any) {
	t.Helper()
	answer, ok, n := c.do(t, command, may)
	if !ok || n != consents {
		t.Fatalf("%s: %s, %d consents\n%s", command, answer, n, c.place.Log)
	}
	if err := json.Unmarshal([]byte(answer), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

const (
	readPump = `call read_points {"points":["box/relay"]}`
	pumpOn   = `call switch_output {"output":"box/relay","on":true,"for_seconds":2}`
)

// TestTypeScript: clients by both major versions of the SDK sign in, call, refresh, and sign in again after their end.
func TestTypeScript(t *testing.T) {
	for _, major := range []string{"1", "2"} {
		t.Run(major, func(t *testing.T) {
			p := newPlace(t)
			c := p.client(t, major)
			c.must(t, "connect", "read *", 1)
			if v := c.must(t, readPump, "", 0); v["isError"] == true {
				t.Fatal(v)
			}
			before := c.must(t, "tokens", "", 0)
			c.must(t, "break", "", 0)
			c.must(t, readPump, "", 0)
			after := c.must(t, "tokens", "", 0)
			if after["refresh_token"] == before["refresh_token"] || after["access_token"] == before["access_token"] {
				t.Error("it did not refresh")
			}
			if listed := p.owner(t, "grants"); !strings.Contains(listed, "SDK "+major) {
				t.Error(listed)
			}
			name := "sdk-" + major

			// The owner widens what is signed in.
			p.owner(t, "token", "change", name, "read *, set box max 10s")
			if v := c.must(t, pumpOn, "", 0); v["isError"] == true {
				t.Error(v)
			}
			p.owner(t, "token", "change", name, "read *, set box max 1s")
			if v := c.must(t, pumpOn, "", 0); v["isError"] != true {
				t.Error("a narrower permission is not", v)
			}
			p.owner(t, "token", "change", name, "read *")
			answer, ok, consents := c.do(t, pumpOn, "read *, set box max 10s")
			if major == "1" && (consents != 0 || !strings.Contains(answer, `"agentsite/fault":"denied"`)) {
				t.Errorf("an older client: %s, %d consents", answer, consents)
			}
			if major == "2" && (!ok || consents != 1 || strings.Contains(answer, `"isError":true`)) {
				t.Errorf("step-up: %s, %d consents", answer, consents)
			}
			p.owner(t, "token", "change", name, "read *, set box max 10s")
			if v := c.must(t, pumpOn, "", 0); v["isError"] == true {
				t.Error(v)
			}
			p.owner(t, "revoke", name)
			if v := c.must(t, readPump, "read *", 1); v["isError"] == true {
				t.Fatal(v)
			}
		})
	}
}

// TestDenied: an owner's no is told to the client, which gets nothing.
func TestDenied(t *testing.T) {
	p := newPlace(t)
	answer, ok, _ := p.client(t, "2").do(t, "connect", "")
	if ok || !strings.Contains(answer, "access_denied") {
		t.Error(answer)
	}
	if listed := p.owner(t, "grants"); strings.Contains(listed, "SDK") {
		t.Error(listed)
	}
}

// TestPages: a page of another origin can read the metadata and the challenge, and nothing by the site's own token.
func TestPages(t *testing.T) {
	p := newPlace(t)
	base := strings.TrimSuffix(p.url, "/mcp")
	for _, tt := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/.well-known/oauth-protected-resource/mcp", 200}, {"GET", "/.well-known/oauth-authorization-server", 200},
		{"POST", "/mcp", 401}, {"GET", "/mcp/", 401}, {"HEAD", "/mcp", 401}, {"GET", "/authorize", 403}, {"POST", "/a2a", 403},
	} {
		r, err := http.NewRequest(tt.method, base+tt.path, strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", "https://inspector.example")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", "cors")
		res, err := p.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != tt.status || (res.Header.Get("Access-Control-Allow-Origin") == "*") != (tt.status != 403) {
			t.Errorf("%s %s: %d %v", tt.method, tt.path, res.StatusCode, res.Header)
		}
		challenge := res.Header.Get("WWW-Authenticate")
		if want := fmt.Sprintf(`resource_metadata="%s/.well-known/oauth-protected-resource/mcp"`, base); tt.status == 401 && !strings.Contains(challenge, want) {
			t.Errorf("%s %s: %s", tt.method, tt.path, challenge)
		}
	}
}
