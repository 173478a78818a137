package oauth

import (
	"crypto/hmac"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/acts"
	"agentsite/transport/web"
)

const (
	waitTime    = 10 * time.Minute // for an owner
	fetchWithin = 5 * time.Minute  // by the browser, once an owner has answered
	codeTime    = time.Minute      // from the browser to the client's first use
	maxWaiting  = 32
	maxFrom     = 4 // that wait, of one network
	maxNear     = 8 // of one provider
	maxState    = 4 << 10
)

// request is a sign-in that waits for an owner, and then for its client.
type request struct {
	id        string // of the page that waits
	browser   string // in a cookie of the browser that began
	handle    string // on both screens
	client    client
	redirect  *url.URL
	given     string // the redirect_uri, as it came
	state     string
	challenge string
	asks      []string
	from      netip.Prefix
	until     time.Time

	answer reply
	name   string // under which it is signed in
	grant  []byte
	of     access.Hash // of the token whose sign-in it replaces; zero for none
	code   string      // "" until the browser has fetched it

	exchanging sync.Mutex
	exchanged  bool
}

type reply byte

const (
	unanswered reply = iota
	allowed
	denied
)

// forget drops what is over. The lock is held.
func (s *Server) forget() {
	now := time.Now()
	s.waiting = slices.DeleteFunc(s.waiting, func(q *request) bool { return !now.Before(q.until) })
}

// find returns a copy of the request that fits, nil for none.
func (s *Server) find(fits func(*request) bool) *request {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	if i := slices.IndexFunc(s.waiting, fits); i >= 0 {
		return s.waiting[i]
	}
	return nil
}

// repeatable may come more than once (RFC 8707).
const repeatable = "resource"

// authorize takes a client's request to sign in, and sends the browser to a page of its own that waits. What is
// wrong is told on a page, from which a link leads back to the client if that and the URI to return to are right.
// Anybody can register a client, so that no browser is sent elsewhere before an owner has answered.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request, _ web.Caller) {
	if r.Method == http.MethodHead {
		pageHeaders(w)
		return
	}
	if f := s.slow(r); f != nil {
		s.showFailure(w, r, f.status, f.Why)
		return
	}
	if _, sure := s.Access.Now(); !sure && !s.Access.LastKnown {
		s.showFailure(w, r, http.StatusServiceUnavailable, access.ErrNoTime.Error())
		return
	}
	v, err := url.ParseQuery(r.URL.RawQuery)
	for name, values := range v {
		if len(values) > 1 && name != repeatable {
			err = errors.New("the program sent " + cleanName(name) + " twice")
		}
	}
	var c client
	var to *url.URL
	if err == nil {
		c, err = s.client(r, v.Get("client_id"))
	}
	if err == nil {
		s.named(r, c.Name)
	}
	if errors.Is(err, errBusy) {
		s.showFailure(w, r, http.StatusServiceUnavailable, err.Error())
		return
	}
	given := v.Get("redirect_uri")
	if err == nil {
		if given == "" && len(c.Redirects) == 1 {
			given = c.Redirects[0]
		}
		to, err = c.redirect(given)
	}
	if err == nil && len(v.Get("state")) > maxState {
		err = errors.New("the program's state is too long")
	}
	if err != nil {
		s.showFailure(w, r, http.StatusBadRequest, err.Error())
		return
	}
	q := &request{
		id: rand.Text(), browser: rand.Text(), client: c, redirect: to, given: given, state: v.Get("state"), challenge: v.Get("code_challenge"),
		asks: scopes(v.Get("scope")), from: network(r), until: time.Now().Add(waitTime),
	}
	handle := rand.Text()
	q.handle = handle[:4] + "-" + handle[4:8]
	pageHeaders(w)
	if code, why := s.begin(q, v); code != "" {
		s.log(r, code, why)
		s.showRefused(w, q, why, s.back(q, url.Values{"error": {code}, "error_description": {why}}))
		return
	}
	slog.Info("a program asks to sign in", "client", c.Name, "returns_to", to.Host, "code", q.handle, "from", q.from)
	http.SetCookie(w, &http.Cookie{
		Name: q.cookie(), Value: q.browser, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		MaxAge: int((waitTime + fetchWithin + codeTime).Seconds()),
	})
	http.Redirect(w, r, "/authorize/"+q.id, http.StatusSeeOther)
}

// cookie returns the name of the cookie by which the page knows its browser. No other host can set one of that name.
func (q *request) cookie() string { return "__Host-" + q.id[:8] }

// isBrowser reports whether a request is from the browser that began, or from no browser: somebody who sends an owner
// the link of a page of their own does not have the owner's browser show its code. A program may keep no cookies.
func (q *request) isBrowser(r *http.Request) bool {
	c, err := r.Cookie(q.cookie())
	return r.Header.Get("Sec-Fetch-Site") == "" || err == nil && hmac.Equal([]byte(c.Value), []byte(q.browser))
}

// begin checks a request and has it wait. It returns the code of the error otherwise.
func (s *Server) begin(q *request, v url.Values) (code, why string) {
	switch {
	case v.Get("response_type") != "code":
		return "unsupported_response_type", "response_type has to be code"
	case v.Get("response_mode") != "" && v.Get("response_mode") != "query":
		return "invalid_request", "response_mode has to be query"
	case v.Get("code_challenge_method") != "S256" || !isChallenge(q.challenge):
		return "invalid_request", "PKCE with S256 is needed: code_challenge and code_challenge_method"
	case v.Get("request") != "" || v.Get("request_uri") != "":
		return "request_not_supported", "requests come as parameters only"
	case v.Get("prompt") == "none":
		return "consent_required", "an owner of the site has to allow this"
	case !s.isResource(v[repeatable]):
		return "invalid_target", "this site gives tokens for " + s.URL + " only"
	case !s.Access.Claimed():
		return "temporarily_unavailable", "nobody owns this site yet, so that nobody can allow this"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	all, near, same := 0, 0, 0
	for _, other := range s.waiting {
		if other.answer != unanswered {
			continue // an owner made it one less
		}
		if all++; provider(other.from) == provider(q.from) {
			near++
		}
		if other.from == q.from {
			same++
		}
	}
	if same >= maxFrom || near >= maxNear || all >= maxWaiting {
		return "temporarily_unavailable", "too many programs wait for the owner: answer them, or try again in ten minutes"
	}
	s.waiting = append(s.waiting, q)
	return "", ""
}

// provider returns the network of a provider, of whom one caller may have several networks at no cost.
func provider(from netip.Prefix) netip.Prefix {
	bits := 32
	if from.Addr().Is4() {
		bits = 24
	}
	p, _ := from.Addr().Prefix(bits) // that of no address where there is none
	return p
}

// client returns the client with an identifier.
func (s *Server) client(r *http.Request, id string) (client, error) {
	if strings.HasPrefix(id, registeredPrefix) {
		return s.parseID(id)
	}
	return s.documents.client(r.Context(), id, network(r))
}

// scopes returns the words of permissions among those that a client asks for, read if there is none.
func scopes(text string) (words []string) {
	asked := strings.Fields(text)
	for _, word := range access.AllScopes() {
		if slices.Contains(asked, word) {
			words = append(words, word)
		}
	}
	if words == nil {
		words = access.AllScopes()[:1]
	}
	return words
}

// isChallenge reports whether a text is a SHA-256 in base64url.
func isChallenge(text string) bool {
	return len(text) == 43 && !strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	})
}

// isResource reports whether a client means this site by each resource that it names: by its URL or its origin,
// with a slash at the end or without, and with the host in any case.
func (s *Server) isResource(all []string) bool {
	for _, text := range all {
		text = strings.TrimSuffix(text, "/")
		rest, ok := cutFold(text, s.base)
		if !ok || rest != "" && rest != s.URL[len(s.base):] {
			return false
		}
	}
	return true
}

func cutFold(text, prefix string) (rest string, ok bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return "", false
	}
	return text[len(prefix):], true
}

// back returns the URL that sends the browser back to the client with an answer (RFC 9207).
func (s *Server) back(q *request, v url.Values) string {
	to := *q.redirect
	all := to.Query()
	for name := range v {
		all.Set(name, v.Get(name))
	}
	if q.state != "" {
		all.Set("state", q.state)
	}
	all.Set("iss", s.base)
	to.RawQuery = all.Encode()
	return to.String()
}

// wait is the page that waits for an owner. It is loaded again by itself, until it sends the browser back. However
// often it is loaded, the client gets one code.
func (s *Server) wait(w http.ResponseWriter, r *http.Request, _ web.Caller) {
	q := s.find(func(q *request) bool { return q.id == r.PathValue("id") })
	if q == nil {
		s.showFailure(w, r, http.StatusGone, "this is over, or nobody allowed it in time: begin again in your program")
		return
	}
	if !q.isBrowser(r) {
		s.showFailure(w, r, http.StatusForbidden, "this began in another browser, or yours keeps no cookies: "+
			"approve no code of it, and begin again in your own program")
		return
	}
	if r.Method == http.MethodHead {
		pageHeaders(w)
		return
	}
	s.mu.Lock()
	answer, done := q.answer, q.exchanged
	if answer == allowed && q.code == "" {
		q.code = rand.Text() + rand.Text()
		q.until = time.Now().Add(codeTime)
	}
	s.mu.Unlock()
	var to string
	switch {
	case done:
		s.showDone(w, q)
		return
	case answer == allowed:
		to = s.back(q, url.Values{"code": {q.code}})
	case answer == denied:
		to = s.back(q, url.Values{"error": {"access_denied"}, "error_description": {"the owner said no"}})
	default:
		s.showWaiting(w, q)
		return
	}
	if q.redirect.Scheme == "http" || q.redirect.Scheme == "https" {
		pageHeaders(w)
		http.Redirect(w, r, to, http.StatusSeeOther)
		return
	}
	s.showApp(w, q, to)
}

// Waiting lists the programs that wait for an owner, the oldest first.
func (s *Server) Waiting() (all []acts.SignIn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	for _, q := range s.waiting {
		if q.answer == unanswered {
			all = append(all, acts.SignIn{
				Handle: q.handle, Client: q.client.Name, Host: hostOf(q.redirect), Local: isLocal(q.redirect), Asks: q.asks,
				From: q.from.Addr().String(), Replaces: s.Access.SignInOf(q.signIn()), Left: time.Until(q.until).Seconds(),
			})
		}
	}
	return all
}

// hostOf returns what an owner recognises a client by.
func hostOf(u *url.URL) string {
	if u.Scheme == "http" || u.Scheme == "https" {
		return u.Host
	}
	return u.Scheme + "://" + u.Host
}

// isLocal reports whether a URI leads to a program on the browser's own computer: an app has a scheme of its own.
func isLocal(u *url.URL) bool { return u.Scheme != "https" || isLoopback(u) }

// signIn returns what is stored of a client.
func (q *request) signIn() access.SignIn {
	host := hostOf(q.redirect)
	if isLoopback(q.redirect) {
		host = q.redirect.Hostname() // it takes another port each time
	}
	return access.SignIn{Client: q.client.Name, Host: host, ID: q.client.hash()}
}

// Allow lets the program with a handle sign in under a name, with a grant that an owner signed.
func (s *Server) Allow(handle, name string, grant []byte) error {
	q, err := s.asked(handle)
	if err != nil {
		return err
	}
	of, err := s.Access.CheckSignIn(name, grant, q.signIn())
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.answer != unanswered {
		return errAnswered
	}
	q.answer, q.name, q.grant, q.of, q.until = allowed, name, grant, of, time.Now().Add(fetchWithin)
	return nil
}

// Deny refuses the program with a handle. It also takes back an owner's yes, until the program has its tokens.
func (s *Server) Deny(handle string) error {
	q := s.find(func(q *request) bool { return q.handle == strings.ToUpper(handle) && q.answer != denied })
	if q == nil {
		return errNone(handle)
	}
	q.exchanging.Lock()
	defer q.exchanging.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.exchanged {
		return device.Faultf(device.Invalid, "it is signed in already: agentsite revoke %s ends it", q.name)
	}
	q.answer, q.until = denied, time.Now().Add(fetchWithin)
	return nil
}

var errAnswered error = device.Faultf(device.Invalid, "this was answered already")

// asked returns the request with a handle that waits for an owner.
func (s *Server) asked(handle string) (*request, error) {
	q := s.find(func(q *request) bool { return q.handle == strings.ToUpper(handle) && q.answer == unanswered })
	if q == nil {
		return nil, errNone(handle)
	}
	return q, nil
}

func errNone(handle string) error {
	return device.Faultf(device.Invalid, "no program waits with the code %.60q; agentsite approve lists those that do", handle)
}
