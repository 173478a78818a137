package page

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/agents/principal"
	"agentsite/device"
	"agentsite/transport/web"
)

const (
	idleTimeout = 8 * time.Hour
	maxSessions = 16 // of links, and of each account; beyond it the one that was idle for longest ends
	maxLinks    = 16 // beyond it the oldest does not count any more
	maxAgent    = 200
)

// sessions are what one-use links and their bearers are good for. They are in memory only: nobody is signed
// in after a restart. The methods are safe for concurrent use.
type sessions struct {
	mu    sync.Mutex
	links []link
	all   []*session // as they were asked for, the longest ago first
	last  int        // the number of the newest session
}

type link struct {
	key   [sha256.Size]byte
	until time.Time
}

type session struct {
	token       [sha256.Size]byte
	number      int    // never used again
	key         string // whose session it is; "" for one of a link
	account     string // the key's quota when the session began
	agent       string
	begun, used time.Time
	running     int // requests that Bind bound
	ended       context.Context
	end         context.CancelFunc
}

// link makes the key of a link, of 130 bits, that counts once and for so long.
func (s *sessions) link(valid time.Duration) string {
	key := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	s.links = append(s.links, link{sha256.Sum256([]byte(key)), time.Now().Add(valid)})
	s.links = s.links[max(0, len(s.links)-maxLinks):]
	return key
}

// begin takes the key of a link, which does not count again, and returns the token of a new session.
func (s *sessions) begin(key, agent string) (token string, ok bool) {
	got := sha256.Sum256([]byte(key))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	i := slices.IndexFunc(s.links, func(l link) bool { return subtle.ConstantTimeCompare(l.key[:], got[:]) == 1 })
	if i < 0 {
		return "", false
	}
	s.links = slices.Delete(s.links, i, i+1)
	return s.add(session{}, agent), true
}

// beginKey returns the token of a new session of a key.
func (s *sessions) beginKey(key, account, agent string) (token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	return s.add(session{key: key, account: account}, agent)
}

// add begins a session and returns its token. The lock is held.
func (s *sessions) add(n session, agent string) (token string) {
	token = rand.Text() + rand.Text()
	s.last++
	n.token, n.number = sha256.Sum256([]byte(token)), s.last
	n.begun = time.Now()
	n.used = n.begun
	n.agent = strings.ToValidUTF8(agent[:min(len(agent), maxAgent)], "")
	n.ended, n.end = context.WithCancel(context.Background())
	var same []*session
	for _, o := range s.all {
		if o.account == n.account {
			same = append(same, o)
		}
	}
	if len(same) >= maxSessions {
		idle := slices.MinFunc(same, idleFirst)
		s.drop(func(o *session) bool { return o == idle })
	}
	s.all = append(s.all, &n)
	return token
}

// idleFirst orders sessions without a running request before others, and then those that were idle for longest.
func idleFirst(a, b *session) int {
	return cmp.Or(cmp.Compare(min(a.running, 1), min(b.running, 1)), a.used.Compare(b.used))
}

// sees reports whether a session lists and ends another: one of a key only the key's, all others all.
func (n *session) sees(other *session) bool { return n == nil || n.key == "" || n.key == other.key }

// use returns the session of a token, nil for none, and notes that it is used.
func (s *sessions) use(token string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(token)
}

// find is use under the lock.
func (s *sessions) find(token string) *session {
	got := sha256.Sum256([]byte(token))
	s.forget()
	i := slices.IndexFunc(s.all, func(n *session) bool { return subtle.ConstantTimeCompare(n.token[:], got[:]) == 1 })
	if i < 0 {
		return nil
	}
	used := s.all[i]
	used.used = time.Now()
	s.all = append(slices.Delete(s.all, i, i+1), used)
	return used
}

// bind returns a context that ends with ctx and with the session of a token, which is used until done is
// called. Without a session, it is ctx.
func (s *sessions) bind(ctx context.Context, token string) (bound context.Context, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.find(token)
	if n == nil {
		return ctx, func() {}
	}
	n.running++
	bound, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(n.ended, cancel)
	return bound, func() {
		stop()
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		n.running--
		n.used = time.Now()
	}
}

// end ends the session with a number, if own sees it.
func (s *sessions) end(number int, own *session) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.all)
	s.drop(func(n *session) bool { return n.number == number && own.sees(n) })
	return len(s.all) < before
}

// close ends all sessions and links.
func (s *sessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.links = nil
	s.drop(func(*session) bool { return true })
}

// drop ends sessions, with their running requests. The lock is held.
func (s *sessions) drop(over func(*session) bool) {
	s.all = slices.DeleteFunc(s.all, func(n *session) bool {
		if !over(n) {
			return false
		}
		n.end()
		return true
	})
}

// list describes the sessions that own, the asker's, sees, the newest first.
func (s *sessions) list(own *session) []listed {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	all := make([]listed, 0, len(s.all))
	for _, n := range s.all {
		if own.sees(n) {
			all = append(all, listed{
				n.number, n.agent, time.Since(n.begun).Seconds(), time.Since(n.used).Seconds(), n == own,
			})
		}
	}
	slices.SortFunc(all, func(a, b listed) int { return b.Number - a.Number })
	return all
}

// listed is a session as others see it.
type listed struct {
	Number int     `json:"session"`
	Agent  string  `json:"browser"` // what it calls itself
	Age    float64 `json:"age_seconds"`
	Idle   float64 `json:"idle_seconds"`
	Own    bool    `json:"own,omitzero"` // the asker's
}

// forget drops the links and the sessions that are over. The lock is held.
func (s *sessions) forget() {
	now := time.Now()
	s.links = slices.DeleteFunc(s.links, func(l link) bool { return !now.Before(l.until) })
	s.drop(func(n *session) bool { return n.running == 0 && now.Sub(n.used) >= idleTimeout })
}

// callers are the sessions of a page, and others beside them.
type callers struct {
	page *Page
	web.Callers
}

// Bearer returns the principal of a session for its token. That of a link counts on this machine only. That
// of a key is whoever the key is now, and no owner.
func (c callers) Bearer(token string, here bool) (principal.Principal, error) {
	if n := c.page.sessions.use(token); n != nil && n.key != "" {
		who, err := c.Callers.Key(n.key)
		if err == nil && who.Owner {
			return principal.Principal{}, errOwnerKey
		}
		return who, err
	} else if n != nil && here {
		return c.page.who, nil
	}
	return c.Callers.Bearer(token, here)
}

// Nobody are the callers beside the sessions where there are no others.
type Nobody struct{}

func (Nobody) Key(string) (principal.Principal, error) { return principal.Principal{}, errOut }

func (Nobody) Bearer(string, bool) (principal.Principal, error) {
	return principal.Principal{}, errOut
}

var errOwnerKey = device.Faultf(device.Denied, "a key in a browser does not act as an owner")

var errOut = device.Faultf(device.Denied, "signed out: agentsite open prints a new link")
