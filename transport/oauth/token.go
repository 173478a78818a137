package oauth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/node/access"
	"agentsite/transport/web"
)

// An access token counts for accessLife. It ends at once when an owner ends the sign-in, so that a shorter
// life would only cost the card writes; some clients fail at refreshing once an hour.
const accessLife = 24 * time.Hour

// tokens answers the token endpoint.
type tokens struct {
	Access  string `json:"access_token"`
	Type    string `json:"token_type"`
	Expires int64  `json:"expires_in"`
	Refresh string `json:"refresh_token"`
	Scope   string `json:"scope,omitzero"`
}

// refreshPrefix begins refresh tokens. The family follows, and a secret, in hexadecimal digits.
const refreshPrefix = "asr_"

// derive returns the tokens that a code or a refresh token is exchanged for at a time. They are always the same, so that
// a client that asks twice at once gets them twice, though only hashes are stored.
func (s *Server) derive(seed string, family [16]byte, at int64) (t tokens, p access.Pair) {
	seed = strconv.FormatInt(at, 10) + " " + seed
	t.Access = access.SignInPrefix + hex.EncodeToString(s.mac("access", seed))
	t.Refresh = refreshPrefix + hex.EncodeToString(family[:]) + hex.EncodeToString(s.mac("refresh", seed))
	t.Type = "Bearer"
	p.Access, _ = access.HashSignIn(t.Access)
	p.Refresh = sha256.Sum256([]byte(t.Refresh))
	return t, p
}

// parseRefresh returns the family of a refresh token.
func parseRefresh(token string) (family [16]byte, ok bool) {
	digits, ok := strings.CutPrefix(token, refreshPrefix)
	b, err := hex.DecodeString(digits)
	if !ok || err != nil || len(b) != len(family)+sha256.Size {
		return family, false
	}
	return [16]byte(b[:16]), true
}

// form reads the form of a request, in which nothing but resource comes twice.
func form(w http.ResponseWriter, r *http.Request, caller web.Caller) (v url.Values, f *failure) {
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(media), "application/x-www-form-urlencoded") {
		return nil, &failure{http.StatusBadRequest, "invalid_request", "Content-Type has to be application/x-www-form-urlencoded"}
	}
	body, done := caller.ReadBody(w, r)
	if body == nil {
		return nil, nil
	}
	defer done()
	v, err := url.ParseQuery(body.String())
	for name, values := range v {
		if len(values) > 1 && name != repeatable {
			err = errors.New("a parameter comes twice")
		}
	}
	if err != nil {
		return nil, &failure{http.StatusBadRequest, "invalid_request", err.Error()}
	}
	return v, nil
}

// token exchanges a code, or a refresh token, for tokens.
func (s *Server) token(w http.ResponseWriter, r *http.Request, caller web.Caller) {
	f := s.slow(r)
	var v url.Values
	if f == nil {
		if v, f = form(w, r, caller); v == nil && f == nil {
			return
		}
	}
	var t tokens
	if f == nil {
		t, f = s.exchange(r, v)
	}
	if f != nil {
		if f.Code == "invalid_client" && r.Header.Get("Authorization") != "" {
			w.Header().Set("WWW-Authenticate", `Basic realm="agentsite"`)
		}
		s.fail(w, r, f)
		return
	}
	answer(w, http.StatusOK, t)
}

func (s *Server) exchange(r *http.Request, v url.Values) (t tokens, f *failure) {
	c, f := s.authenticate(r, v)
	if f != nil {
		return t, f
	}
	if !s.isResource(v[repeatable]) {
		return t, &failure{http.StatusBadRequest, "invalid_target", "this site gives tokens for " + s.URL + " only"}
	}
	var left time.Duration
	var err error
	switch v.Get("grant_type") {
	case "authorization_code":
		t, left, err = s.useCode(c, v)
	case "refresh_token":
		t, left, err = s.refresh(c, v.Get("refresh_token"))
	default:
		return t, &failure{http.StatusBadRequest, "unsupported_grant_type", "grant_type is authorization_code or refresh_token"}
	}
	if t.Expires = int64(left.Seconds()); err == nil {
		return t, nil
	}
	switch kind := device.AsFault(err).Kind; {
	case errors.Is(err, access.ErrReplayed), kind == device.Denied, kind == device.Invalid:
		return t, &failure{http.StatusBadRequest, "invalid_grant", err.Error()}
	case kind == device.Busy:
		return t, &failure{http.StatusTooManyRequests, "temporarily_unavailable", err.Error()}
	default: // the time is not known, or the disk does not store it
		return t, &failure{http.StatusServiceUnavailable, "temporarily_unavailable", err.Error()}
	}
}

// authenticate returns the client that asks for tokens. One that registered for a secret has to have it.
func (s *Server) authenticate(r *http.Request, v url.Values) (c client, f *failure) {
	id, secret := v.Get("client_id"), v.Get("client_secret")
	if name, password, ok := r.BasicAuth(); ok {
		name, err := url.QueryUnescape(name)
		password, err2 := url.QueryUnescape(password)
		if err != nil || err2 != nil || id != "" && id != name {
			return c, &failure{http.StatusUnauthorized, "invalid_client", "the client's identifier or secret cannot be read"}
		}
		id, secret = name, password
	}
	if id == "" {
		return c, &failure{http.StatusBadRequest, "invalid_request", "client_id is missing"}
	}
	if !strings.HasPrefix(id, registeredPrefix) { // what it may do is not decided by its document
		if checkDocumentURL(id) != nil {
			return c, &failure{http.StatusUnauthorized, "invalid_client", "this client is not registered here: it has to register again"}
		}
		return client{id: id}, nil
	}
	c, err := s.parseID(id)
	if err == nil && c.Auth != "" && !hmac.Equal([]byte(secret), []byte(s.clientSecret(id))) {
		err = errors.New("the client's secret is not the one that it registered for")
	}
	if err != nil {
		return c, &failure{http.StatusUnauthorized, "invalid_client", err.Error()}
	}
	return c, nil
}

var errCode error = device.Faultf(device.Denied, "unknown or ended code: begin again")

// useCode exchanges a code, by which the client signs in. A client that lost the answer may ask again.
func (s *Server) useCode(c client, v url.Values) (t tokens, left time.Duration, err error) {
	code, verifier := v.Get("code"), v.Get("code_verifier")
	q := s.find(func(q *request) bool { return q.code != "" && hmac.Equal([]byte(q.code), []byte(code)) })
	sum := sha256.Sum256([]byte(verifier))
	switch to := v.Get("redirect_uri"); {
	case q == nil || q.client.id != c.id || to != "" && to != q.given:
		return t, 0, errCode
	case len(verifier) < 43 || len(verifier) > 128 || !hmac.Equal([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(q.challenge)):
		return t, 0, device.Faultf(device.Denied, "code_verifier is not that of the code's challenge")
	}
	in := q.signIn()
	in.Family = [16]byte(s.mac("family", code))
	in.Last, in.Unused, in.Of = sha256.Sum256([]byte(code)), true, q.of
	g, err := access.ParseGrant(q.grant)
	if err != nil {
		return t, 0, err
	}
	defer func() { t.Scope = strings.Join(access.ScopesOf(g), " ") }()
	q.exchanging.Lock()
	defer q.exchanging.Unlock()
	switch done, may := s.progress(q); {
	case done:
		return s.renew(in.Family, in.ID, code, true)
	case !may: // an owner took it back
		return t, 0, errCode
	}
	now, _ := s.Access.Now()
	in.At = now.Unix()
	t, in.Pair = s.derive(code, in.Family, in.At)
	if left, err = s.Access.AddSignIn(q.name, q.grant, in, accessLife); err != nil {
		return t, 0, err
	}
	s.mu.Lock()
	q.exchanged = true
	s.mu.Unlock()
	slog.Info("a program signed in", "client", q.client.Name, "name", q.name)
	return t, left, nil
}

// progress reports whether a request has got its tokens, and whether it may.
func (s *Server) progress(q *request) (done, may bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return q.exchanged, q.answer == allowed
}

// refresh exchanges a refresh token.
func (s *Server) refresh(c client, token string) (t tokens, left time.Duration, err error) {
	family, ok := parseRefresh(token)
	if !ok {
		return t, 0, device.Faultf(device.Denied, "this is no refresh token of this site: sign in again")
	}
	known := slices.ContainsFunc(s.Access.Tokens(), func(t access.Token) bool { return t.SignIn != nil && t.SignIn.Family == family })
	if known && !s.refreshes.Allow(family) { // a bucket for each that somebody makes up would use up memory
		return t, 0, device.Faultf(device.Busy, "refreshed too often: an access token counts for %v", device.FormatDuration(accessLife))
	}
	return s.renew(family, c.hash(), token, false)
}

// renew exchanges a code that was used, or a refresh token.
func (s *Server) renew(
	family [16]byte, client access.Hash, seed string, isCode bool,
) (t tokens, left time.Duration, err error) {
	pair := func(at int64) access.Pair {
		_, p := s.derive(seed, family, at)
		return p
	}
	at, left, err := s.Access.Refresh(family, client, sha256.Sum256([]byte(seed)), isCode, pair, accessLife)
	t, _ = s.derive(seed, family, at)
	return t, left, err
}

// revoke ends the sign-in of a token (RFC 7009). Whoever has the token may.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request, caller web.Caller) {
	f := s.slow(r)
	var v url.Values
	if f == nil {
		if v, f = form(w, r, caller); v == nil && f == nil {
			return
		}
	}
	if f != nil {
		s.fail(w, r, f)
		return
	}
	token := v.Get("token")
	family, isRefresh := parseRefresh(token)
	hash, isAccess := access.HashSignIn(token)
	if isRefresh || isAccess {
		if err := s.Access.RevokeSignIn(family, isRefresh, hash); err != nil {
			s.fail(w, r, &failure{http.StatusServiceUnavailable, "temporarily_unavailable", err.Error()})
			return
		}
	}
	answer(w, http.StatusOK, struct{}{})
}
