//go:build e2e && linux

package protocols

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/discovery/bed"
)

// authority is a certificate authority for domains; clients trust its file.
type authority struct {
	file string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newAuthority makes one.
func newAuthority(t *testing.T, dir string) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	a := authority{file: filepath.Join(dir, "authority.pem"), cert: c, key: key}
	a.write(t, a.file, "CERTIFICATE", der)
	return a
}

func (authority) write(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// certify writes the certificate of a domain and its key into a folder.
func (a authority) certify(t *testing.T, dir, domain string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{domain}}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	a.write(t, filepath.Join(dir, "domain.pem"), "CERTIFICATE", der)
	a.write(t, filepath.Join(dir, "domain.key"), "PRIVATE KEY", secret)
}

// TestANPDomains: one site asks another by their domains, at addresses that look public. Each
// authenticates the other by the document of its did:wba, and by the authority of its certificate.
func TestANPDomains(t *testing.T) {
	w := bed.NewWorld(t)
	dir := harness.TempDir(t)
	trusted := newAuthority(t, dir)
	hosts := filepath.Join(dir, "hosts")
	names := "127.0.0.1 localhost\n"
	const shed, barn, stranger = "shed.example.org", "barn.example.net", "stranger.example.com"
	machines := make(map[string]string)
	for _, domain := range []string{shed, barn, stranger} {
		host, ip := w.Public()
		machines[domain] = host
		names += ip + " " + domain + "\n"
	}
	if err := os.WriteFile(hosts, []byte(names), 0o644); err != nil {
		t.Fatal(err)
	}
	// on are the words that run the program on a domain's machine, where the names are known.
	on := func(domain string, args ...string) []string {
		return append(bed.On(machines[domain], "unshare", "--mount", "env", "SSL_CERT_FILE="+trusted.file, "sh", "-c", `mount --bind "$0" /etc/hosts && exec "$@"`, hosts, harness.Need(t, "the program", harness.Program)), args...)
	}
	start := func(domain, config string) *harness.Site {
		t.Helper()
		data := harness.TempDir(t)
		trusted.certify(t, data, domain)
		r := harness.StartIn(t, data, "site: { name: "+strings.Split(domain, ".")[0]+" }\nprotocols: [anp]\n"+config, nil, on(domain, "run", "--listen-https", ":443")...)
		if _, err := r.CLI(t, "clock", "--set"); err != nil {
			t.Fatal(err)
		}
		return r
	}
	identity := func(domain string) string {
		return fmt.Sprintf("domain: %s, certificate: domain.pem, certificate_key: domain.key", domain)
	}
	const asks = `agents:
  tools: { kind: remote, anp: "https://` + shed + `/anp/ad.json", may: ask release_output }
  evening:
    kind: routine
    may: ask tools/release_output
    steps: [{ agent: tools/release_output, text: dim/level, within: 20s }]
`
	far := start(shed, `http: { `+identity(shed)+`, callers: ["did:wba:`+barn+`"] }
devices: { dim: { driver: sim, model: dimmer, min_off: 0s } }
`)
	near := start(barn, "http: { "+identity(barn)+" }\n"+asks)
	other := start(stranger, "http: { "+identity(stranger)+" }\n"+asks)
	for _, domain := range []string{barn, stranger} {
		words := on(shed, "grant", "did:wba:"+domain, "set dim", "--to-site", "--data", far.Folder)
		t.Log(harness.MustRun(t, words[0], words[1:]...))
	}
	if _, err := far.CLI(t, "set", "dim/level", "40"); err != nil {
		t.Fatal(err)
	}
	level := func() string {
		out, err := far.CLI(t, "read", "dim/level")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	// Its key has a grant, but the owner did not list its name.
	if out, err := other.CLI(t, "ask", "evening"); err == nil || !strings.Contains(level(), " 40 ") {
		t.Errorf("a caller that nobody listed: %s, %s", out, level())
	}
	harness.WaitFor(t, time.Minute, "the barn has asked", func() bool {
		out, err := near.CLI(t, "ask", "evening")
		if err != nil {
			t.Log(out, err)
		}
		return err == nil
	})
	if !strings.Contains(level(), " 0 ") {
		t.Error(level())
	}
	journal, err := far.CLI(t, "journal")
	if err != nil {
		t.Fatal(err)
	}
	released := 0
	for line := range strings.Lines(journal) {
		if strings.Contains(line, "release_output") {
			if released++; !strings.Contains(line, near.DID(t)+" through "+near.DID(t)) {
				t.Error(line)
			}
		}
	}
	if released != 1 {
		t.Error(journal)
	}
}
