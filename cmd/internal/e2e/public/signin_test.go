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
	"math"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/e2e/harness/npm"
	"agentsite/discovery/bed"

	"github.com/go-json-experiment/json"
)

// place is a site at which clients sign in by its name on the network.
type place struct {
	*harness.Site
	url, certificate string
	on               string       // the clients' machine, "" for this one, where every name is this machine
	http             *http.Client // that of their users' browser
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
	certificate := filepath.Join(folder, "domain.pem")
	selfSigned(t, name, certificate, filepath.Join(folder, "domain.key"))
	port := harness.FreePort(t)
	domain := name + ":" + port
	p := &place{url: "https://" + domain + "/mcp", certificate: certificate}
	p.Site = harness.StartHTTPSAt(t, folder, "127.0.0.1:"+port,
		"http: { oauth: on, domain: \""+domain+"\", certificate: domain.pem, certificate_key: domain.key }")
	return p.claim(t)
}

// selfSigned writes a certificate for a name or an address, and its key, into two files.
func selfSigned(t testing.TB, host, certificate, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// claim gives the site an owner and the time, and makes the client of a browser.
func (p *place) claim(t *testing.T) *place {
	t.Helper()
	p.owner(t, "token", "add", "first", "read *") // its signer becomes the owner
	p.owner(t, "clock", "--set")
	p.http = newBrowser(t, p.certificate, func(ctx context.Context, network, address string) (net.Conn, error) {
		_, port, _ := net.SplitHostPort(address)
		return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:"+port)
	})
	return p
}

// newBrowser returns a client that trusts the certificates in a file.
func newBrowser(t testing.TB, root string, dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Client {
	t.Helper()
	text, err := os.ReadFile(root)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(text)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, DialContext: dial}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 20 * time.Second}
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

// consent opens the URL that a client has for its user's browser. The owner allows what the code on the page stands
// for, with a permission; for "", they say no. It returns where the browser is sent then.
func (p *place) consent(t testing.TB, at, may string) (back *url.URL) {
	t.Helper()
	browser := *p.http
	browser.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if r.URL.Host != via[0].URL.Host {
			return http.ErrUseLastResponse
		}
		return nil
	}
	look := func() (*http.Response, string) {
		t.Helper()
		res, err := browser.Get(at)
		if err != nil {
			t.Fatalf("%v\n%s", err, p.Log)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		at = res.Request.URL.String()
		return res, string(text)
	}
	res, text := look()
	code := shownCode.FindStringSubmatch(text)
	if code == nil {
		t.Fatalf("%d %s\n%s", res.StatusCode, text, p.Log)
	}
	if may == "" {
		p.owner(t, "approve", code[1], "--deny")
	} else {
		p.owner(t, "approve", code[1], "--may", may)
	}
	res, text = look()
	back, err := res.Location()
	if err != nil {
		t.Fatalf("the browser is not sent back: %d %s\n%s", res.StatusCode, text, p.Log)
	}
	return back
}

// signIn is consent for a client that listens where the browser is sent, which some begin once they have said the URL.
func (p *place) signIn(t *testing.T, at, may string) {
	t.Helper()
	back := p.consent(t, at, may).String()
	harness.WaitFor(t, 20*time.Second, "the client listens", func() bool {
		res, err := p.http.Get(back)
		if err == nil {
			res.Body.Close()
		}
		return err == nil
	})
}

var authorizeURL = regexp.MustCompile(`https://\S+/authorize\?\S+`)

// attended reads what a client says, to its end or until it has asked for so many sign-ins, and signs in at each.
func (p *place) attended(t *testing.T, says *bufio.Reader, may string, most int) (said string, asked int) {
	t.Helper()
	for asked < most {
		line, err := says.ReadString('\n')
		said += line
		if at := authorizeURL.FindString(line); at != "" {
			asked++
			p.signIn(t, at, may)
		}
		if err != nil {
			break
		}
	}
	return said, asked
}

// run runs a client to its end, and signs in when it asks for it. It returns what the client printed.
func (p *place) run(t *testing.T, cmd *exec.Cmd, may string) (said string, asked int, err error) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, asked = p.attended(t, bufio.NewReader(out), may, math.MaxInt)
	return said, asked, cmd.Wait()
}

// client is one by the TypeScript SDK or the AI SDK, in a process of its own.
type client struct {
	place *place
	in    io.Writer
	lines chan string
}

// node returns a program of Node on the clients' machine, which trusts the site's certificate.
func (p *place) node(t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	argv := append([]string{harness.Need(t, "Node 22", harness.NodeProgram), script}, args...)
	if p.on != "" {
		argv = bed.On(p.on, argv...)
	} else {
		preload, err := filepath.Abs("testdata/here.mjs")
		if err != nil {
			t.Fatal(err)
		}
		argv = slices.Insert(argv, 1, "--import", preload)
	}
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+p.certificate)
	return cmd
}

func (p *place) client(t *testing.T, major string, more ...string) *client {
	t.Helper()
	cmd := p.node(t, "testdata/client.mjs", append([]string{major, p.url, npm.Path("")}, more...)...)
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
				c.place.signIn(t, rest, may)
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

// TestTypeScript: clients by both major versions of the SDK sign in, call, refresh, and sign in again after their end.
func TestTypeScript(t *testing.T) {
	for _, major := range []string{"1", "2"} {
		t.Run(major, func(t *testing.T) { newPlace(t).byTypeScript(t, major, "box") })
	}
}

// byTypeScript is TestTypeScript at a site with a relay, the device, for one version.
func (p *place) byTypeScript(t *testing.T, major, device string) {
	t.Helper()
	read := fmt.Sprintf(`call read_points {"points":["%s/relay"]}`, device)
	turnOn := fmt.Sprintf(`call switch_output {"output":"%s/relay","on":true,"for_seconds":2}`, device)
	set := "read *, set " + device + " max "
	c := p.client(t, major)
	c.must(t, "connect", "read *", 1)
	if v := c.must(t, read, "", 0); v["isError"] == true {
		t.Fatal(v)
	}
	before := c.must(t, "tokens", "", 0)
	c.must(t, "break", "", 0)
	c.must(t, read, "", 0)
	after := c.must(t, "tokens", "", 0)
	if after["refresh_token"] == before["refresh_token"] || after["access_token"] == before["access_token"] {
		t.Error("it did not refresh")
	}
	if listed := p.owner(t, "grants"); !strings.Contains(listed, "SDK "+major) {
		t.Error(listed)
	}
	name := "sdk-" + major

	// The owner widens what is signed in.
	p.owner(t, "token", "change", name, set+"10s")
	harness.WaitFor(t, 20*time.Second, "the tools are listed", func() bool { // a session of 1.x is told of the change
		listed, _, _ := c.do(t, "list", "")
		return strings.Contains(listed, `"read_points"`) && strings.Contains(listed, `"switch_output"`)
	})
	if v := c.must(t, turnOn, "", 0); v["isError"] == true {
		t.Error(v)
	}
	p.owner(t, "token", "change", name, set+"1s")
	if v := c.must(t, turnOn, "", 0); v["isError"] != true {
		t.Error("a narrower permission is not", v)
	}
	p.owner(t, "token", "change", name, "read *")
	answer, ok, consents := c.do(t, turnOn, set+"10s")
	if major == "1" && (consents != 0 || !strings.Contains(answer, `"agentsite/fault":"denied"`)) {
		t.Errorf("an older client: %s, %d consents", answer, consents)
	}
	if major == "2" && (!ok || consents != 1 || strings.Contains(answer, `"isError":true`)) {
		t.Errorf("step-up: %s, %d consents", answer, consents)
	}
	p.owner(t, "token", "change", name, set+"10s")
	if v := c.must(t, turnOn, "", 0); v["isError"] == true {
		t.Error(v)
	}
	p.owner(t, "revoke", name)
	if v := c.must(t, read, "read *", 1); v["isError"] == true {
		t.Fatal(v)
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
