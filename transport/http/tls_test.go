package http

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentsite/node/identity"
)

// secure serves h as the owner of key, and returns the address.
func secure(t *testing.T, key identity.Key, h http.Handler) string {
	t.Helper()
	cfg, err := ServerTLS(key, []string{"localhost", "greenhouse.local", "bank.example"})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = nil
	s.Listener = tls.NewListener(s.Listener, cfg)
	s.Start()
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func whoAmI(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, proved(r.TLS)) }

func get(t *testing.T, cfg *tls.Config, url string) (string, error) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true}}
	res, err := c.Get(url)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return string(b), err
}

// TestKeysProveEachOther: the site's own key and no other answers, and the caller's is known.
func TestKeysProveEachOther(t *testing.T) {
	site, other, caller := identity.New(), identity.New(), identity.New()
	at := secure(t, site, http.HandlerFunc(whoAmI))
	for _, tt := range []struct {
		name string
		site identity.ID
		want string
	}{
		{"the site", site.ID(), caller.ID().PeerID()},
		{"another one", other.ID(), ""},
		{"nobody", identity.ID{}, ""},
		{"the caller itself", caller.ID(), ""},
	} {
		cfg, err := ClientTLS(caller, tt.site)
		if err != nil {
			t.Fatal(err)
		}
		got, err := get(t, cfg, "https://"+at)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
}

// TestAuthority: who trusts it in the usual way reaches the site by its private names and
// its address; under another name not, nor another site, nor with an older TLS.
func TestAuthority(t *testing.T) {
	key := identity.New()
	der, err := Authority(key)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := Authority(key); !bytes.Equal(der, again) {
		t.Error("it is another each time")
	}
	at := secure(t, key, http.HandlerFunc(whoAmI))
	_, port, _ := net.SplitHostPort(at)
	authority, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	ours := x509.NewCertPool()
	ours.AddCert(authority)
	for _, tt := range []struct {
		name string
		cfg  *tls.Config
		ok   bool
	}{
		{"its address", &tls.Config{RootCAs: ours}, true},
		{"its name", &tls.Config{RootCAs: ours, ServerName: "greenhouse.local"}, true},
		{"a name in the world", &tls.Config{RootCAs: ours, ServerName: "bank.example"}, false},
		{"a name that is not its own", &tls.Config{RootCAs: ours, ServerName: "other.local"}, false},
		{"nobody's word", &tls.Config{RootCAs: x509.NewCertPool()}, false},
		{"TLS 1.2", &tls.Config{RootCAs: ours, MaxVersion: tls.VersionTLS12}, false},
	} {
		got, err := get(t, tt.cfg, "https://127.0.0.1:"+port)
		if got != "" || (err == nil) != tt.ok {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
}

// TestBorrowedCertificate: a certificate without its key proves nothing.
func TestBorrowedCertificate(t *testing.T) {
	site, victim, thief := identity.New(), identity.New(), identity.New()
	at := secure(t, site, http.HandlerFunc(whoAmI))
	cfg, err := ClientTLS(victim, site.ID())
	if err != nil {
		t.Fatal(err)
	}
	cfg.Certificates[0].PrivateKey = thief.Private()
	if got, err := get(t, cfg, "https://"+at); err == nil {
		t.Errorf("it was taken for %s", got)
	}
}
