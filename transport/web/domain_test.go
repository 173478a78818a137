package web

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"agentsite/node/identity"
)

// certify writes a certificate for a name and its key to files, and returns it.
func certify(t *testing.T, name, file, keyFile string) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for f, b := range map[string]*pem.Block{file: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(f, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestDomain: a client that asks for the domain gets its certificate. Any other gets that of the
// site's key, as does a client that knows the key and asks by the domain.
func TestDomain(t *testing.T) {
	dir := t.TempDir()
	file, keyFile := filepath.Join(dir, "domain.pem"), filepath.Join(dir, "domain.key")
	root := certify(t, "garden.example.org", file, keyFile)
	site, caller := identity.New(), identity.New()
	ln, err := ListenHTTPS("127.0.0.1:0", site, nil, time.Now, NewDomain("garden.example.org:8474", dir, "domain.pem", keyFile))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(whoAmI)}
	served := make(chan struct{})
	go func() { server.Serve(ln); close(served) }()
	defer func() { server.Close(); <-served }()
	public := x509.NewCertPool()
	public.AddCert(root)
	known, err := ClientTLS(caller, site.ID())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		cfg  *tls.Config
		want string
		ok   bool
	}{
		{"by the domain", &tls.Config{RootCAs: public, ServerName: "Garden.example.org"}, "", true},
		{"by another name", &tls.Config{RootCAs: public, ServerName: "www.garden.example.org"}, "", false},
		{"by the site's key", known, caller.ID().PeerID(), true},
	} {
		if got, err := get(t, c.cfg, "https://"+ln.Addr().String()); got != c.want || (err == nil) != c.ok {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
}

// TestRenewed: files that changed are read again, and what cannot be used leaves the earlier
// certificate.
func TestRenewed(t *testing.T) {
	dir := t.TempDir()
	file, keyFile := filepath.Join(dir, "domain.pem"), filepath.Join(dir, "domain.key")
	d := NewDomain("garden.example.org", "", file, keyFile)
	expect := func(what string, want *x509.Certificate) {
		t.Helper()
		d.looked = d.looked.Add(-lookEvery)
		switch c := d.get("garden.example.org"); {
		case want == nil && c != nil, want != nil && (c == nil || !c.Leaf.Equal(want)):
			t.Errorf("%s: another certificate", what)
		}
	}
	expect("no files", nil)
	certify(t, "other.example.org", file, keyFile)
	expect("that of another name", nil)
	first := certify(t, "garden.example.org", file, keyFile)
	expect("the first", first)
	certify(t, "garden.example.org", file, filepath.Join(dir, "other.key"))
	os.Chtimes(file, time.Time{}, time.Now().Add(time.Second))
	expect("the certificate of another key", first)
	second := certify(t, "garden.example.org", file, keyFile)
	os.Chtimes(file, time.Time{}, time.Now().Add(2*time.Second))
	expect("the second", second)
	certify(t, "garden.example.org", file, keyFile)
	os.Chtimes(file, time.Time{}, time.Now().Add(3*time.Second))
	if c := d.get("garden.example.org"); !c.Leaf.Equal(second) {
		t.Error("the files were looked at again within a minute")
	}
	if d.get("example.org") != nil || NewDomain("", "", "", "").get("") != nil {
		t.Error("there is a certificate for another name")
	}
}
