package oauth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"agentsite/node/access"
	"agentsite/transport/web"

	"github.com/go-json-experiment/json"
)

// Bounds of what a client says about itself.
const (
	maxName      = 60 // letters
	maxMarks     = 3  // over and under one of them
	maxRedirects = 10
	maxRedirect  = 512      // bytes
	maxClientID  = 6 << 10  // bytes of an identifier, which is sent in URLs
	maxDocument  = 64 << 10 // bytes
)

// The ways in which clients prove themselves at the token endpoint.
const (
	authNone  = "none"
	authBasic = "client_secret_basic"
	authPost  = "client_secret_post"
)

// client is a client, as its identifier says.
type client struct {
	Name      string   `json:"n,omitzero"`
	Redirects []string `json:"r"`
	Auth      string   `json:"a,omitzero"` // "" for none
	id        string
}

func (c *client) hash() access.Hash { return sha256.Sum256([]byte(c.id)) }

// metadata describes a client in its own words, when it registers (RFC 7591), or in its document. What is not
// here is passed over.
type metadata struct {
	ID        string   `json:"client_id,omitzero"`
	Name      string   `json:"client_name,omitzero"`
	Redirects []string `json:"redirect_uris"`
	Auth      string   `json:"token_endpoint_auth_method,omitzero"`
}

// registered answers a registration.
type registered struct {
	metadata
	IssuedAt      int64    `json:"client_id_issued_at"`
	Secret        string   `json:"client_secret,omitzero"`
	SecretExpires *int64   `json:"client_secret_expires_at,omitzero"`
	GrantTypes    []string `json:"grant_types"`
	ResponseTypes []string `json:"response_types"`
}

// redirectError is the error of metadata whose URIs are at fault.
type redirectError struct{ error }

// parseMetadata decodes and checks metadata.
func parseMetadata(text []byte) (c client, id string, err error) {
	var m metadata
	if err := json.Unmarshal(text, &m); err != nil {
		return c, "", errors.New("this is not metadata of a client in JSON")
	}
	if len(m.Redirects) == 0 || len(m.Redirects) > maxRedirects {
		return c, "", redirectError{fmt.Errorf("redirect_uris has 1 to %d URIs, not %d", maxRedirects, len(m.Redirects))}
	}
	for _, text := range m.Redirects {
		if _, err := parseRedirect(text); err != nil {
			return c, "", redirectError{err}
		}
	}
	c = client{Name: cleanName(m.Name), Redirects: m.Redirects, Auth: m.Auth}
	if c.Name == "" {
		u, _ := parseRedirect(m.Redirects[0])
		c.Name = cleanName(u.Host)
	}
	return c, m.ID, nil
}

// cleanName returns a name that is safe to show: one line of a bounded number of letters, none of which changes
// the order or the meaning of others.
func cleanName(name string) string {
	var out []rune
	marks := 0 // in a row: many would cover the lines around
	for _, r := range strings.Join(strings.Fields(name), " ") {
		if len(out) == maxName {
			return string(out) + "…"
		}
		if marks++; !unicode.Is(unicode.M, r) {
			marks = 0
		}
		if unicode.IsPrint(r) && r != unicode.ReplacementChar && marks <= maxMarks {
			out = append(out, r)
		}
	}
	return string(out)
}

var schemeForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9+.-]{1,63}$`) })

// noApps are schemes that a browser or a system handles itself.
var noApps = []string{
	"about", "blob", "chrome", "content", "data", "file", "filesystem", "ftp", "intent", "jar", "javascript", "mailto",
	"resource", "sms", "ssh", "tel", "vbscript", "view-source", "ws", "wss",
}

// parseRedirect checks a URI to which a browser may be sent with a code: https, http on this very machine, or the
// scheme of an app.
func parseRedirect(text string) (*url.URL, error) {
	refused := fmt.Errorf("%.80q is no URI to return to: it has to be an https URL, http://localhost, or that of an app, "+
		"without a user and a fragment", text)
	u, err := url.Parse(text)
	if err != nil || len(text) > maxRedirect || u.User != nil || strings.Contains(text, "#") || !isPlainHost(u.Host) ||
		!strings.HasPrefix(text, u.Scheme+":") ||
		strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }) {
		return nil, refused
	}
	switch {
	case u.Scheme == "https" && u.Hostname() != "", u.Scheme == "http" && isLoopback(u):
	case u.Scheme == "https" || u.Scheme == "http" || !schemeForm().MatchString(u.Scheme) ||
		slices.Contains(noApps, u.Scheme) || u.Host == "" && !strings.Contains(u.Scheme, "."):
		return nil, refused
	}
	return u, nil
}

// isPlainHost reports whether a host has only letters that look like no others. url.Parse decodes further ones:
// https://%D1%81laude.ai is not at claude.ai, and would be shown like it.
func isPlainHost(host string) bool {
	return !strings.ContainsFunc(host, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune(".-_:[]", r))
	})
}

// isLoopback reports whether a URL is at this machine, by a name that nothing else can have.
func isLoopback(u *url.URL) bool {
	if u.Hostname() == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(u.Hostname())
	return err == nil && a.IsLoopback()
}

// redirect returns the URI of a client that a request names: the very same text, but for the port of a
// loopback address (RFC 8252, section 7.3).
func (c *client) redirect(text string) (*url.URL, error) {
	u, err := parseRedirect(text)
	if err != nil {
		return nil, err
	}
	if slices.Contains(c.Redirects, text) {
		return u, nil
	}
	if u.Scheme == "http" {
		for _, have := range c.Redirects {
			v, err := parseRedirect(have)
			if err == nil && v.Scheme == "http" && v.Hostname() == u.Hostname() && v.EscapedPath() == u.EscapedPath() && v.RawQuery == u.RawQuery {
				return u, nil
			}
		}
	}
	return nil, fmt.Errorf("%.80q is not among the redirect_uris of the client", text)
}

// registeredPrefix begins the identifiers of clients that registered here.
const registeredPrefix = "dcr."

// register gives a client an identifier that has in it what the client said, so that nothing is stored.
func (s *Server) register(w http.ResponseWriter, r *http.Request, caller web.Caller) {
	if f := s.slow(r); f != nil {
		s.fail(w, r, f)
		return
	}
	body, done := caller.ReadBody(w, r)
	if body == nil {
		return
	}
	defer done()
	c, _, err := parseMetadata(body.Bytes())
	if err != nil {
		code := "invalid_client_metadata"
		if _, ok := errors.AsType[redirectError](err); ok {
			code = "invalid_redirect_uri"
		}
		s.fail(w, r, &failure{http.StatusBadRequest, code, err.Error()})
		return
	}
	out := registered{
		IssuedAt: time.Now().Unix(), GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		metadata: metadata{Name: c.Name, Redirects: c.Redirects},
	}
	switch c.Auth {
	case authPost, authBasic:
	case "": // RFC 7591, section 2
		c.Auth = authBasic
	default: // what it would rather have is not known here
		c.Auth = ""
	}
	text, _ := json.Marshal(c) // it has a form in JSON
	coded := base64.RawURLEncoding.EncodeToString(text)
	out.ID = registeredPrefix + coded + "." + base64.RawURLEncoding.EncodeToString(s.mac("client", coded)[:16])
	if len(out.ID) > maxClientID {
		s.fail(w, r, &failure{http.StatusBadRequest, "invalid_redirect_uri", "these URIs are too long together"})
		return
	}
	if out.Auth = authNone; c.Auth != "" {
		out.Auth, out.Secret, out.SecretExpires = c.Auth, s.clientSecret(out.ID), new(int64)
	}
	answer(w, http.StatusCreated, out)
}

// clientSecret returns the secret of a client that registered for one.
func (s *Server) clientSecret(id string) string {
	return base64.RawURLEncoding.EncodeToString(s.mac("client secret", id))
}

// parseID returns the client of an identifier that register made.
func (s *Server) parseID(id string) (c client, err error) {
	rest, ok := strings.CutPrefix(id, registeredPrefix)
	coded, mac, ok2 := strings.Cut(rest, ".")
	want := base64.RawURLEncoding.EncodeToString(s.mac("client", coded)[:16])
	if !ok || !ok2 || len(id) > maxClientID || !hmac.Equal([]byte(mac), []byte(want)) {
		return c, errors.New("this client is not registered here: it has to register again")
	}
	text, err := base64.RawURLEncoding.DecodeString(coded)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	c.id = id
	return c, err
}
