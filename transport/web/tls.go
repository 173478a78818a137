package web

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/node/identity"
)

// Certificates do not expire, because a board without a clock has to be reachable; permissions
// expire. RFC 5280, 4.1.2.5 defines the time for certificates without an end.
var (
	certFirst = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	certLast  = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// Apple's systems, and Chrome there, refuse a server's certificate that is valid for more
// than 825 days (support.apple.com/103769). A browser's begins and ends browserSpan from the
// site's best-known time, and is made anew when that has moved by browserAge.
const (
	browserSpan = 400 * 24 * time.Hour
	browserAge  = 200 * 24 * time.Hour
)

// privateNames are the names that a site's authority may certify. None is in the public DNS, so
// that a client which trusts the authority risks no other name.
var privateNames = []string{"localhost", "local", "lan", "home", "internal", "home.arpa"}

var privateAddresses = []netip.Prefix{
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("fc00::/7"), netip.MustParsePrefix("fe80::/10"),
}

// Authority returns the CA certificate of a site's key, in DER; it is deterministic. It signs the
// site's certificates for TLS. A client that trusts it, as by curl --cacert, reaches that site
// alone, under private names and addresses.
func Authority(key identity.Key) ([]byte, error) { return authority(key.ID(), key.Private()) }

// IsAuthority reports whether a certificate is the Authority of a key. Another certificate that the
// key signed may be valid for any name.
func IsAuthority(c *x509.Certificate, id identity.ID) bool {
	der, err := authority(id, identity.New().Private()) // but for the signature
	if err != nil {
		return false
	}
	want, err := x509.ParseCertificate(der)
	return err == nil && bytes.Equal(want.RawTBSCertificate, c.RawTBSCertificate) && c.CheckSignatureFrom(c) == nil
}

func authority(id identity.ID, signer ed25519.PrivateKey) ([]byte, error) {
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "AgentSite " + id.PeerID()},
		NotBefore: certFirst, NotAfter: certLast,
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: privateNames,
	}
	for _, p := range privateAddresses {
		t.PermittedIPRanges = append(t.PermittedIPRanges, &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())})
	}
	return x509.CreateCertificate(rand.Reader, t, t, ed25519.PublicKey(id[:]), signer) // Ed25519 takes nothing of chance
}

// ServerTLS returns the TLS configuration of a site with that key under these host names,
// whatever address it is reached by. A client may prove a key of its own (see Caller) and
// need not. now returns the site's best-known time, and is called at handshakes.
//
// A client that knows Ed25519 gets the site's authority along. A browser does not: Chromium
// calls a chain invalid that has a signature it does not know, and offers no way on. It gets
// the leaf alone, whose lifetime is bounded.
func ServerTLS(key identity.Key, names []string, now func() time.Time) (*tls.Config, error) {
	der, err := Authority(key)
	if err != nil {
		return nil, err
	}
	authority, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	// Browsers do not support Ed25519; the site's key signs an ECDSA key.
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	s := &certificates{key: key, authority: authority, leaf: leaf, now: now, cache: make(map[certKind]madeCertificate)}
	for _, n := range names {
		if slices.ContainsFunc(privateNames, func(p string) bool { return n == p || strings.HasSuffix(n, "."+p) }) {
			s.names = append(s.names, n)
		}
	}
	// A browser asks its user for a certificate of these, and there are none.
	subject, err := asn1.Marshal(keySubject.ToRDNSequence())
	if err != nil {
		return nil, err
	}
	asked := x509.NewCertPool()
	asked.AddCert(&x509.Certificate{Raw: subject, RawSubject: subject})
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: s.get, ClientAuth: tls.RequestClientCert, ClientCAs: asked,
	}, nil
}

// certificates makes one for each address of the site that a client dials, in two kinds.
type certificates struct {
	key       identity.Key
	authority *x509.Certificate
	leaf      *ecdsa.PrivateKey
	names     []string
	now       func() time.Time

	mu    sync.Mutex
	cache map[certKind]madeCertificate
}

// certKind is the key of the certificate cache.
type certKind struct {
	ip      netip.Addr
	browser bool // the client does not know Ed25519
}

type madeCertificate struct {
	*tls.Certificate
	at time.Time
}

// maxCertificates bounds the cache: a board has few addresses at a time.
const maxCertificates = 32

func (s *certificates) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	local, err := netip.ParseAddrPort(hello.Conn.LocalAddr().String())
	if err != nil {
		return nil, err
	}
	kind := certKind{local.Addr().Unmap().WithZone(""), !slices.Contains(hello.SignatureSchemes, tls.Ed25519)}
	now := s.now()
	if now.Before(certFirst) { // a board without a clock
		now = certFirst
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.cache[kind]; ok && (!kind.browser || now.Sub(c.at).Abs() < browserAge) {
		return c.Certificate, nil
	}
	c, err := s.make(kind, now)
	if err != nil {
		return nil, err
	}
	if len(s.cache) == maxCertificates {
		clear(s.cache)
	}
	s.cache[kind] = madeCertificate{c, now}
	return c, nil
}

func (s *certificates) make(kind certKind, now time.Time) (*tls.Certificate, error) {
	t := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "AgentSite"},
		NotBefore: certFirst, NotAfter: certLast,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: s.names,
	}
	if kind.browser {
		t.NotBefore = now.Add(-browserSpan)
		if end := now.Add(browserSpan); end.Before(certLast) { // later ones have no form
			t.NotAfter = end
		}
	}
	if slices.ContainsFunc(privateAddresses, func(p netip.Prefix) bool { return p.Contains(kind.ip) }) {
		t.IPAddresses = []net.IP{kind.ip.AsSlice()}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, s.authority, s.leaf.Public(), s.key.Private())
	if err != nil {
		return nil, err
	}
	c := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: s.leaf}
	if !kind.browser {
		c.Certificate = append(c.Certificate, s.authority.Raw)
	}
	return c, nil
}

// keySubject is the subject of every client certificate: the key identifies the caller.
var keySubject = pkix.Name{CommonName: "AgentSite key"}

// ClientTLS returns the TLS configuration of a client that connects to one site, whatever its
// address and name. The handshake proves both keys to each other, without a man in the middle.
func ClientTLS(key identity.Key, site identity.ID) (*tls.Config, error) {
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: keySubject, NotBefore: certFirst, NotAfter: certLast,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	private := key.Private()
	der, err := x509.CreateCertificate(rand.Reader, t, t, private.Public(), private)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
		Certificates:       []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}},
		InsecureSkipVerify: true,      // names and times prove nothing here: the site's key does
		ServerName:         "0.0.0.0", // an address, so that no name is sent: by its domain a site shows a certificate of others
		VerifyConnection: func(c tls.ConnectionState) error {
			if !signedBy(site, c.PeerCertificates[0]) {
				return fmt.Errorf("the server has another key than %s", site.PeerID())
			}
			return nil
		},
	}, nil
}

// signedBy reports whether a site's key signed a certificate.
func signedBy(site identity.ID, c *x509.Certificate) bool {
	authority := &x509.Certificate{PublicKeyAlgorithm: x509.Ed25519, PublicKey: ed25519.PublicKey(site[:])}
	return site.Valid() && authority.CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature) == nil
}

// proved returns the peer ID of the key that a client proved, "" for none.
func proved(c *tls.ConnectionState) string {
	if c == nil || len(c.PeerCertificates) == 0 {
		return ""
	}
	key, ok := c.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !ok || len(key) != ed25519.PublicKeySize || !identity.ID(key).Valid() {
		return ""
	}
	return identity.ID(key).PeerID()
}
