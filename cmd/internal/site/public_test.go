package site

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

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
				own: own, relays: []peer.ID{"a", "b"}, certs: certs, started: time.Now(), answers: make(map[peer.ID]answer),
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
		if s := p.state(); len(s.Relays) != 2 || s.Relays[0].Why == "" || s.Relays[1].Why != "" || s.Target == "" {
			t.Errorf("%+v", s)
		}
	})
}

// TestBehindProxies: a listener for proxies takes nobody else, and believes of a caller what the last proxy added.
func TestBehindProxies(t *testing.T) {
	p := &publicName{proxies: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}
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
		{"127.0.0.1:1", "", ""},
	} {
		seen = nil
		r := httptest.NewRequest("GET", "http://board.example.org/mcp", nil)
		r.RemoteAddr = c.from
		if c.says != "" {
			r.Header.Set("X-Forwarded-For", c.says)
		}
		w := httptest.NewRecorder()
		behindProxies{p}.ServeHTTP(w, r)
		switch {
		case c.want == "" && (seen != nil || w.Code != 403):
			t.Errorf("%+v: %d", c, w.Code)
		case c.want != "" && (seen == nil || seen.RemoteAddr != c.want || seen.TLS == nil || web.Base(seen) != "https://board.example.org"):
			t.Errorf("%+v: %+v", c, seen)
		}
	}
}
