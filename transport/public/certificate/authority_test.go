package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// authority is an ACME authority in memory. It checks no signature.
type authority struct {
	t     *testing.T
	now   func() time.Time
	life  time.Duration
	key   *ecdsa.PrivateKey
	cert  *x509.Certificate
	look  func(name string) error // at the challenge
	fail  map[string]int          // by what is asked: so many requests get no answer after they took effect
	begun int                     // orders
	made  int                     // certificates
	order map[string]any
	name  string
	chain []byte

	log    string // that somebody keeps of certificates
	zone   string // of those for all names beside the site's; "" where that is not answered
	looked int
}

func newAuthority(t *testing.T, now func() time.Time) *authority {
	t.Helper()
	key, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{t: t, now: now, life: 45 * 24 * time.Hour, key: key, cert: cert, fail: make(map[string]int), log: "[]"}
}

const base = "https://authority.test/"

func (a *authority) RoundTrip(r *http.Request) (*http.Response, error) {
	what := strings.TrimPrefix(r.URL.String(), base)
	payload, err := readPayload(r)
	if err != nil {
		return nil, err
	}
	status, header, body := a.answer(what, payload)
	if a.fail[what] > 0 {
		a.fail[what]--
		return nil, errors.New("the connection broke")
	}
	header.Set("Replay-Nonce", "n")
	header.Set("Content-Type", "application/json")
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
}

func readPayload(r *http.Request) (payload map[string]any, err error) {
	if r.Body == nil {
		return nil, nil
	}
	var jws struct{ Payload string }
	if err := json.NewDecoder(r.Body).Decode(&jws); err != nil {
		return nil, err
	}
	text, err := base64.RawURLEncoding.DecodeString(jws.Payload)
	if err == nil && len(text) > 0 {
		err = json.Unmarshal(text, &payload)
	}
	return payload, err
}

func (a *authority) answer(what string, payload map[string]any) (int, http.Header, []byte) {
	header := http.Header{}
	reply := func(status int, v any) (int, http.Header, []byte) {
		text, _ := json.Marshal(v)
		return status, header, text
	}
	switch what {
	case "directory":
		return reply(200, map[string]string{"newNonce": base + "nonce", "newAccount": base + "account", "newOrder": base + "new-order"})
	case "nonce":
		return reply(200, nil)
	case "account":
		header.Set("Location", base+"account/1")
		return reply(201, map[string]string{"status": "valid"})
	case "new-order":
		a.begun++
		a.name = payload["identifiers"].([]any)[0].(map[string]any)["value"].(string)
		a.order = map[string]any{"status": "pending", "authorizations": []string{base + "z"}, "finalize": base + "finalize"}
		header.Set("Location", base+fmt.Sprint("order/", a.begun))
		return reply(201, a.order)
	case "z", "challenge":
		if what == "challenge" {
			a.order["status"] = "ready"
			if err := a.look(a.name); err != nil {
				a.order["status"] = "invalid"
			}
			return reply(200, map[string]string{"type": "tls-alpn-01", "status": "processing"})
		}
		status := map[string]string{"pending": "pending", "invalid": "invalid"}[a.order["status"].(string)]
		if status == "" {
			status = "valid"
		}
		return reply(200, map[string]any{"status": status, "identifier": map[string]string{"type": "dns", "value": a.name},
			"challenges": []map[string]string{{"type": "tls-alpn-01", "url": base + "challenge", "token": "t", "status": "pending"}}})
	case "finalize":
		der, err := base64.RawURLEncoding.DecodeString(payload["csr"].(string))
		if err != nil {
			a.t.Error(err)
		}
		a.sign(der)
		a.order["status"], a.order["certificate"] = "valid", base+"cert"
		return reply(200, a.order)
	case "log?output=json&exclude=expired&q=" + name:
		a.looked++
		return 200, header, []byte(a.log)
	case "log?output=json&exclude=expired&q=%2A.example.org":
		if a.zone != "" {
			return 200, header, []byte(a.zone)
		}
	case "cert":
		return 200, header, a.chain
	}
	if a.order != nil && what == fmt.Sprint("order/", a.begun) {
		return reply(200, a.order)
	}
	return reply(404, map[string]string{"type": "urn:ietf:params:acme:error:malformed"})
}

func (a *authority) sign(csr []byte) {
	of, err := x509.ParseCertificateRequest(csr)
	if err != nil {
		a.t.Error(err)
		return
	}
	a.made++
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(int64(a.made) + 1), DNSNames: of.DNSNames, NotBefore: a.now(), NotAfter: a.now().Add(a.life),
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, a.cert, of.PublicKey, a.key)
	if err != nil {
		a.t.Error(err)
	}
	a.chain = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// handshake asks a configuration for a name as a caller or an authority does.
func handshake(c *tls.Config, ask *tls.Config) (*x509.Certificate, error) {
	near, far := net.Pipe()
	defer near.Close()
	go func() {
		defer far.Close()
		_ = tls.Server(far, c).Handshake()
	}()
	ask.InsecureSkipVerify = true
	conn := tls.Client(near, ask)
	if err := conn.Handshake(); err != nil {
		return nil, err
	}
	return conn.ConnectionState().PeerCertificates[0], nil
}

var acmeIdentifier = []int{1, 3, 6, 1, 5, 5, 7, 1, 31}
