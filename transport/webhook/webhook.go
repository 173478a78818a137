// Package webhook sends messages to URLs that callers give, at hosts that the owner named, and keeps what is sent where
// in a file. The protocols say which messages, and how they are proved.
package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/transport/web/outbound"
)

// Sender posts to the hosts that the owner named. It is safe for concurrent use.
type Sender struct {
	// Client is replaced by tests before the first Post.
	Client *http.Client

	hosts map[string]bool // with ports
}

// NewSender returns a sender to hosts, each with a port where it is not 443. A request takes at most so long.
func NewSender(limit time.Duration, hosts ...string) *Sender {
	s := &Sender{hosts: make(map[string]bool)}
	var names []string
	for _, host := range hosts {
		name, port, err := net.SplitHostPort(host)
		if err != nil {
			name, port = strings.Trim(host, "[]"), "443"
		}
		s.hosts[net.JoinHostPort(name, port)] = true
		names = append(names, name)
	}
	s.Client = outbound.Client(limit, names...)
	return s
}

// On reports whether there are hosts.
func (s *Sender) On() bool { return len(s.hosts) > 0 }

// ErrHost refuses a host that the owner did not name.
var ErrHost = errors.New("the owner of this site named other hosts (http: push_hosts)")

// Check refuses a URL that is none to send to, or not at a named host. what names the URL's subject in errors.
func (s *Sender) Check(text, what, example string) error {
	if err := outbound.CheckURL(text, what, example); err != nil {
		return err
	}
	u, err := url.Parse(text)
	if err != nil {
		return err
	}
	port := cmp.Or(u.Port(), map[string]string{"https": "443", "http": "80"}[u.Scheme])
	if !s.hosts[net.JoinHostPort(strings.ToLower(u.Hostname()), port)] {
		return ErrHost
	}
	return nil
}

// Failure is the error of a Post: without words of the receiver, or of its URL.
type Failure struct {
	Reason string // one of the reasons
	Code   int    // the status of an answer; 0 for none
	err    error
}

func (f *Failure) Error() string { return f.err.Error() }
func (f *Failure) Unwrap() error { return f.err }

// Reasons of a Failure. An answer that is neither success nor an error of the server is an error of the client: a
// redirect, too, which is not followed.
const (
	Refused     = "connection_refused"
	TimedOut    = "timeout"
	TLSError    = "tls_error"
	ClientError = "http_4xx"
	ServerError = "http_5xx"
)

// Post sends a body in application/json, and returns the first bytes of the answer, at most so many.
func (s *Sender) Post(ctx context.Context, to string, header http.Header, body []byte, most int64) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = header.Clone()
	r.Header.Set("Content-Type", "application/json")
	res, err := s.Client.Do(r)
	if err != nil {
		return nil, &Failure{reason(err), 0, outbound.Quiet(err, r.URL.Host)}
	}
	defer res.Body.Close()
	switch code := res.StatusCode; {
	case code/100 == 5:
		return nil, &Failure{ServerError, code, &outbound.StatusError{Host: r.URL.Host, Code: code}}
	case code/100 != 2:
		return nil, &Failure{ClientError, code, &outbound.StatusError{Host: r.URL.Host, Code: code}}
	case most == 0:
		return nil, nil
	}
	answer, err := io.ReadAll(io.LimitReader(res.Body, most))
	if err != nil {
		return nil, &Failure{reason(err), 0, outbound.Quiet(err, r.URL.Host)}
	}
	return answer, nil
}

func reason(err error) string {
	var slow net.Error
	var header tls.RecordHeaderError
	var alert tls.AlertError
	var certificate *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	switch {
	case errors.As(err, &slow) && slow.Timeout():
		return TimedOut
	case errors.As(err, &header), errors.As(err, &alert), errors.As(err, &certificate), errors.As(err, &authority):
		return TLSError
	}
	return Refused
}

// Retry calls try until it succeeds, with a pause after each failure but the last. It ends early with the error for
// which again is false, and with ctx.
func Retry(ctx context.Context, pauses []time.Duration, again func(error) bool, try func() error) error {
	for i := 0; ; i++ {
		err := try()
		if err == nil || i == len(pauses) || !again(err) || device.Sleep(ctx, pauses[i]) != nil {
			return err
		}
	}
}
