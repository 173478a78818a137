package look

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentsite/transport/public"
	"agentsite/transport/web/outbound"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testBase = "https://board.example.com" // of which net/http/httptest has a certificate
	testURL  = testBase + "/mcp"
)

// site answers as a site does under its public name, but for what a test changes.
type site struct{ status, metadata, resource, server, issuer, method, origin string }

func (s site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Access-Control-Allow-Origin", s.origin)
	switch {
	case r.Method == http.MethodOptions:
		w.Header().Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
		w.WriteHeader(http.StatusNoContent)
	case r.URL.Path == "/mcp":
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+s.metadata+`"`)
		status := http.StatusUnauthorized
		if s.status != "" {
			status = http.StatusFound
			w.Header().Set("Location", s.status)
		}
		w.WriteHeader(status)
	case strings.HasSuffix(r.URL.Path, "authorization-server"):
		fmt.Fprintf(w, `{"issuer":%q,"code_challenge_methods_supported":[%q]}`, s.issuer, s.method)
	default:
		fmt.Fprintf(w, `{"resource":%q,"authorization_servers":[%q]}`, s.resource, s.server)
	}
}

func good() site {
	return site{
		metadata: testBase + "/.well-known/oauth-protected-resource/mcp", resource: testURL, server: testBase,
		issuer: testBase, method: "S256", origin: "*",
	}
}

// TestSteps: a look names the step that fails, with a remedy, and takes none after it.
func TestSteps(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*site)
		fails  string // "" for nothing
	}{
		"good":             {func(*site) {}, ""},
		"sent elsewhere":   {func(s *site) { s.status = "https://portal.example.com/" }, stepSignIn},
		"no description":   {func(s *site) { s.metadata = "" }, stepSignIn},
		"another resource": {func(s *site) { s.resource += "/" }, stepDescribe},
		"another server":   {func(s *site) { s.server = "https://evil.example" }, stepDescribe},
		"no S256":          {func(s *site) { s.method = "plain" }, stepDescribe},
		"another issuer":   {func(s *site) { s.issuer = "https://evil.example" }, stepDescribe},
		"long":             {func(s *site) { s.issuer = strings.Repeat("x", 2*maxBody) }, stepDescribe},
		"no CORS":          {func(s *site) { s.origin = "" }, stepCORS},
	} {
		t.Run(name, func(t *testing.T) {
			of := good()
			c.change(&of)
			server := httptest.NewTLSServer(of)
			defer server.Close()
			roots, dials := x509.NewCertPool(), 0
			roots.AddCert(server.Certificate())
			steps := lookAt(t.Context(), testURL, func(ctx context.Context, name string) (net.Conn, error) {
				if dials++; name != "board.example.com" {
					t.Error(name)
				}
				return new(net.Dialer).DialContext(ctx, "tcp", server.Listener.Addr().String())
			}, roots)
			for i, s := range steps {
				if last := i == len(steps)-1; s.Err != "" && !last || (s.Err == "") != (s.Do == "") {
					t.Errorf("%+v", s)
				}
			}
			last := steps[len(steps)-1]
			if c.fails == "" && (last.Err != "" || last.Step != stepCORS) || c.fails != "" && (last.Err == "" || last.Step != c.fails) {
				t.Errorf("%+v", steps)
			}
			if dials > 1 {
				t.Errorf("%d connections", dials)
			}
		})
	}
}

// TestNoConnection: a step that fails before the first request is named, too.
func TestNoConnection(t *testing.T) {
	server := httptest.NewTLSServer(good())
	defer server.Close()
	ended := func(context.Context, string) (net.Conn, error) {
		near, far := net.Pipe()
		far.Close()
		return near, nil
	}
	fails := func(step string, err error) Dial {
		return func(context.Context, string) (net.Conn, error) { return nil, &public.StepError{Step: step, Err: err} }
	}
	for name, c := range map[string]struct {
		at   string
		dial Dial
		step string
		do   string
	}{
		"no URL":       {"http://board.example.com/mcp", ended, stepURL, ""},
		"an address":   {"https://127.0.0.1/mcp", ended, stepURL, ""},
		"another path": {"https://board.example.com/admin", ended, stepURL, ""},
		"a fragment":   {testURL + "#mcp", ended, stepURL, ""},
		"a port":       {"https://board.example.com:8443/mcp", ended, stepURL, ""},
		"DNS":          {testURL, fails(public.StepDNS, errors.New("no such host")), public.StepDNS, "board.example.com"},
		"private":      {testURL, fails(public.StepConnect, outbound.ErrPrivate), public.StepConnect, "--to"},
		"unreachable":  {testURL, fails(public.StepConnect, errors.New("refused")), public.StepConnect, "443"},
		"relay":        {testURL, fails(public.StepRefused, errors.New("no")), public.StepRefused, "agentsite relay"},
		"ended":        {testURL, ended, stepTLS, "relay"},
		"untrusted": {testURL, func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", server.Listener.Addr().String())
		}, stepTLS, "staging"},
	} {
		steps := At(t.Context(), c.at, c.dial)
		last := steps[len(steps)-1]
		if last.Step != c.step || last.Err == "" || !strings.Contains(last.Do, c.do) {
			t.Errorf("%s: %+v", name, steps)
		}
	}
}
