//go:build e2e

package public

import (
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/node/acts"

	"github.com/chromedp/chromedp"
	"github.com/go-json-experiment/json"
)

// webClient is a client in the web: its pages, and the codes that browsers brought to it.
type webClient struct {
	*httptest.Server
	mu    sync.Mutex
	codes []string
}

// ServeHTTP serves /begin, which opens a URL in a window of its own, /frame, which has it in a frame, and /callback.
func (c *webClient) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html")
	to := html.EscapeString(r.URL.Query().Get("to"))
	switch r.URL.Path {
	case "/begin":
		fmt.Fprintf(w, `<a href="%s">go</a>`, to)
	case "/frame":
		fmt.Fprintf(w, `<iframe src="%s"></iframe>`, to)
	case "/callback":
		c.mu.Lock()
		c.codes = append(c.codes, r.URL.Query().Get("code"))
		c.mu.Unlock()
		io.WriteString(w, "<p id=back>back")
	}
}

// arrived returns the codes that browsers brought, each once, and how often they came.
func (c *webClient) arrived() (codes []string, times int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Clone(c.codes)
	slices.Sort(all)
	return slices.Compact(all), len(c.codes)
}

func newWebClient(t *testing.T) *webClient {
	t.Helper()
	c := new(webClient)
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

// authorize registers the client at a site, and returns the URL for its user's browser.
func (c *webClient) authorize(t *testing.T, p *place, name string) string {
	t.Helper()
	return strings.TrimSuffix(p.url, "/mcp") + "/authorize?" + url.Values{
		"client_id": {p.register(t, name, c.URL+"/callback")}, "redirect_uri": {c.URL + "/callback"}, "response_type": {"code"}, "state": {"s"},
		"code_challenge": {strings.Repeat("A", 43)}, "code_challenge_method": {"S256"}, "resource": {p.url},
	}.Encode()
}

// waiting returns the programs that ask to sign in.
func (p *place) waiting(t *testing.T) []acts.SignIn {
	t.Helper()
	var all struct {
		SignIns []acts.SignIn `json:"sign_ins"`
	}
	if err := json.Unmarshal([]byte(p.owner(t, "approve", "--json")), &all); err != nil {
		t.Fatal(err)
	}
	return all.SignIns
}

// cookies returns what cookies a page of the site sets.
func (p *place) cookies(t *testing.T, page string) []string {
	t.Helper()
	res, err := p.http.Get(page)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.Header.Values("Set-Cookie")
}

// window is one of a browser.
type window struct {
	t   *testing.T
	ctx context.Context
	log fmt.Stringer // of the site
}

// openWindow starts Chromium, for which every name below a domain is this machine. more are further options.
func openWindow(t *testing.T, log fmt.Stringer, domain string, more ...chromedp.ExecAllocatorOption) *window {
	t.Helper()
	chromium, _ := exec.LookPath("chromium")
	harness.Need(t, "chromium", chromium)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true),
		chromedp.Flag("host-resolver-rules", "MAP *."+domain+" 127.0.0.1"), chromedp.Flag("ignore-certificate-errors", true)), more...)...)
	t.Cleanup(cancel)
	return (&window{t, ctx, log}).another()
}

// another opens a further window of the browser, or with an option that of another one.
func (w *window) another(as ...chromedp.ContextOption) *window {
	ctx, cancel := chromedp.NewContext(w.ctx, as...)
	w.t.Cleanup(cancel)
	return &window{w.t, ctx, w.log}
}

func (w *window) do(a chromedp.Action[chromedp.Void]) {
	w.t.Helper()
	if err := chromedp.Do(w.ctx, a); err != nil {
		w.t.Fatalf("%v\n%s", err, w.log)
	}
}

func (w *window) open(at string) {
	w.t.Helper()
	w.do(chromedp.Navigate(at))
}

// shows waits until an expression of JavaScript is true.
func (w *window) shows(expression string) {
	w.t.Helper()
	harness.WaitFor(w.t, 20*time.Second, expression, func() bool {
		ok, err := chromedp.Run(w.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		return err == nil && ok
	})
}

// evaluate returns a text, which it waits for where the expression is a promise. The page that waits loads again now and
// then, which loses an answer.
func (w *window) evaluate(expression string) (text string) {
	w.t.Helper()
	harness.WaitFor(w.t, 20*time.Second, expression, func() (ok bool) {
		var err error
		text, err = chromedp.Run(w.ctx, chromedp.Evaluate[string](expression, chromedp.EvalAwaitPromise))
		return err == nil
	})
	return text
}

// code returns the code that the site's page shows.
func (w *window) code() string {
	w.t.Helper()
	w.shows(`document.querySelector(".code")`)
	return w.evaluate(`document.querySelector(".code").textContent`)
}

// TestBrowser: a browser goes from a client's page to the site's, waits there, and is back with one code, in however
// many windows and however often it goes back; in a frame it asks nobody, and another browser does not show the code.
func TestBrowser(t *testing.T) {
	p := newPlace(t)
	c := newWebClient(t)
	at := c.authorize(t, p, "Web")
	w := openWindow(t, p.Log, "local")
	w.open(c.URL + "/frame?to=" + url.QueryEscape(at))
	w.shows(`document.querySelector("iframe")`)
	w.open(c.URL + "/begin?to=" + url.QueryEscape(at))
	w.do(chromedp.Click(chromedp.CSS("a")))
	code := w.code()
	if waiting := p.waiting(t); len(waiting) != 1 || waiting[0].Handle != code {
		t.Fatalf("the browser shows %s, and these wait: %+v", code, waiting)
	}
	// A second window of the browser has the same page, as after a double click.
	again := w.another()
	again.open(w.evaluate("location.href"))
	if other := again.code(); other != code {
		t.Errorf("a second window shows %s", other)
	}
	other := w.another(chromedp.WithNewBrowserContext()) // as that of somebody who got the link
	other.open(w.evaluate("location.href"))
	if text := other.evaluate("document.body.textContent"); text == "" || strings.Contains(text, code) {
		t.Errorf("another browser shows %q", text)
	}
	p.owner(t, "approve", code, "--may", "read *")
	for _, w := range []*window{w, again} {
		w.shows(`document.querySelector("#back")`)
	}
	for range 3 {
		for _, way := range []string{"back", "forward"} { // the answer may be lost with the page
			_, _ = chromedp.Run(w.ctx, chromedp.Evaluate[chromedp.Void]("history."+way+"()"))
			w.shows(`document.querySelector("a, #back, .code")`)
		}
	}
	if codes, times := c.arrived(); len(codes) != 1 || codes[0] == "" || times < 2 {
		t.Errorf("%d codes in %d visits: %q", len(codes), times, codes)
	}
}

// TestBrowserName: what a program calls itself is text in its user's browser, however long and whatever it says.
func TestBrowserName(t *testing.T) {
	p := newPlace(t)
	c := newWebClient(t)
	w := openWindow(t, p.Log, "local")
	w.open(c.authorize(t, p, "<script>document.title='hacked'</script><img src=x onerror=\"document.title='hacked'\">"+strings.Repeat("x", 5000)))
	w.code()
	if title := w.evaluate("document.title"); title == "hacked" {
		t.Error("it runs a script")
	}
	if n := w.evaluate(`String(document.querySelectorAll("script, img, form, iframe").length)`); n != "0" {
		t.Errorf("it has %s elements of the name's", n)
	}
	if name := w.evaluate(`document.querySelector("q").textContent`); !strings.HasPrefix(name, "<script>") || len(name) > 200 {
		t.Error(name)
	}
}

// TestBrowserOrigins: a page of another origin reads the metadata and the challenge of a 401. It can neither begin a
// sign-in behind its user's back nor answer one, nor use the owner's operations. Cookies that a sibling of the site's
// zone sets change nothing, and it cannot set one with the prefix __Host-, which that of the site's page has.
func TestBrowserOrigins(t *testing.T) {
	p := newDomain(t)
	c := newWebClient(t)
	at := c.authorize(t, p, "Web")
	base := strings.TrimSuffix(p.url, "/mcp")
	w := openWindow(t, p.Log, "example.org")
	sibling := httptest.NewTLSServer(c)
	defer sibling.Close()
	evil := "https://evil.example.org" + sibling.URL[strings.LastIndex(sibling.URL, ":"):]
	w.open(evil)
	ask := func(path, options string) string {
		t.Helper()
		return w.evaluate(fmt.Sprintf(`fetch(%q, %s).then(async r => r.status + " " + (r.headers.get("WWW-Authenticate") ?? "") + await r.text(), e => "refused")`, base+path, options))
	}
	for path, want := range map[string]string{
		"/.well-known/oauth-protected-resource/mcp": "200 ", "/.well-known/oauth-authorization-server": "200 ",
		"/.well-known/openid-configuration": "200 ",
	} {
		if said := ask(path, "{}"); !strings.HasPrefix(said, want) || !strings.Contains(said, base) {
			t.Errorf("%s: %s", path, said)
		}
	}
	if said := ask("/mcp", `{method: "POST", body: "{}", headers: {"Content-Type": "application/json", "Mcp-Protocol-Version": "2026-07-28"}}`); !strings.HasPrefix(said, "401 ") || !strings.Contains(said, "resource_metadata") {
		t.Errorf("the challenge: %s", said)
	}
	asks := strings.TrimPrefix(at, base)
	for _, options := range []string{"{}", `{mode: "no-cors"}`, `{credentials: "include"}`, `{method: "POST", body: "allow=1"}`} {
		if said := ask(asks, options); said != "refused" && said != "0 " {
			t.Errorf("%s: it reads %.200s", options, said)
		}
	}
	if waiting := p.waiting(t); len(waiting) != 0 {
		t.Errorf("a page of another origin had an owner asked: %+v", waiting)
	}

	w.evaluate(`(document.cookie = "session=evil; Domain=example.org; Path=/; Secure", document.cookie = "__Host-session=evil; Domain=example.org; Path=/; Secure", "")`)
	w.open(at)
	code := w.code()
	if cookies := w.evaluate("document.cookie"); strings.Contains(cookies, "__Host-") || !strings.Contains(cookies, "session=evil") {
		t.Errorf("the site's page has the cookies %q", cookies)
	}
	if waiting := p.waiting(t); len(waiting) != 1 || waiting[0].Handle != code {
		t.Errorf("%s: %+v", code, waiting)
	}
	page := w.evaluate("location.href")
	w.open(evil)
	for _, options := range []string{`{method: "POST", credentials: "include", body: "allow=1"}`, `{mode: "no-cors", credentials: "include"}`, `{credentials: "include"}`} {
		if said := ask(strings.TrimPrefix(page, base), options); said != "refused" && said != "0 " {
			t.Errorf("the page that waits, %s: it reads %.200s", options, said)
		}
	}
	w.evaluate(fmt.Sprintf(`new Promise(done => {
		const f = document.createElement("form"), i = document.createElement("iframe");
		i.name = "there"; i.onload = () => done("");
		f.method = "POST"; f.action = %q; f.target = "there";
		document.body.append(i, f); f.submit();
	})`, page))
	if waiting := p.waiting(t); len(waiting) != 1 {
		t.Errorf("another origin answered: %+v", waiting)
	}
	if codes, _ := c.arrived(); len(codes) > 0 {
		t.Errorf("%q", codes)
	}
	if cookies := p.cookies(t, page); len(cookies) > 0 {
		t.Errorf("the site sets cookies: %v", cookies)
	}
}
