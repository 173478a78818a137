package oauth

import (
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
	maxState    = 4 << 10
)

// request is a sign-in that waits for an owner, and then for its client.
type request struct {
	id        string // of the page that waits; only the browser has it
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
	code   string // "" until the browser has fetched it

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
// wrong with the client or with the URI to return to is told on a page; everything else is told to the client.
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
		id: rand.Text(), client: c, redirect: to, given: given, state: v.Get("state"), challenge: v.Get("code_challenge"),
		asks: scopes(v.Get("scope")), from: network(r), until: time.Now().Add(waitTime),
	}
	handle := rand.Text()
	q.handle = handle[:4] + "-" + handle[4:8]
	pageHeaders(w)
	if code, why := s.begin(q, v); code != "" {
		s.log(r, code, why)
		http.Redirect(w, r, s.back(q, url.Values{"error": {code}, "error_description": {why}}), http.StatusSeeOther)
		return
	}
	slog.Info("a program asks to sign in", "client", c.Name, "returns_to", to.Host, "code", q.handle, "from", q.from)
	http.Redirect(w, r, "/authorize/"+q.id, http.StatusSeeOther)
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
	same := 0
	for _, other := range s.waiting {
		if other.from == q.from {
			same++
		}
	}
	if same >= maxFrom || len(s.waiting) >= maxWaiting {
		return "temporarily_unavailable", "too many programs wait for the owner: answer them, or try again in ten minutes"
	}
	s.waiting = append(s.waiting, q)
	return "", ""
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
				Handle: q.handle, Client: q.client.Name, Host: hostOf(q.redirect), Local: isLoopback(q.redirect), Asks: q.asks,
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
	if err := s.Access.CheckSignIn(name, grant, q.signIn()); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.answer != unanswered {
		return errAnswered
	}
	q.answer, q.name, q.grant, q.until = allowed, name, grant, time.Now().Add(fetchWithin)
	return nil
}

// Deny refuses the program with a handle.
func (s *Server) Deny(handle string) error {
	q, err := s.asked(handle)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.answer != unanswered {
		return errAnswered
	}
	q.answer, q.until = denied, time.Now().Add(fetchWithin)
	return nil
}

var errAnswered error = device.Faultf(device.Invalid, "this was answered already")

// asked returns the request with a handle that waits for an owner.
func (s *Server) asked(handle string) (*request, error) {
	q := s.find(func(q *request) bool { return q.handle == strings.ToUpper(handle) && q.answer == unanswered })
	if q == nil {
		return nil, device.Faultf(device.Invalid, "no program waits with the code %.60q; agentsite approve lists those that do", handle)
	}
	return q, nil
}
