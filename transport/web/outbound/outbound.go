// Package outbound fetches from hosts that the owner named, and the metadata of OAuth clients from hosts that
// they name. It connects to no host that an answer names. It follows no redirect, uses no proxy, and dials no address
// of a private network unless the owner configured that address.
package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const dialTimeout = 5 * time.Second

// ErrPrivate refuses an address that is not public.
var ErrPrivate = errors.New("an address of a private network")

// LookAgent is the User-Agent of an owner's look at their own site.
const LookAgent = "agentsite public"

// Dialer returns a dialer of public addresses, and of those among hosts, which the owner wrote as the host of a URL,
// without a port. It checks the address that it connects to, whatever the DNS answered before.
func Dialer(hosts ...string) *net.Dialer {
	var named []netip.Addr
	for _, host := range hosts {
		if a, err := netip.ParseAddr(host); err == nil {
			named = append(named, a)
		}
	}
	return &net.Dialer{Timeout: dialTimeout, KeepAlive: -1, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return check(at.Addr(), named)
	}}
}

// Client returns a client that dials as Dialer does. It keeps no connection open.
func Client(limit time.Duration, hosts ...string) *http.Client {
	return &http.Client{
		Timeout:       limit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: Dialer(hosts...).DialContext, DisableKeepAlives: true, MaxResponseHeaderBytes: 16 << 10,
			TLSHandshakeTimeout: dialTimeout, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		},
	}
}

// reserved are further addresses that are not hosts of the Internet, or lead to a host of this
// network (RFC 6890). netip knows the private, local and multicast ones.
const reserved = "0.0.0.0/8 100.64.0.0/10 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4 " +
	"::/3 2001::/23 2001:db8::/32 2002::/16"

// check refuses an address that is neither public nor named.
func check(a netip.Addr, named []netip.Addr) error {
	a = a.Unmap()
	for _, n := range named {
		if n.Unmap() == a {
			return nil
		}
	}
	public := a.IsGlobalUnicast() && !a.IsPrivate() && a.Zone() == ""
	for text := range strings.FieldsSeq(reserved) {
		public = public && !netip.MustParsePrefix(text).Contains(a)
	}
	if !public {
		return fmt.Errorf("%v is %w: only an owner who writes it in the configuration can have it asked", a, ErrPrivate)
	}
	return nil
}

// CheckURL accepts an https URL, or an http URL at an address of this machine. what names the URL's
// subject in errors.
func CheckURL(text, what, example string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || len(text) > 512 || u.Scheme != "https" && u.Scheme != "http" {
		return fmt.Errorf("%.80q is no URL of %s such as %s", text, what, example)
	}
	if u.Scheme == "http" && u.Hostname() == "localhost" {
		return fmt.Errorf("%.80q: localhost is a name, which can lead elsewhere; write 127.0.0.1 for this machine", text)
	}
	if a, err := netip.ParseAddr(u.Hostname()); u.Scheme == "http" && (err != nil || !a.IsLoopback()) {
		return fmt.Errorf("%.80q would be asked over plain HTTP, which anyone can read and change; write its https URL", text)
	}
	return nil
}

// StatusError is the error of an answer with another status than 200.
type StatusError struct {
	Host string
	Code int
}

func (e *StatusError) Error() string { return fmt.Sprintf("%s answered %d", e.Host, e.Code) }

// Quiet returns an error of a connection without its URL, which may be a secret, and without words of the other side.
func Quiet(err error, host string) error {
	if with := (*url.Error)(nil); errors.As(err, &with) {
		err = with.Err
	}
	var named x509.HostnameError
	var broken textproto.ProtocolError
	switch text, _, quotes := strings.Cut(err.Error(), ` "`); {
	case errors.As(err, &named):
		return fmt.Errorf("the certificate of %s is for another name", host)
	case errors.As(err, &broken):
		return fmt.Errorf("%s does not speak the protocol", host)
	case quotes:
		return errors.New(text)
	}
	return err
}

// RetryAfter returns for how long an answer asks to wait (RFC 9110, section 10.2.3): in seconds, or until a date, which
// counts from the answer's own.
func RetryAfter(h http.Header) (wait time.Duration, ok bool) {
	text := h.Get("Retry-After")
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second, true
	}
	at, err := http.ParseTime(text)
	sent, unsent := http.ParseTime(h.Get("Date"))
	return at.Sub(sent), err == nil && unsent == nil
}

// Get fetches at most so many bytes of a URL with a client, and refuses all but a status of 200.
func Get(ctx context.Context, c *http.Client, url string, most int64) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	return Do(c, r, most)
}

// Do is Get for a request that the caller made. Its errors are Quiet.
func Do(c *http.Client, r *http.Request, most int64) ([]byte, error) {
	res, err := c.Do(r)
	if err != nil {
		return nil, Quiet(err, r.URL.Host)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, &StatusError{r.URL.Host, res.StatusCode}
	}
	b, err := io.ReadAll(io.LimitReader(res.Body, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("the answer of %s is longer than %d bytes", r.URL.Host, most)
	}
	return b, err
}
