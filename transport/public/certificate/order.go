package certificate

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"golang.org/x/crypto/acme"
)

// order gets a certificate for the name: by the order that was begun, or by a new one.
func (m *Manager) order(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, orderTimeout)
	defer cancel()
	defer m.Client.CloseIdleConnections()
	client, err := m.account(ctx)
	if err != nil {
		return err
	}
	if p := m.snapshot().Pending; p == nil || p.Name != name {
		if err := m.begin(ctx, client, name); err != nil {
			return err
		}
	}
	err = m.finish(ctx, client, *m.snapshot().Pending)
	if errors.Is(err, errOver) || refused(err) {
		return errors.Join(err, m.change(func(s *stored) { s.Pending = nil }))
	}
	return err
}

// refused reports whether an authority will not answer otherwise the next time.
func refused(err error) bool {
	e := (*acme.Error)(nil)
	return errors.As(err, &e) && e.StatusCode/100 == 4 && e.StatusCode != http.StatusTooManyRequests
}

// account returns a client of the authority, with an account there.
func (m *Manager) account(ctx context.Context) (*acme.Client, error) {
	s := m.snapshot()
	key, err := parseKey(s.Key)
	if err != nil { // there is none yet, or it is lost
		s.Account = ""
		if key, err = newKey(); err != nil {
			return nil, err
		}
		text, err := keyPEM(key)
		if err == nil {
			err = m.change(func(s *stored) { s.Key, s.Account = text, "" })
		}
		if err != nil {
			return nil, err
		}
	}
	client := &acme.Client{Key: key, DirectoryURL: m.Directory, HTTPClient: m.Client, UserAgent: "agentsite", KID: acme.KeyID(s.Account)}
	about, err := client.Discover(ctx)
	if err != nil {
		return nil, fmt.Errorf("the authority does not answer: %w", err)
	}
	if len(about.CAA) > 0 {
		m.mu.Lock()
		m.caa = about.CAA[0]
		m.mu.Unlock()
	}
	if s.Account != "" {
		return client, nil
	}
	account, err := client.Register(ctx, &acme.Account{}, acme.AcceptTOS)
	if errors.Is(err, acme.ErrAccountAlreadyExists) { // of a run that crashed
		account, err = client.GetReg(ctx, "")
	}
	if err != nil {
		return nil, fmt.Errorf("the authority gives no account: %w", err)
	}
	client.KID = acme.KeyID(account.URI)
	return client, m.change(func(s *stored) { s.Account = account.URI })
}

// begin makes a new order, which counts from before it is sent.
func (m *Manager) begin(ctx context.Context, client *acme.Client, name string) error {
	now, sure := m.Now()
	if !sure {
		return errors.New("the clock is not set")
	}
	key, err := newKey()
	if err != nil {
		return err
	}
	text, err := keyPEM(key)
	if err != nil {
		return err
	}
	if next := m.snapshot(); next.nextOrder(now).After(now) { // a pending order was of another name
		return errors.New("there were too many orders this week")
	}
	if err := m.change(func(s *stored) { s.Pending, s.Orders = nil, append(s.Orders, placedOrder{At: now}) }); err != nil {
		return err
	}
	slog.Info("a certificate is ordered", "name", name, "authority", m.Directory)
	o, err := client.AuthorizeOrder(ctx, acme.DomainIDs(name))
	if e := (*acme.Error)(nil); errors.As(err, &e) && e.ProblemType == "urn:ietf:params:acme:error:accountDoesNotExist" {
		return errors.Join(err, m.change(func(s *stored) { s.Account = "" }))
	}
	if err != nil {
		return err
	}
	return m.change(func(s *stored) { s.Pending = &begunOrder{Name: name, URL: o.URI, Key: text} })
}

// errOver marks an order that will never have a certificate.
var errOver = errors.New("the order is over")

// finish goes on with an order, wherever it is.
func (m *Manager) finish(ctx context.Context, client *acme.Client, p begunOrder) error {
	key, err := parseKey(p.Key)
	if err != nil {
		return errors.Join(errOver, err)
	}
	o, err := client.GetOrder(ctx, p.URL)
	if err != nil {
		return err
	}
	if o.Status == acme.StatusPending {
		for _, url := range o.AuthzURLs {
			if err := m.prove(ctx, client, url, p.Name); err != nil {
				return err
			}
		}
	}
	if o.Status != acme.StatusValid && o.Status != acme.StatusInvalid {
		if o, err = client.WaitOrder(ctx, p.URL); err != nil {
			if failed := (*acme.OrderError)(nil); errors.As(err, &failed) {
				return errors.Join(errOver, err)
			}
			return err
		}
	}
	var chain [][]byte
	switch o.Status {
	case acme.StatusReady:
		if chain, err = m.finalize(ctx, client, o.FinalizeURL, p, key); err == nil {
			break
		}
		// The library asks for the order at the URL of the answer, which need not have one.
		now, failed := client.WaitOrder(ctx, p.URL)
		if failed != nil || now.Status != acme.StatusValid {
			return errors.Join(err, failed)
		}
		if chain, err = client.FetchCert(ctx, now.CertURL, true); err != nil {
			return err
		}
	case acme.StatusValid:
		if chain, err = client.FetchCert(ctx, o.CertURL, true); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%w: %v, as the authority says", errOver, o.Status)
	}
	return m.use(chain, p)
}

// finalize asks for the certificate of an order that is ready. The order counts as one with a certificate from
// before that.
func (m *Manager) finalize(ctx context.Context, client *acme.Client, url string, p begunOrder, key *ecdsa.PrivateKey) ([][]byte, error) {
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{p.Name}}, key)
	if err != nil {
		return nil, err
	}
	err = m.change(func(s *stored) {
		if n := len(s.Orders); n > 0 {
			s.Orders[n-1].Finalized = true
		}
	})
	if err != nil {
		return nil, err
	}
	chain, _, err := client.CreateOrderCert(ctx, url, csr, true)
	return chain, err
}

// prove has the authority see that the site has the name. Callers are shown the challenge meanwhile, and only
// those that ask for it.
func (m *Manager) prove(ctx context.Context, client *acme.Client, url, name string) error {
	z, err := client.GetAuthorization(ctx, url)
	if err != nil || z.Status == acme.StatusValid {
		return err
	}
	i := slices.IndexFunc(z.Challenges, func(c *acme.Challenge) bool { return c.Type == "tls-alpn-01" })
	if i < 0 {
		return fmt.Errorf("%w: the authority does not offer TLS-ALPN-01", errOver)
	}
	challenge := z.Challenges[i]
	cert, err := client.TLSALPN01ChallengeCert(challenge.Token, name)
	if err != nil {
		return err
	}
	if cert.Leaf == nil {
		if cert.Leaf, err = x509.ParseCertificate(cert.Certificate[0]); err != nil {
			return err
		}
	}
	m.setChallenge(&cert)
	defer m.setChallenge(nil)
	if challenge.Status == acme.StatusPending {
		if _, err := client.Accept(ctx, challenge); err != nil {
			return err
		}
	}
	if _, err = client.WaitAuthorization(ctx, url); err != nil {
		if failed := (*acme.AuthorizationError)(nil); errors.As(err, &failed) {
			return errors.Join(errOver, err)
		}
	}
	return err
}

func (m *Manager) setChallenge(c *tls.Certificate) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.challenge = c
}

// use stores a certificate and shows it to callers.
func (m *Manager) use(chain [][]byte, p begunOrder) error {
	var text []byte
	for _, der := range chain {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	cert, err := tls.X509KeyPair(text, []byte(p.Key))
	if err == nil {
		err = cert.Leaf.VerifyHostname(p.Name)
	}
	if err != nil {
		return fmt.Errorf("%w: the authority's certificate cannot be used: %w", errOver, err)
	}
	err = m.change(func(s *stored) {
		s.Chain, s.ChainKey, s.Pending = string(text), p.Key, nil
		s.Serials = append(slices.Clone(s.Serials), serialOf(cert.Leaf.SerialNumber.Text(16)))
		s.Serials = s.Serials[max(0, len(s.Serials)-maxSerials):]
	})
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.current = &cert
	m.mu.Unlock()
	slog.Info("the public name has a new certificate", "name", p.Name, "serial", cert.Leaf.SerialNumber.Text(16), "until", cert.Leaf.NotAfter)
	return nil
}
