package web

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/node/identity"
)

// secure serves h as the owner of key, and returns the address.
func secure(t *testing.T, key identity.Key, h http.Handler) string {
	t.Helper()
	cfg, err := ServerTLS(key, []string{"localhost", "greenhouse.local", "bank.example"}, time.Now)
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

// TestAuthority: a client that trusts it reaches the site by its private names and its address. It
// reaches neither another name nor another site, nor the site by an older TLS.
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

// TestBrowserCertificate: a client without Ed25519 gets the leaf alone, with a lifetime that
// Apple's systems accept, around the site's best-known time. Another client gets certificates that
// it can verify without a clock.
func TestBrowserCertificate(t *testing.T) {
	key := identity.New()
	der, err := Authority(key)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	var now time.Time
	cfg, err := ServerTLS(key, nil, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	shown := func(schemes ...tls.SignatureScheme) (*x509.Certificate, int) {
		t.Helper()
		c, err := cfg.GetCertificate(&tls.ClientHelloInfo{Conn: conn, SignatureSchemes: schemes})
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(c.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := leaf.CheckSignatureFrom(authority); err != nil {
			t.Error(err)
		}
		return leaf, len(c.Certificate)
	}
	for _, now = range []time.Time{
		{}, time.Unix(0, 0), time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC), time.Date(2027, 11, 22, 0, 0, 0, 0, time.UTC),
		time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(9999, 6, 1, 0, 0, 0, 0, time.UTC), // as a network may say that knows a board first
	} {
		leaf, sent := shown(tls.ECDSAWithP256AndSHA256, tls.PSSWithSHA256)
		if length := leaf.NotAfter.Sub(leaf.NotBefore); sent != 1 || length > 825*24*time.Hour || length < 365*24*time.Hour {
			t.Errorf("at %v: %d certificates, valid for %v", now, sent, length)
		}
		if now.After(certFirst) && (now.Before(leaf.NotBefore) || now.After(leaf.NotAfter)) {
			t.Errorf("at %v it is valid from %v to %v", now, leaf.NotBefore, leaf.NotAfter)
		}
		if leaf, sent := shown(tls.ECDSAWithP256AndSHA256, tls.Ed25519); sent != 2 || !leaf.NotAfter.Equal(certLast) {
			t.Errorf("at %v: %d certificates for a client that knows Ed25519, until %v", now, sent, leaf.NotAfter)
		}
	}
}

// TestHalfHandshakes: unfinished TLS handshakes end after a while, and the maximum number of them
// keeps nobody out before that.
func TestHalfHandshakes(t *testing.T) {
	key, known := identity.New(), identity.New()
	server, err := ServerTLS(key, nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- Serve(ctx, tls.NewListener(p, server), http.NotFoundHandler()) }()
		begun := time.Now()
		for _, hello := range []string{"", "\x16", "\x16\x03\x01\x02\x00\x01"} {
			c := p.dial(t)
			c.say(hello)
			c.over(begun, readTimeout)
			begun = time.Now()
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})

	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, tls.NewListener(ln, server), http.HandlerFunc(whoAmI)) }()
	var half []net.Conn
	for range maxConns + 50 {
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		half = append(half, conn)
		io.WriteString(conn, "\x16\x03\x01\x02\x00\x01")
	}
	client, err := ClientTLS(known, key.ID())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := get(t, client, "https://"+ln.Addr().String()); got != known.ID().PeerID() {
		t.Errorf("%q, %v", got, err)
	}
	for _, conn := range half {
		conn.Close()
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestSentAwayAtOnce: the eviction of a client that does not read blocks nobody.
func TestSentAwayAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := identity.New()
		client, err := ClientTLS(key, key.ID())
		if err != nil {
			t.Fatal(err)
		}
		near, far := net.Pipe() // writes wait until they are read
		silent := tls.Server(near, &tls.Config{Certificates: client.Certificates, SessionTicketsDisabled: true})
		reader := tls.Client(far, client)
		go reader.Handshake()
		if err := silent.Handshake(); err != nil {
			t.Fatal(err)
		}
		c := newConnLimiter(1, 1)
		c.changed(silent, http.StateNew)
		begun := time.Now()
		c.changed(new(closable), http.StateNew)
		if took := time.Since(begun); took != 0 {
			t.Errorf("everybody waited %v for one", took)
		}
		if _, err := far.Read(make([]byte, 1)); err == nil {
			t.Error("it was not sent away")
		}
	})
}
