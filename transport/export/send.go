package export

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"agentsite/transport/web/outbound"
)

const (
	sendTimeout = 30 * time.Second
	maxAnswer   = 4 << 10 // bytes of an answer's body that are read away, so that its connection serves again
)

// answerError is an answer that is no success.
type answerError struct {
	outbound.StatusError
	after time.Duration // that the receiver asks to wait for
}

// refused reports whether a receiver will never take the request: 4xx, except where it is busy, and where the owner has
// to mend the address or the sign-in, for which the history waits.
func (e *answerError) refused() bool {
	switch e.Code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusRequestTimeout,
		http.StatusTooManyRequests:
		return false
	}
	return e.Code/100 == 4
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// isLocalName reports whether a host is a name that only this network has. Such a name leads to a private address,
// which is dialled only where the owner wrote it.
func isLocalName(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	end := host[strings.LastIndexByte(host, '.')+1:] // RFC 6761, 6762, 8375, and .internal
	return end == host || slices.Contains([]string{"local", "localhost", "lan", "home", "internal"}, end) ||
		strings.HasSuffix(host, ".home.arpa")
}

// newClient returns a client that dials public addresses and the address in the URL.
func (a *Agent) newClient() (*http.Client, error) {
	u, err := url.Parse(a.RemoteWrite.URL)
	if err != nil {
		return nil, err
	}
	c := outbound.Client(sendTimeout, u.Hostname())
	t := c.Transport.(*http.Transport)
	t.DisableKeepAlives = false // one connection for the requests of a round
	if a.RemoteWrite.CAFile != "" {
		text, err := a.world.File(a.RemoteWrite.CAFile)
		if err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
		t.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("ca_file: there is no certificate in %s", a.RemoteWrite.CAFile)
		}
	}
	if a.world.through != nil {
		c.Transport = a.world.through
	}
	return c, nil
}

// post sends one request. It reads only the status of the answer, and when the receiver wants the next request.
func (s *sender) post(ctx context.Context, body []byte) error {
	w := &s.RemoteWrite
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Encoding", "snappy")
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("User-Agent", "agentsite/"+s.world.Version)
	r.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	if w.Tenant != "" {
		r.Header.Set("X-Scope-OrgID", w.Tenant)
	}
	switch {
	case w.KeyFile != "":
		key, err := s.world.Secret(w.KeyFile)
		if err != nil {
			return fmt.Errorf("key_file: %w", err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
	case w.PasswordFile != "":
		password, err := s.world.Secret(w.PasswordFile)
		if err != nil {
			return fmt.Errorf("password_file: %w", err)
		}
		r.SetBasicAuth(w.User, password)
	}
	res, err := s.client.Do(r)
	if err != nil {
		return outbound.Quiet(err, r.URL.Host)
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, maxAnswer) // the status counts
	if res.StatusCode/100 == 2 {
		return nil
	}
	e := &answerError{StatusError: outbound.StatusError{Host: r.URL.Host, Code: res.StatusCode}}
	if after, ok := outbound.RetryAfter(res.Header); ok {
		e.after = after
	}
	return e
}
