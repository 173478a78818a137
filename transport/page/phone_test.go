package page

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents/principal"
	"agentsite/device"
	"agentsite/node/identity"
	"agentsite/transport/web"
)

// keys are the keys that have a permission at a site, and who they are.
type keys map[string]principal.Principal

func (k keys) Key(peer string) (principal.Principal, error) {
	if who, ok := k[peer]; ok {
		return who, nil
	}
	return principal.Principal{}, device.Faultf(device.Denied, "no permission")
}

func (keys) Bearer(string, bool) (principal.Principal, error) { return principal.Principal{}, errOut }

func (k keys) grant(p phone) {
	k[p.did()] = principal.Principal{Kind: principal.Key, ID: p.did(), Account: p.did()}
}

const host2 = "agentsite-abcdefgh.local:8474"

// near is the page of a site on its network, and a route of the site beside it.
type near struct {
	t    *testing.T
	page *Page
	http http.Handler
	keys keys
	site string
	free bool // nobody owns it

	mayAnswer string   // who may answer calls
	answers   []string // that it took
}

func newNear(t *testing.T) *near {
	n := &near{t: t, keys: keys{}}
	n.page, _ = served()
	var id identity.ID
	rand.Read(id[:])
	n.site = id.String()
	n.page.AddPhones(id, func() bool { return n.free })
	n.page.AddAnswers(n.takeAnswers())
	n.serve()
	return n
}

// serve makes the routes.
func (n *near) serve() {
	serve := func(http.ResponseWriter, *http.Request, web.Caller) {}
	routes := append(n.page.Routes(), web.Route{Pattern: "POST /mcp", Admission: web.Principals, Serve: serve},
		web.Route{Pattern: "POST /owner", Admission: web.Owners, Serve: serve})
	n.http = web.Handler(web.Options{Hosts: []string{host, host2}, Callers: n.page.Callers(n.keys), Routes: routes})
}

// ask sends a request over the network.
func (n *near) ask(method, path, token, body string, change ...func(*http.Request)) (int, string) {
	overTLS := func(r *http.Request) { r.TLS = cmp.Or(r.TLS, &tls.ConnectionState{}) }
	return ask(n.http, method, path, token, body, append(change, overTLS)...)
}

func (n *near) challenge() string {
	n.t.Helper()
	status, body := n.ask("GET", challengePath, "", "")
	var told struct{ Site, Challenge string }
	if err := json.Unmarshal([]byte(body), &told); err != nil || status != 200 || told.Site != n.site {
		n.t.Fatalf("%d %s", status, body)
	}
	return told.Challenge
}

// phone has a key in its browser.
type phone struct{ ed25519.PrivateKey }

func newPhone() phone {
	_, key, _ := ed25519.GenerateKey(nil)
	return phone{key}
}

func (p phone) did() string { return identity.ID(p.Public().(ed25519.PublicKey)).String() }

// sign signs a text in the headers of a request.
func (p phone) sign(challenge, code, text string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set(keyHeader, base64.StdEncoding.EncodeToString(p.Public().(ed25519.PublicKey)))
		r.Header.Set(challengeHeader, challenge)
		r.Header.Set(codeHeader, code)
		r.Header.Set(signatureHeader, base64.StdEncoding.EncodeToString(ed25519.Sign(p.PrivateKey, []byte(text))))
	}
}

// lines returns the text that a key signs, as docs/wire.md has it.
func lines(path, site, host, challenge, code string) string {
	return "agentsite page 1\n" + path + "\n" + site + "\n" + host + "\n" + challenge + "\n" + code + "\n"
}

// shows shows a code.
func (n *near) shows(p phone, code string) int {
	c := n.challenge()
	status, _ := n.ask("POST", showPath, "", "", p.sign(c, code, lines(showPath, n.site, host, c, code)))
	return status
}

// signIn returns the token of a session, and otherwise the status.
func (n *near) signIn(p phone) (token string, status int) {
	c := n.challenge()
	status, body := n.ask("POST", keyPath, "", "", p.sign(c, "", lines(keyPath, n.site, host, c, "")))
	var told struct{ Token string }
	json.Unmarshal([]byte(body), &told)
	return told.Token, status
}

// TestPhone: a code counts once, for its time and for the first browser that shows it; what it shows has no
// permission by that. The key of a browser signs in while it has one, and its session is whoever the key is.
func TestPhone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNear(t)
		ann, eve := newPhone(), newPhone()
		code := rand.Text()
		shown := make(chan string)
		wait := func(code string) {
			shows, err := n.page.AwaitPhone(t.Context(), code)
			did := shows.Key
			if err != nil && device.AsFault(err).Kind == device.Expired {
				did = "expired"
			}
			shown <- did
		}
		go wait(code)
		synctest.Wait()
		for what, guess := range map[string]string{
			"no code": "", "another": rand.Text(), "its beginning": code[:25], "in small": strings.ToLower(code),
		} {
			if status := n.shows(eve, guess); status != 410 {
				t.Errorf("%s: %d", what, status)
			}
		}
		if status := n.shows(ann, code); status != 204 {
			t.Errorf("the code: %d", status)
		}
		if did := <-shown; did != ann.did() {
			t.Errorf("the owner sees %s", did)
		}
		if status := n.shows(eve, code); status != 410 {
			t.Errorf("the code again: %d", status)
		}
		if _, status := n.signIn(ann); status != 403 {
			t.Errorf("before it is granted anything: %d", status)
		}
		n.keys.grant(ann)
		token, status := n.signIn(ann)
		if status != 200 || token == "" {
			t.Fatalf("the phone: %d", status)
		}
		if _, status := n.signIn(eve); status != 403 {
			t.Errorf("who saw the code too: %d", status)
		}
		for what, tt := range map[string]struct {
			method, path string
			want         int
		}{"a call": {"POST", "/mcp", 200}, "a reload": {"GET", sessionPath, 200}, "an owner's act": {"POST", "/owner", 403}} {
			if status, says := n.ask(tt.method, tt.path, token, ""); status != tt.want {
				t.Errorf("%s: %d %s", what, status, says)
			}
		}
		n.page.phones.codes = append(n.page.phones.codes, &phoneCode{sha256.Sum256([]byte("once")), make(chan Phone, 2)})
		if first, second := n.shows(ann, "once"), n.shows(eve, "once"); first != 204 || second != 410 {
			t.Errorf("before the owner looks: %d, %d", first, second)
		}
		old := rand.Text()
		go wait(old)
		if did := <-shown; did != "expired" {
			t.Errorf("a code that nobody shows: %s", did)
		}
		if status := n.shows(ann, old); status != 410 {
			t.Errorf("an old code: %d", status)
		}
	})
}

// TestPhoneEnds: with its permission a phone's session ends, and it gets no other one. A key that becomes an owner's
// does not act as one. A permission that is back counts.
func TestPhoneEnds(t *testing.T) {
	n := newNear(t)
	ann, bob := newPhone(), newPhone()
	n.keys.grant(ann)
	n.keys.grant(bob)
	token, _ := n.signIn(ann)
	others, _ := n.signIn(bob)
	call := func(what string, want int) {
		t.Helper()
		if status, says := n.ask("POST", "/mcp", token, ""); status != want {
			t.Errorf("%s: %d %s", what, status, says)
		}
	}
	call("a phone", 200)
	owner := n.keys[ann.did()]
	owner.Owner = true
	n.keys[ann.did()] = owner
	call("as an owner", 401)
	if status, _ := n.ask("POST", "/owner", token, ""); status != 401 {
		t.Errorf("an owner's act: %d", status)
	}
	if _, status := n.signIn(ann); status != 403 {
		t.Errorf("an owner's key: %d", status)
	}
	delete(n.keys, ann.did())
	call("revoked", 401)
	if _, status := n.signIn(ann); status != 403 {
		t.Errorf("a revoked key: %d", status)
	}
	if status, _ := n.ask("POST", "/mcp", others, ""); status != 200 {
		t.Errorf("another phone: %d", status)
	}
	n.keys.grant(ann)
	call("granted again", 200)
	var told struct{ Sessions []listed }
	status, body := n.ask("GET", sessionPath, token, "")
	if err := json.Unmarshal([]byte(body), &told); err != nil || status != 200 || len(told.Sessions) != 1 {
		t.Errorf("a phone sees the sessions of others: %s", body)
	}
	if status, _ := n.ask("DELETE", sessionPath+"/2", token, ""); status != 404 {
		t.Errorf("it ends the session of another: %d", status)
	}
	here := signIn(t, n.page, n.http)
	if status, _ := ask(n.http, "DELETE", sessionPath+"/1", here, ""); status != 204 {
		t.Errorf("the machine of the site ends a phone's: %d", status)
	}
	call("signed out", 401)
}

// TestPhoneSignature: a signature counts for one key, site, host, purpose and code, once, and for the time of its
// challenge, which only the site makes.
func TestPhoneSignature(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, other := newNear(t), newNear(t)
		ann, eve := newPhone(), newPhone()
		n.keys.grant(ann)
		n.keys.grant(eve)
		text := func(c string) string { return lines(keyPath, n.site, host, c, "") }
		send := func(what string, want int, change ...func(*http.Request)) {
			t.Helper()
			if status, says := n.ask("POST", keyPath, "", "", change...); status != want {
				t.Errorf("%s: %d %s", what, status, says)
			}
		}
		c := n.challenge()
		send("nothing", 401)
		byTLS := func(r *http.Request) {
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{PublicKey: ann.Public()}}}
		}
		id, _ := identity.Parse(ann.did())
		n.keys[id.PeerID()] = n.keys[ann.did()]
		send("a key that TLS proves", 403, byTLS)
		send("another site", 401, ann.sign(c, "", strings.Replace(text(c), n.site, other.site, 1)))
		send("another host", 401, ann.sign(c, "", strings.Replace(text(c), host, "evil.example", 1)))
		send("at another host of the site", 401, ann.sign(c, "", text(c)), func(r *http.Request) { r.Host = host2 })
		send("another purpose", 401, ann.sign(c, "", strings.Replace(text(c), keyPath, showPath, 1)))
		send("with a code", 401, ann.sign(c, "CODE", text(c)))
		send("the challenge alone", 401, ann.sign(c, "", c))
		foreign := other.challenge()
		send("a challenge of another site", 401, ann.sign(foreign, "", text(foreign)))
		forged := "A" + c[1:]
		if forged == c {
			forged = "B" + c[1:]
		}
		for _, x := range []string{"", "x", forged, c + "A", c + "\n"} {
			send(fmt.Sprintf("the challenge %q", x), 401, ann.sign(strings.TrimSpace(x), "", text(x)))
		}
		substitute := func(r *http.Request) {
			r.Header.Set(keyHeader, base64.StdEncoding.EncodeToString(eve.Public().(ed25519.PublicKey)))
		}
		send("another key", 401, ann.sign(c, "", text(c)), substitute)
		twice := func(r *http.Request) { r.Header.Add(keyHeader, r.Header.Get(keyHeader)) }
		send("two keys", 401, ann.sign(c, "", text(c)), twice)
		weak := func(r *http.Request) { // of order 1, and so is the first half of the signature
			r.Header.Set(keyHeader, base64.StdEncoding.EncodeToString(append([]byte{1}, make([]byte, 31)...)))
			r.Header.Set(signatureHeader, base64.StdEncoding.EncodeToString(append([]byte{1}, make([]byte, 63)...)))
		}
		send("a key with which anybody signs", 401, ann.sign(c, "", text(c)), weak)
		for what, from := range map[string]func(*http.Request){
			"page":             func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
			"origin":           func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
			"name of the site": func(r *http.Request) { r.Host = "evil.example" },
		} {
			send("another "+what, 403, ann.sign(c, "", text(c)), from)
		}
		send("right", 200, ann.sign(c, "", text(c)))
		send("replayed", 401, ann.sign(c, "", text(c)))
		send("the challenge by another key", 401, eve.sign(c, "", text(c)))
		c = n.challenge()
		time.Sleep(challengeTime)
		send("late", 401, ann.sign(c, "", text(c)))
	})
}

// TestPhonesAreBounded: strangers leave nothing behind; sessions and challenges are bounded for each account, and
// codes in all.
func TestPhonesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNear(t)
		for range 100 {
			n.shows(newPhone(), rand.Text())
			n.signIn(newPhone())
		}
		if s, u, c := len(n.page.sessions.all), len(n.page.phones.used), len(n.page.phones.codes); s+u+c > 0 {
			t.Errorf("strangers left %d sessions, %d challenges, %d codes", s, u, c)
		}
		link := signIn(t, n.page, n.http)
		ann, bob := newPhone(), newPhone()
		n.keys.grant(ann)
		n.keys.grant(bob)
		statuses := map[int]int{}
		for range 2 * maxUsed {
			_, status := n.signIn(ann)
			statuses[status]++
		}
		if !maps.Equal(statuses, map[int]int{200: maxUsed, 401: maxUsed}) {
			t.Errorf("at once: %v", statuses)
		}
		if _, status := n.signIn(bob); status != 200 {
			t.Errorf("another account: %d", status)
		}
		for range 3 {
			time.Sleep(challengeTime)
			for range maxUsed {
				n.signIn(ann)
			}
		}
		if len(n.page.sessions.all) != maxSessions+2 || len(n.page.phones.used) > 2*maxUsed {
			t.Errorf("%d sessions, %d challenges", len(n.page.sessions.all), len(n.page.phones.used))
		}
		if status, _ := ask(n.http, "POST", "/mcp", link, ""); status != 200 {
			t.Errorf("the session of a link: %d", status)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		for range maxCodes {
			go func() { _, err := n.page.AwaitPhone(ctx, rand.Text()); ended <- err }()
		}
		synctest.Wait()
		if _, err := n.page.AwaitPhone(ctx, rand.Text()); device.AsFault(err).Kind != device.Busy {
			t.Errorf("one more code: %v", err)
		}
		if _, err := n.page.AwaitPhone(ctx, "short"); device.AsFault(err).Kind != device.Invalid {
			t.Errorf("a code that can be guessed: %v", err)
		}
		cancel()
		for range maxCodes {
			<-ended
		}
		if len(n.page.phones.codes) != 0 {
			t.Error("codes stay")
		}
	})
}

// TestPhoneBefore: who passes a permission on is not signed out by those who have it from them.
func TestPhoneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNear(t)
		ann := newPhone()
		n.keys.grant(ann)
		token, _ := n.signIn(ann)
		for range 2 * maxSessions { // at most half of them in the time of a challenge
			bob := newPhone()
			n.keys[bob.did()] = principal.Principal{Kind: principal.Key, ID: bob.did(), Account: ann.did()}
			n.signIn(bob)
			n.signIn(bob)
			time.Sleep(challengeTime / maxUsed)
		}
		if n := len(n.page.sessions.all); n > maxSessions+1 {
			t.Errorf("they have %d sessions", n-1)
		}
		if status, _ := n.ask("GET", sessionPath, token, ""); status != 200 {
			t.Errorf("her session: %d", status)
		}
		if _, status := n.signIn(ann); status != 200 {
			t.Errorf("she signs in again: %d", status)
		}
	})
}

// TestUnclaimed: whoever opens the page of a site learns that nobody owns it, and then that somebody does. The
// page of all sites of a person has no such route.
func TestUnclaimed(t *testing.T) {
	_, h := served()
	if status, body := ask(h, "GET", challengePath, "", ""); status != 404 {
		t.Errorf("without a site: %d %s", status, body)
	}
	n := newNear(t)
	for _, want := range []bool{true, false} {
		n.free = want
		var told map[string]any
		status, body := n.ask("GET", challengePath, "", "")
		if err := json.Unmarshal([]byte(body), &told); err != nil || status != 200 || told["unclaimed"] != want {
			t.Errorf("%d %q", status, body)
		}
		if all := slices.Sorted(maps.Keys(told)); !slices.Equal(all, []string{"challenge", "site", "unclaimed"}) {
			t.Errorf("it tells %v", all)
		}
	}
}

// TestPhoneName: a phone is named after its browser and system, and by nothing else that it says.
func TestPhoneName(t *testing.T) {
	for agent, want := range map[string]string{
		"Mozilla/5.0 (Linux; Android 16; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/146.0.0.0 Mobile Safari/537.36": "chrome-on-android",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 26_1 like Mac OS X) AppleWebKit/605.1.15 Version/26.1 Mobile/15E148 Safari/604.1":   "safari-on-iphone",
		"Mozilla/5.0 (Android 16; Mobile; rv:145.0) Gecko/145.0 Firefox/145.0":                                                  "firefox-on-android",
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/146.0.0.0 Safari/537.36 Edg/146.0":                           "edge-on-linux",
		"":                                  "phone",
		"owner\x1b[2J\n$(rm) <b>iPad":       "ipad",
		strings.Repeat("x", 300) + "iPhone": "phone",
	} {
		if got := phoneName(agent); got != want || device.CheckName(got) != nil {
			t.Errorf("%q is called %q, not %q", agent, got, want)
		}
	}
}
