//go:build e2e && linux

package public

import (
	"crypto/sha256"
	"encoding/base64"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/node/identity"

	"github.com/go-json-experiment/json"
)

// BenchmarkIdle measures how often a site wakes up that nobody asks for anything: without peers, with a relay, and with a
// public name at that relay. The machine wakes a process up for its own reasons, too: two of each kind run at the same
// time, and the least of some minutes counts.
func BenchmarkIdle(b *testing.B) {
	harness.AsService(b)
	w := newWorld(b)
	var sites []*site
	var keys []identity.ID
	for range 6 {
		s := w.newSite(w.home())
		sites, keys = append(sites, s), append(keys, s.key.ID())
	}
	w.permit(keys...)
	at := legs(w.relay(zone), "/quic-v1/") // a site chooses one of two carriers, which cost differently
	kinds := []string{"none", "relay", "public"}
	for i, s := range sites {
		switch kinds[i%3] {
		case "none":
			w.runWith(s, "")
		case "relay":
			w.runWith(s, `internet: { relays: ["`+strings.Join(at, `", "`)+`"] }`, "--listen-peers", ":8475")
		case "public":
			w.run(s, "on", at)
			s.certified(b, s.label(b)+"."+zone)
		}
	}
	time.Sleep(45 * time.Second) // the starts are over

	const rounds, rest = 3, time.Minute
	least := []float64{math.Inf(1), math.Inf(1), math.Inf(1)}
	for range rounds {
		counts := make([]float64, len(sites))
		for i, s := range sites {
			counts[i] = harness.VoluntarySwitches(b, s.Cmd.Process.Pid)
		}
		time.Sleep(rest)
		for i, s := range sites {
			n := harness.VoluntarySwitches(b, s.Cmd.Process.Pid) - counts[i]
			least[i%3] = min(least[i%3], n/rest.Seconds())
		}
	}
	for i, kind := range kinds {
		b.ReportMetric(least[i], kind+"-voluntary-switches/s")
	}
	b.ReportMetric(least[2]-least[1], "public-more/s(≤1)")
	b.ReportMetric(least[2]/least[1], "public-x-relay")
	b.ReportMetric(0, "ns/op")
}

const proxyPort = "444"

// proxyTo passes callers of proxyPort on to an address, and looks at none of their bytes.
func proxyTo(to string) {
	ln, err := net.Listen("tcp", ":"+proxyPort)
	for err == nil {
		var c net.Conn
		if c, err = ln.Accept(); err != nil {
			break
		}
		go func() {
			defer c.Close()
			s, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			defer s.Close()
			go func() { io.Copy(s, c); s.Close() }()
			io.Copy(c, s)
		}()
	}
	panic(err)
}

// BenchmarkCall is a call of a tool under a public name: over the relay, over a proxy on the relay's machine that copies
// the bytes of TLS to the site's own port, and to that port. The ways take turns, and each figure is the median.
func BenchmarkCall(b *testing.B) {
	for _, by := range []string{"/quic-v1/", "/tcp/"} {
		b.Run(strings.Trim(by, "/"), func(b *testing.B) {
			const own = "board.owner.test"
			w := newWorld(b)
			on, ip := w.Public()
			s := w.newSite(w.resolves(on))
			w.permit(s.key.ID())
			r := w.relay(zone)
			w.setDNS(own, s.label(b)+"."+zone)
			w.run(s, own, legs(r, by), `public_listen: ":8443"`)
			s.certified(b, own)
			w.plays(r.Host, "proxy", ip+":8443")

			stranger := w.stranger()
			root := w.root()
			var ways []*http.Client
			for _, at := range []string{ip + ":8443", r.IP + ":" + proxyPort, r.IP + ":443"} {
				ways = append(ways, w.browser(stranger, root, map[string]string{own + ":443": at}))
			}
			token := s.signIn(b, "https://"+own, ways[2])

			names := []string{"direct", "proxy", "relay"}
			measure := func(what string, count int, prepare func(*http.Client)) {
				took := make([][]float64, len(ways))
				for range count {
					for i, c := range ways {
						prepare(c)
						took[i] = append(took[i], s.timed(b, c, "https://"+own+"/mcp", token))
					}
				}
				for i, name := range names {
					slices.Sort(took[i])
					b.ReportMetric(took[i][count/2], name+"-"+what+"-ms")
				}
				b.ReportMetric(took[2][count/2]/took[1][count/2], what+"-x-proxy")
			}
			measure("first-call", 25, (*http.Client).CloseIdleConnections) // of a new connection; a relay limits these
			measure("call", 300, func(*http.Client) {})
			b.ReportMetric(0, "ns/op")
		})
	}
}

// signIn returns the access token of a client that its owner lets read.
func (s *site) signIn(b *testing.B, base string, browser *http.Client) string {
	b.Helper()
	const callback, verifier = "http://127.0.0.1:1/callback", "a-verifier-of-at-least-forty-three-characters"
	p := &place{Site: s.Site, url: base + "/mcp", http: browser}
	p.owner(b, "token", "add", "first", "read *") // its signer becomes the owner
	id, challenge := p.register(b, "Benchmark", callback), sha256.Sum256([]byte(verifier))
	back := p.consent(b, base+"/authorize?"+url.Values{
		"client_id": {id}, "redirect_uri": {callback}, "response_type": {"code"}, "resource": {p.url},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])}, "code_challenge_method": {"S256"},
	}.Encode(), "read *")
	res, err := browser.PostForm(base+"/token", url.Values{
		"grant_type": {"authorization_code"}, "code": {back.Query().Get("code")}, "redirect_uri": {callback},
		"client_id": {id}, "code_verifier": {verifier}, "resource": {p.url},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	var tokens struct {
		Access string `json:"access_token"`
	}
	if err := json.UnmarshalRead(res.Body, &tokens); err != nil || tokens.Access == "" {
		b.Fatalf("%s %v\n%s", res.Status, err, s.Log)
	}
	return tokens.Access
}

// timed calls a tool, and returns the milliseconds that this took.
func (s *site) timed(b *testing.B, c *http.Client, at, token string) float64 {
	b.Helper()
	req := s.NewToolCall(b, at, token, "read_points", `{"points":["lamp/relay"]}`)
	begun := time.Now()
	res, err := c.Do(req)
	if err != nil {
		b.Fatalf("%v\n%s", err, s.Log)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	took := time.Since(begun)
	if err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(text), `"good"`) {
		b.Fatalf("%d %s %v", res.StatusCode, text, err)
	}
	return float64(took.Microseconds()) / 1000
}
