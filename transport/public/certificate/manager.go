package certificate

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/crypto/acme"
)

// The directories of Let's Encrypt. Certificates of Staging are for trials: nobody trusts them, and they do not
// count for the limits of the others.
const (
	LetsEncrypt = acme.LetsEncryptURL
	Staging     = "https://acme-staging-v02.api.letsencrypt.org/directory"
)

// Options configure a Manager. All but Client are required.
type Options struct {
	Directory string // the authority's URL
	// Now returns the best-known time, and whether it is more than a guess. Without a time nothing is ordered.
	Now func() (t time.Time, sure bool)
	// Read returns what Write stored last, nil for nothing. Write replaces it durably.
	Read   func() ([]byte, error)
	Write  func([]byte) error
	Client *http.Client // nil for a usual one
	// Log is the URL of a search of the public logs of certificates (Certificate Transparency), as crt.sh answers it;
	// "" for none. It is asked once a day for certificates that the site did not order.
	Log string
	// Given says that the name is below the zone of somebody else, who may have a certificate for all names there.
	Given bool
}

// Manager keeps a certificate. It is safe for concurrent use.
type Manager struct {
	Options
	named chan struct{} // receives after a change of the name

	mu        sync.Mutex
	name      string // that is reached from outside; "" while none is
	stored    stored
	current   *tls.Certificate
	challenge *tls.Certificate // only while the authority looks
	failures  int              // of the order that was begun last
	failed    error
	next      time.Time
	waits     string
	caa       string
	foreign   []Foreign
	logRead   time.Time
	logErr    error
}

// Status is the state of a certificate.
type Status struct {
	Name    string    // of the certificate; "" without one
	Until   time.Time // its end
	Next    time.Time // when it is renewed, or ordered again
	Waits   string    // what an order waits for; "" for nothing but Next
	Err     string    // why the last order failed; "" after a good one
	Account string    // the account's URL at the authority
	CAA     string    // by which CAA records name the authority; "" where it was not asked yet
	Orders  int       // of the last week
	Foreign []Foreign // certificates of others for the name, by the log
	LogRead time.Time // when the log was read last, by the site's time; zero for never
	LogErr  string    // why it was not read after that
}

// Open returns a manager with what was stored. Of a damaged file it begins anew, with an order a day.
func Open(o Options) (*Manager, error) {
	if o.Client == nil {
		o.Client = &http.Client{Timeout: time.Minute}
	}
	m := &Manager{Options: o, named: make(chan struct{}, 1)}
	text, err := o.Read()
	if err != nil {
		return nil, err
	}
	if m.stored, err = parseStored(text); err == nil && m.stored.Directory == o.Directory {
		m.current, err = m.stored.certificate()
	} else if err == nil {
		m.stored = stored{Directory: o.Directory, Serials: m.stored.Serials} // those of the other authority count on
	}
	if err != nil {
		slog.Error("the public name's certificate is lost", "err", err)
		m.stored = lost(o.Directory)
	}
	if o.Directory == LetsEncrypt {
		m.caa = "letsencrypt.org"
	}
	return m, nil
}

// SetName says under which name the site is reached from outside, "" for none. Nothing is ordered without one.
func (m *Manager) SetName(name string) {
	m.mu.Lock()
	changed := m.name != name
	m.name = name
	m.mu.Unlock()
	if changed {
		select {
		case m.named <- struct{}{}:
		default:
		}
	}
}

// Status returns the state.
func (m *Manager) Status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := Status{
		Next: m.next, Waits: m.waits, Account: m.stored.Account, CAA: m.caa, Orders: len(m.stored.Orders),
		Foreign: m.foreign, LogRead: m.logRead,
	}
	if m.current != nil {
		s.Name, s.Until = m.current.Leaf.DNSNames[0], m.current.Leaf.NotAfter
	}
	if m.failed != nil {
		s.Err = m.failed.Error()
	}
	if m.logErr != nil {
		s.LogErr = m.logErr.Error()
	}
	return s
}

// Config returns the TLS configuration of the name, which a caller's handshake does not change.
func (m *Manager) Config() *tls.Config {
	c := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: m.get,
		CipherSuites: []uint16{ // of TLS 1.2; the key is ECDSA
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		},
	}
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if !slices.Equal(hello.SupportedProtos, []string{acme.ALPNProto}) {
			return nil, nil
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.challenge == nil || !strings.EqualFold(hello.ServerName, m.challenge.Leaf.DNSNames[0]) {
			return nil, errors.New("no authority is expected")
		}
		return &tls.Config{
			MinVersion: tls.VersionTLS12, NextProtos: []string{acme.ALPNProto}, Certificates: []tls.Certificate{*m.challenge},
		}, nil
	}
	return c
}

func (m *Manager) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current == nil || !strings.EqualFold(hello.ServerName, m.current.Leaf.DNSNames[0]) {
		return nil, errors.New("there is no certificate for this name")
	}
	return m.current, nil
}

const (
	unsureInterval = 2 * time.Second // between looks at a clock that is not known
	mostWait       = time.Hour       // the clock may be set meanwhile
	orderTimeout   = 10 * time.Minute
	firstRetry     = time.Minute // of an order that was begun; doubled up to mostWait
)

// Run orders and renews the certificate, and watches the log, until ctx ends.
func (m *Manager) Run(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	if m.Log != "" {
		watching.Go(func() { m.watch(ctx) })
	}
	for ctx.Err() == nil {
		again := time.NewTimer(m.step(ctx))
		select {
		case <-ctx.Done():
		case <-m.named:
		case <-again.C:
		}
		again.Stop()
	}
}

// step orders a certificate if it is time, and returns how long to wait.
func (m *Manager) step(ctx context.Context) time.Duration {
	now, sure := m.Now()
	if s := m.snapshot(); sure && s.future(now) {
		if err := m.change(func(s *stored) { s.nextOrder(now) }); err != nil { // a start would count them anew
			slog.Error("the times of orders are not stored", "err", err)
		}
	}
	m.mu.Lock()
	name := m.name
	m.waits = ""
	switch {
	case name == "":
		m.waits = "the name is not reached from outside yet"
	case !sure:
		m.waits = "the clock is not set"
	}
	if m.waits != "" {
		m.mu.Unlock()
		if name == "" {
			return mostWait
		}
		return unsureInterval
	}
	m.next = m.due(name, now)
	wait := m.next.Sub(now)
	m.mu.Unlock()
	if wait > 0 {
		return min(wait, mostWait)
	}
	err := m.order(ctx, name)
	if err != nil && ctx.Err() == nil {
		slog.Error("the public name has no new certificate", "name", name, "err", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed = err
	if err == nil {
		m.failures = 0
		return 0
	}
	m.failures++
	retry := min(firstRetry<<min(m.failures-1, 6), mostWait)
	m.next = now.Add(retry)
	return retry
}

// due returns when the certificate is to be ordered. An order that was begun is gone on with. The lock is held.
func (m *Manager) due(name string, now time.Time) time.Time {
	if c := m.current; c != nil && c.Leaf.VerifyHostname(name) == nil {
		if renew := renewAt(c.Leaf); renew.After(now) {
			return renew
		}
	}
	if p := m.stored.Pending; p != nil && p.Name == name {
		return now
	}
	return m.stored.nextOrder(now)
}

// change changes what is stored, and stores it. Only Run calls it. Callers do not wait for the disk.
func (m *Manager) change(do func(*stored)) error {
	s := m.snapshot()
	do(&s)
	text, err := json.Marshal(s)
	if err == nil {
		err = m.Write(text)
	}
	if err == nil {
		m.mu.Lock()
		m.stored = s
		m.mu.Unlock()
	}
	return err
}

// snapshot returns what is stored.
func (m *Manager) snapshot() stored {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stored
	s.Orders = slices.Clone(s.Orders)
	return s
}
