package web

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/lan"
)

// Bounds of an exchange.
const (
	maxAnswer  = 256 << 10
	maxHeader  = 16 << 10
	maxURL     = 512
	askTimeout = 10 * time.Second // of callers without a deadline
	idle       = 90 * time.Second // for which a connection is kept between two polls
)

// endpoint is the YAML of a server and of what proves who asks.
type endpoint struct {
	URL          string      `json:"url" jsonschema:"the address, such as http://192.168.1.20 or https://example.org/data.json; http only at home"`
	User         string      `json:"user,omitempty" jsonschema:"the name that the server asks for (HTTP Basic)"`
	PasswordFile driver.File `json:"password_file,omitempty" jsonschema:"the file with that user's password, beside the configuration"`
	KeyFile      driver.File `json:"key_file,omitempty" jsonschema:"the file with a token or key that is sent with each request"`
	KeyHeader    string      `json:"key_header,omitempty" jsonschema:"the header of that key, such as X-Api-Key; Authorization: Bearer when not written"`
	CAFile       driver.File `json:"ca_file,omitempty" jsonschema:"the file with the certificate (PEM) of an authority of your own, for https at home"`
}

// Validate finds mistakes.
func (e *endpoint) Validate() error {
	u, err := url.Parse(e.URL)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "" || len(e.URL) > maxURL || u.Scheme != "http" &&
		u.Scheme != "https":
		return device.Faultf(device.Invalid,
			"url: it is no address; write one such as http://192.168.1.20 or https://example.org/data.json")
	case u.Port() != "" && !isPort(u.Port()):
		return device.Faultf(device.Invalid, "url: %s is no port; write 1 to 65535, or none", u.Port())
	case u.User != nil:
		return device.Faultf(device.Invalid, "url: it has a password; write user and password_file instead")
	case u.Fragment != "":
		return device.Faultf(device.Invalid, "url: remove the part behind #, which is never sent")
	case u.Scheme == "http" && !atHome(u.Hostname()):
		return device.Faultf(device.Invalid,
			"url: anyone on the way to %.80q can read and change http; write https, or its address at home",
			u.Hostname())
	case (e.User == "") != (e.PasswordFile == ""):
		return device.Faultf(device.Invalid, "user: write user and password_file together, or none of them")
	case e.User != "" && e.KeyFile != "" && e.KeyHeader == "":
		return device.Faultf(device.Invalid,
			"key_file: a server is asked with a password or with a key; remove one of the two")
	case strings.ContainsAny(e.User, ":\r\n"):
		return device.Faultf(device.Invalid, "user: a name has no colon and no line break")
	case e.KeyHeader != "" && (e.KeyFile == "" || !validHeader(e.KeyHeader)):
		return device.Faultf(device.Invalid, "key_header: write the name of a header, such as X-Api-Key, and key_file")
	case e.CAFile != "" && u.Scheme != "https":
		return device.Faultf(device.Invalid, "ca_file: http has no certificates; write https, or remove ca_file")
	}
	return nil
}

// Peer returns the server.
func (e *endpoint) Peer() string {
	u, err := url.Parse(e.URL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// SentTo returns the server that gets the password or key as it is.
func (e *endpoint) SentTo() string {
	if !strings.HasPrefix(strings.ToLower(e.URL), "http:") || e.User == "" && e.KeyFile == "" || lan.IsLoopback(e.Peer()) {
		return ""
	}
	return e.Peer()
}

// validHeader accepts the name of a header that this client does not set itself (RFC 9110, section 5.1).
func validHeader(name string) bool {
	switch textproto.CanonicalMIMEHeaderKey(name) {
	case "Host", "Content-Length", "Content-Type", "Transfer-Encoding", "Connection", "Te", "Trailer", "Upgrade",
		"Cookie":
		return false
	}
	plain := strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
	return plain && name != "" && len(name) <= 64
}

// atHome reports whether a host is in the home network by its address, or by a name that no public DNS has.
func atHome(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if a, err := netip.ParseAddr(host); err == nil {
		a = a.Unmap()
		return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast()
	}
	// RFC 6761, RFC 6762, RFC 8375 and ICANN's resolution of 2024-07-29
	for _, suffix := range []string{".local", ".home.arpa", ".internal", ".localhost"} {
		if strings.HasSuffix(host, suffix) {
			return true
		}
	}
	return host == "localhost"
}

// client asks one server, one request at a time over one connection. It sends credentials to nobody else, follows no
// redirect and knows no proxy.
type client struct {
	base      *url.URL
	transport *http.Transport
	headers   http.Header // the credentials
}

// open reads the files of e. It connects to nothing.
func (e *endpoint) open() (*client, error) {
	base, err := url.Parse(e.URL)
	if err != nil {
		return nil, device.Faultf(device.Invalid, "url: it is no address")
	}
	c := &client{base: base, headers: make(http.Header)}
	ask := &http.Request{Header: c.headers}
	if e.User != "" {
		password, err := e.PasswordFile.Secret()
		if err != nil {
			return nil, device.Faultf(device.Offline, "password_file: %w", err)
		}
		ask.SetBasicAuth(e.User, password)
	}
	if e.KeyFile != "" {
		key, err := e.KeyFile.Secret()
		if err == nil && (key == "" || len(key) > 4096 || strings.ContainsFunc(key,
			func(r rune) bool { return r < ' ' || r > '~' })) {
			err = errors.New("a key is one line of at most 4096 plain letters")
		}
		if err != nil {
			return nil, device.Faultf(device.Offline, "key_file: %w", err)
		}
		if e.KeyHeader != "" {
			c.headers.Set(e.KeyHeader, key)
		} else {
			c.headers.Set("Authorization", "Bearer "+key)
		}
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if e.CAFile != "" {
		var err error
		if secure.RootCAs, err = e.CAFile.Authorities(); err != nil {
			return nil, err
		}
	}
	c.transport = &http.Transport{
		DialContext:     func(ctx context.Context, _, address string) (net.Conn, error) { return lan.Dial(ctx, address) },
		TLSClientConfig: secure, TLSHandshakeTimeout: askTimeout, DisableCompression: true, MaxIdleConns: 1,
		MaxIdleConnsPerHost: 1, MaxConnsPerHost: 2, IdleConnTimeout: idle,
		MaxResponseHeaderBytes: maxHeader, ResponseHeaderTimeout: askTimeout, WriteBufferSize: 2 << 10,
		ReadBufferSize: 4 << 10,
	}
	return c, nil
}

// to returns the address of a path and query below the server's address. It refuses another host.
func (e *endpoint) to(reference string) (*url.URL, error) {
	base, err := url.Parse(e.URL)
	if err != nil {
		return nil, err
	}
	ref, err := url.Parse(reference)
	if err != nil || len(reference) > maxURL || ref.Scheme != "" || ref.Host != "" || ref.User != nil ||
		ref.Opaque != "" || ref.Fragment != "" {
		return nil, errors.New("it is not a path and query of the same server, such as /status")
	}
	return base.ResolveReference(ref), nil
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n != 0
}

// claim returns the resource that is what an output moves at the server: two outputs that move it would each take the
// other for a stranger.
func (e *endpoint) claim(what string) driver.Resource {
	u, err := url.Parse(e.URL)
	if err != nil {
		return driver.Resource{}
	}
	return driver.Resource{Name: strings.ToLower(u.Scheme+"://"+u.Host) + " " + what, Elsewhere: true}
}

// sameHost reports whether u is at the server that the owner wrote.
func (c *client) sameHost(u *url.URL) bool {
	port := func(u *url.URL) string {
		return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	return u.Scheme == c.base.Scheme && strings.EqualFold(u.Hostname(), c.base.Hostname()) && port(u) == port(c.base) &&
		u.User == nil
}

// request is one exchange.
type request struct {
	method, contentType, body string
	to                        *url.URL
}

// do sends a request with the credentials, and returns the body of a successful answer: at most maxAnswer bytes. The
// error is a fault of kind UnknownOutcome if the server may have got the request.
func (c *client) do(ctx context.Context, ask request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var connected atomic.Bool // set by a goroutine of the transport
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { connected.Store(true) }})
	r, err := http.NewRequestWithContext(ctx, ask.method, ask.to.String(), strings.NewReader(ask.body))
	if err != nil {
		return nil, device.Faultf(device.Invalid, "the request cannot be made")
	}
	r.Header.Set("Accept", "application/json, */*;q=0.5")
	r.Header.Set("User-Agent", "agentsite")
	if ask.body != "" {
		r.Header.Set("Content-Type", ask.contentType)
	}
	r.Header["Idempotency-Key"] = nil // not sent: a write of one value may be repeated on another connection
	res, err := c.RoundTrip(r)
	if err != nil {
		return nil, c.fault(ctx, err, connected.Load())
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return nil, c.fault(ctx, err, true)
	}
	return body, c.refused(res, len(body))
}

// RoundTrip sends a request, with the credentials to the configured server only.
func (c *client) RoundTrip(r *http.Request) (*http.Response, error) {
	if !c.sameHost(r.URL) {
		return nil, errElsewhere
	}
	for name, values := range c.headers {
		r.Header[name] = values
	}
	return c.transport.RoundTrip(r)
}

var errElsewhere = errors.New("it is another server than the configured one")

// refused returns the fault of an answer that is no success or no plain content.
func (c *client) refused(res *http.Response, size int) error {
	status := res.StatusCode
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return device.Faultf(device.Offline,
			"%s refuses access (%d); write user and password_file, or key_file, as it wants them", c.base.Host, status)
	case status >= 300 && status < 400:
		return device.Faultf(device.Offline,
			"%s sends the request elsewhere (%d), which is not followed; write the final address",
			c.base.Host, status)
	case status == http.StatusTooManyRequests:
		return device.Faultf(device.Offline, "%s wants to be asked less often (429); write a longer every", c.base.Host)
	case status < 200 || status >= 300:
		return device.Faultf(device.Offline, "%s answers with status %d; look at its log, and at the path", c.base.Host,
			status)
	case size > maxAnswer:
		return device.Faultf(device.Offline, "the answer of %s is longer than %d KiB; ask for a smaller document",
			c.base.Host, maxAnswer>>10)
	case !strings.EqualFold(res.Header.Get("Content-Encoding"), "") &&
		!strings.EqualFold(res.Header.Get("Content-Encoding"), "identity"):
		return device.Faultf(device.Offline, "%s compresses its answer without being asked to; switch that off there",
			c.base.Host)
	}
	return nil
}

// fault returns the fault of a failed exchange, without the words of the other side and without the address, which may
// hold a secret.
func (c *client) fault(ctx context.Context, err error, sent bool) error {
	kind, why := device.Offline, "cannot be reached; look at its supply, its network and the url"
	var cert *tls.CertificateVerificationError
	var dns *net.DNSError
	switch {
	case errors.Is(err, errElsewhere):
		why = "is not the configured server"
	case errors.As(err, &cert):
		why = "has a certificate that is not valid for it; look at its date and name, or write ca_file"
	case ctx.Err() != nil:
		err, why = ctx.Err(), "does not answer in time; look at its supply and its network"
	case errors.As(err, &dns):
		why = "is a name that nobody knows now; look at its spelling and its supply"
	case sent:
		why = "broke off its answer; look at its supply and its network"
	}
	if sent {
		kind = device.UnknownOutcome
	}
	f := device.Faultf(kind, "%s %s", c.base.Host, why)
	if ctx.Err() != nil {
		f.Err = err
	}
	return &linkFault{f}
}

// linkFault is the fault of a server that cannot be reached or has not answered: nothing else can be asked of it,
// either.
type linkFault struct{ *device.Fault }

func (f *linkFault) Unwrap() error { return f.Fault }

// Close closes the idle connection.
func (c *client) Close() error {
	c.transport.CloseIdleConnections()
	return nil
}
