package site

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/node/access"
	"agentsite/node/config"
	"agentsite/node/identity"
	"agentsite/transport/public"
	"agentsite/transport/public/certificate"
	"agentsite/transport/web"

	"github.com/libp2p/go-libp2p/core/peer"
)

// TestNameChosen: the site keeps the name of its certificate while a relay gives it, waits for it after a start, and
// takes another only then. Nothing is ordered for a name that no relay brings callers of.
func TestNameChosen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		certs, err := certificate.Open(certificate.Options{Directory: "d", Read: func() ([]byte, error) { return nil, nil }})
		if err != nil {
			t.Fatal(err)
		}
		stored := ""
		newName := func(own string) *publicName {
			return &publicName{
				own: own, relays: []peer.ID{"a", "b"}, certs: certs, missed: time.Now(), answers: make(map[peer.ID]answer),
				handle: func(string) http.Handler { return http.NotFoundHandler() }, certified: func() string { return stored },
			}
		}
		lost := errors.New("lost")
		is := func(p *publicName, name string, reached bool) {
			t.Helper()
			if p.name != name || p.reached != reached {
				t.Errorf("it is %q, reached: %v; not %q, %v", p.name, p.reached, name, reached)
			}
		}

		p := newName("")
		is(p, "", false)
		p.heard("b", public.Answer{Name: "x.b"}, nil)
		is(p, "x.b", true)
		stored = "x.b"
		p.heard("a", public.Answer{Name: "x.a"}, nil) // the first relay comes later
		is(p, "x.b", true)
		p.heard("b", public.Answer{}, lost) // and takes over only after its time
		is(p, "x.b", false)

		p = newName("") // a relay that comes back, however long the site has run
		p.heard("a", public.Answer{Name: "x.a"}, nil)
		p.heard("b", public.Answer{Name: "x.b"}, nil)
		for range 3 {
			time.Sleep(24 * time.Hour)
			p.heard("b", public.Answer{}, lost)
			is(p, "x.b", false)
			time.Sleep(keepNameFor - 1)
			p.heard("b", public.Answer{}, lost)
			is(p, "x.b", false)
			p.heard("b", public.Answer{Name: "x.b"}, nil)
			is(p, "x.b", true)
		}
		p.heard("b", public.Answer{}, lost)
		time.Sleep(keepNameFor)
		p.heard("b", public.Answer{}, lost)
		is(p, "x.a", true)

		stored = "" // the first certificate is not there yet
		p = newName("")
		time.Sleep(24 * time.Hour)
		p.heard("a", public.Answer{Name: "x.a"}, nil)
		p.heard("b", public.Answer{Name: "x.b"}, nil)
		p.heard("a", public.Answer{}, lost)
		is(p, "x.a", false)
		stored = "x.b"

		p = newName("")
		p.heard("a", public.Answer{Name: "x.a"}, nil)
		is(p, "", false)
		p.heard("b", public.Answer{Name: "x.b"}, nil)
		is(p, "x.b", true)
		p = newName("")
		p.heard("a", public.Answer{Name: "x.a"}, nil)
		time.Sleep(keepNameFor)
		p.choose()
		is(p, "x.a", true)

		p = newName("board.example.org")
		p.heard("a", public.Answer{Name: "x.a", Why: "no CNAME"}, nil)
		is(p, "board.example.org", false)
		p.heard("b", public.Answer{Name: "x.b", Own: true}, nil)
		is(p, "board.example.org", true)
		if from := p.outsiders(); len(from) != 1 || from[0] != "a" {
			t.Errorf("it is looked at from %v", from)
		}
		if s := p.state(); len(s.Relays) != 2 || s.Relays[0].Why == "" || s.Relays[1].Why != "" || s.Target == "" {
			t.Errorf("%+v", s)
		}
	})
}

type answering func(*http.Request) *http.Response

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) { return a(r), nil }

// TestAlarm: a certificate of somebody else in the log is an alarm of its own, beside what is wrong with the site.
func TestAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const name = "board.example.org"
		certs, err := certificate.Open(certificate.Options{
			Directory: "https://authority.test/", Log: "https://log.test/", Now: func() (time.Time, bool) { return time.Now(), true },
			Read: func() ([]byte, error) { return nil, nil }, Write: func([]byte) error { return nil },
			Client: &http.Client{Transport: answering(func(r *http.Request) *http.Response {
				w := httptest.NewRecorder()
				if r.URL.Host == "log.test" && r.URL.Query().Get("q") == name {
					w.WriteString(`[{"issuer_name":"C=XX, O=Somebody","serial_number":"0abc","not_after":"2001-01-01T00:00:00"}]`)
				} else {
					w.WriteHeader(http.StatusNotFound)
				}
				return w.Result()
			})},
		})
		if err != nil {
			t.Fatal(err)
		}
		certs.SetName(name)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		certs.Run(ctx)
		s := (&publicName{own: name, certs: certs}).state()
		if len(s.Alarms) != 1 || !strings.Contains(s.Alarms[0], "abc") || !strings.Contains(s.Alarms[0], "Somebody") || s.LogRead.IsZero() {
			t.Errorf("%+v", s)
		}
	})
}

// TestNoNameYet: before a name is chosen, callers are told to come again.
func TestNoNameYet(t *testing.T) {
	w := httptest.NewRecorder()
	new(publicName).ServeHTTP(w, httptest.NewRequest("POST", "https://board.example.org/mcp", nil))
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

// TestBehindProxies: a listener for proxies takes nobody else, and believes of a caller what the last proxy adds that
// is not behind another one.
func TestBehindProxies(t *testing.T) {
	proxies := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.9"), netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("2001:db8::9")}
	p := &publicName{proxies: proxies}
	var seen *http.Request
	h := http.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r }))
	p.handler.Store(&h)
	for _, c := range []struct {
		from, says, want string // "" for a refusal
	}{
		{"192.0.2.1:1", "", "192.0.2.1:1"},
		{"192.0.2.1:1", "127.0.0.1, 198.51.100.7", "198.51.100.7:0"},
		{"[::ffff:192.0.2.1]:1", "2001:db8::1", "[2001:db8::1]:0"},
		{"192.0.2.1:1", "198.51.100.7, what", "192.0.2.1:1"},
		{"192.0.2.2:1", "192.0.2.1", ""},
		{"127.0.0.2:1", "", ""},
		{"127.0.0.1:1", "198.51.100.7", "198.51.100.7:0"},
		{"127.0.0.1:1", "203.0.113.5, 198.51.100.7, 192.0.2.9", "198.51.100.7:0"}, // two hops
		{"127.0.0.1:1", "203.0.113.5, 198.51.100.7, 2001:db8::9, ::ffff:192.0.2.9", "198.51.100.7:0"},
		{"127.0.0.1:1", "192.0.2.9, 127.0.0.1", "127.0.0.1:1"}, // the proxies alone
		{"127.0.0.1:1", "198.51.100.7:1234", "198.51.100.7:0"},
		{"127.0.0.1:1", "[2001:db8::1]:1234", "[2001:db8::1]:0"},
		{"127.0.0.1:1", "[2001:db8::1]", "[2001:db8::1]:0"},
		{"127.0.0.1:1", "fe80::1%eth0", "[fe80::1]:0"},
		{"127.0.0.1:1", "198.51.100.7,", "127.0.0.1:1"},
		{"127.0.0.1:1", "198.51.100.7, unknown", "127.0.0.1:1"},
		{"127.0.0.1:1", strings.Repeat("198.51.100.7,", 1000) + "x", "127.0.0.1:1"},
	} {
		seen = nil
		r := httptest.NewRequest("GET", "http://board.example.org/mcp", nil)
		r.RemoteAddr = c.from
		if c.says != "" {
			r.Header.Set("X-Forwarded-For", c.says)
		}
		r.Header.Set("Forwarded", "for=203.0.113.9")
		r.Header.Set("X-Real-IP", "203.0.113.9")
		w := httptest.NewRecorder()
		behindProxies{p}.ServeHTTP(w, r)
		switch {
		case c.want == "" && (seen != nil || w.Code != 403):
			t.Errorf("%+v: %d", c, w.Code)
		case c.want != "" && (seen == nil || seen.RemoteAddr != c.want || seen.TLS == nil || web.Base(seen) != "https://board.example.org"):
			t.Errorf("%+v: %+v", c, seen)
		case c.want != "" && p.silent.Load() != (c.want == c.from):
			t.Errorf("%+v: the proxy says nothing: %v", c, p.silent.Load())
		}
	}
}

// TestNoOtherHost: behind a proxy nothing answers but the name, whatever headers say, and the URL at which programs sign
// in is that of the name.
func TestNoOtherHost(t *testing.T) {
	s := &site{key: identity.New()}
	var err error
	clock := func() (time.Time, bool) { return time.Now(), true }
	if s.access, err = access.NewStore(access.Options{Site: s.key.ID(), URL: "https://lan/mcp", SystemClock: clock}); err != nil {
		t.Fatal(err)
	}
	s.config = &config.Site{Name: "shed"}
	s.messages = web.Route{Pattern: "/mcp", Admission: web.Strangers}
	p := &publicName{proxies: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}
	h := s.handlePublic("board.example.org")
	p.handler.Store(&h)
	local, err := net.ResolveTCPAddr("tcp", "127.0.0.1:8443")
	if err != nil {
		t.Fatal(err)
	}
	for host, status := range map[string]int{
		"board.example.org": 200, "127.0.0.1:8443": 403, "localhost": 403, "evil.example": 403, "board.example.org.evil.example": 403, "": 403,
	} {
		r := httptest.NewRequest("GET", "http://board.example.org/.well-known/oauth-authorization-server", nil)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(local)))
		r.Host, r.RemoteAddr = host, "127.0.0.1:1"
		r.Header.Set("X-Forwarded-Host", "evil.example")
		r.Header.Set("X-Forwarded-Proto", "http")
		w := httptest.NewRecorder()
		behindProxies{p}.ServeHTTP(w, r)
		if w.Code != status || status == 200 && (!strings.Contains(w.Body.String(), `"issuer":"https://board.example.org"`) || strings.Contains(w.Body.String(), "evil")) {
			t.Errorf("%q: %d %s", host, w.Code, w.Body)
		}
	}
}
