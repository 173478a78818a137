//go:build e2e

package harness

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"
	"agentsite/transport/web"
)

// ServeAs serves HTTPS with the identity of key until the test ends, and returns the address.
func ServeAs(t *testing.T, key identity.Key, h http.HandlerFunc) string {
	t.Helper()
	cfg, err := web.ServerTLS(key, nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return ServeTLS(t, cfg, h)
}

// ServeTLS is ServeAs with a TLS configuration.
func ServeTLS(t *testing.T, cfg *tls.Config, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Listener = tls.NewListener(s.Listener, cfg)
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// httpsAddress is where a site serves HTTPS, and the file of the certificate that a client without our
// pinning has to trust.
type httpsAddress struct {
	URL         string // of its address
	Host        string // its name on the network, with the port
	Certificate string
}

// HTTPS returns where the site serves HTTPS.
func (r *Site) HTTPS(t testing.TB) httpsAddress {
	t.Helper()
	out, err := r.CLI(t, "identity", "--certificate")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(TempDir(t), "site.pem")
	if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	at := r.Access(t)
	id, err := identity.Parse(at.Site)
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(at.At[0])
	if err != nil {
		t.Fatal(err)
	}
	return httpsAddress{"https://" + at.At[0], net.JoinHostPort(discovery.HostName(id), port), file}
}

// Client returns a client that trusts the site's certificate and no other. It sends token, if
// any.
func (s httpsAddress) Client(t testing.TB, token string) *http.Client {
	t.Helper()
	text, err := os.ReadFile(s.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	only := x509.NewCertPool()
	if !only.AppendCertsFromPEM(text) {
		t.Fatalf("no certificate: %s", text)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: only}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: bearer{token, transport}}
}

type bearer struct {
	token string
	http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.RoundTripper.RoundTrip(r)
}
