//go:build e2e && linux

package public

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPublicSignIn: from a relay and a site behind two routers, both with empty folders, to a tool called by a client
// that knows the site's public URL alone, once its owner allowed it. Its token counts under the public name alone, those
// of the site's own network do not count there, and a revoked one counts nowhere.
func TestPublicSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.newSite(w.home())
	w.permit(s.key.ID())
	r := w.relay(zone)
	w.run(s, "on", r.Addresses)
	name := s.label(t) + "." + zone
	s.certified(t, name)

	stranger, _ := w.Public()
	w.resolves(stranger)
	p := &place{Site: s.Site, url: "https://" + name + "/mcp", certificate: w.root()}
	p.http = w.browser(stranger, p.certificate, map[string]string{name + ":443": r.IP + ":443"})
	lan := strings.TrimSpace(p.owner(t, "token", "add", "first", "read *")) // its signer becomes the owner
	token := p.byGo(t, "lamp")

	asks := func(on, url, token string) string {
		t.Helper()
		code, err := w.pings(on, p.certificate, url, token)
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	if code := asks(stranger, p.url, token); code == "401" || code == "403" {
		t.Errorf("its token under the public name: %s", code)
	}
	if code := asks(s.on, s.URL+"/mcp", token); code != "401" {
		t.Errorf("its token on the site's machine: %s", code)
	}
	for what, token := range map[string]string{"of the site's machine": s.Token, "of its network": lan} {
		if code := asks(stranger, p.url, token); code != "401" {
			t.Errorf("the token %s under the public name: %s", what, code)
		}
	}
	if code := asks(s.on, s.URL+"/mcp", s.Token); code == "401" || code == "403" {
		t.Errorf("the site's own token on its machine: %s", code)
	}
	p.owner(t, "revoke", "go-sdk")
	if code := asks(stranger, p.url, token); code != "401" {
		t.Errorf("a revoked token: %s", code)
	}
}

// pings calls a site from a host with a token, and returns the status of the answer.
func (w *world) pings(on, root, url, token string) (status string, err error) {
	w.t.Helper()
	a, err := w.curl(on, root, "-X", "POST", "-H", "Content-Type: application/json", "-H", "Accept: application/json, text/event-stream",
		"-H", "Authorization: Bearer "+token, "-d", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, url)
	return a.code, err
}

// browser returns a client on a host that trusts a root, and knows the addresses of names.
func (w *world) browser(on, root string, names map[string]string) *http.Client {
	w.t.Helper()
	text, err := os.ReadFile(root)
	if err != nil {
		w.t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(text)
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trusted},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialFrom(ctx, on, network, names[address])
		},
	}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 20 * time.Second}
}

// dialFrom connects to an address from a host.
func dialFrom(ctx context.Context, on, network, address string) (conn net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread, which is in the host's network, ends with this function
		var of *os.File
		if of, err = os.Open("/run/netns/" + on); err != nil {
			return
		}
		defer of.Close()
		if err = unix.Setns(int(of.Fd()), unix.CLONE_NEWNET); err == nil {
			conn, err = new(net.Dialer).DialContext(ctx, network, address)
		}
	}()
	<-done
	return conn, err
}
