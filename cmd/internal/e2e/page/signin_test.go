//go:build e2e

package page

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"

	"github.com/chromedp/chromedp"
)

// program is one that knows the URL of a site, with the browser of its user.
type program struct {
	*tab
	url  string
	http *http.Client // trusts the site's certificate, and resolves every name to this machine
	id   string
	back *httptest.Server // to which its user is sent back
	sent chan url.Values  // what its user brought
	text string           // the verifier of PKCE
}

// newProgram registers a program at a site, by what it calls itself.
func newProgram(t *testing.T, site *harness.Site, name string) *program {
	t.Helper()
	at := site.HTTPS(t)
	p := &program{url: "https://" + at.Host, sent: make(chan url.Values, 8), text: strings.Repeat("v", 43)}
	certificate, err := os.ReadFile(at.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certificate)
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trusted},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, strings.TrimPrefix(at.URL, "https://"))
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	p.http = &http.Client{Transport: transport, Timeout: 20 * time.Second}
	p.back = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/callback" {
			p.sent <- r.URL.Query()
		}
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<link rel=icon href=data:,><p id=back>back")
	}))
	t.Cleanup(p.back.Close)
	var made struct {
		ID string `json:"client_id"`
	}
	body, _ := json.Marshal(map[string]any{
		"client_name": name, "redirect_uris": []string{p.back.URL + "/callback"}, "token_endpoint_auth_method": "none",
	})
	if status := p.post(t, "/register", "application/json", string(body), &made); status != 201 {
		t.Fatal(status)
	}
	p.id = made.ID
	p.tab = newBrowser(t, chromedp.Flag("host-resolver-rules", "MAP *.local 127.0.0.1"), chromedp.Flag("ignore-certificate-errors", true))
	p.expect(p.back.URL)
	return p
}

// post posts to the site, and returns the status.
func (p *program) post(t *testing.T, path, kind, body string, answer any, headers ...string) int {
	t.Helper()
	res, err := p.http.Do(harness.NewRequest(t, "POST", p.url+path, body, append(headers, "Content-Type", kind)...))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	if answer != nil && res.StatusCode < 300 {
		if err := json.Unmarshal(text, answer); err != nil {
			t.Fatalf("%s: %v\n%s", path, err, text)
		}
	}
	return res.StatusCode
}

// begin has the program's user go to the site, and returns the code that their browser shows.
func (p *program) begin() (code string) {
	p.t.Helper()
	challenge := sha256.Sum256([]byte(p.text))
	p.open(p.url + "/authorize?" + url.Values{
		"client_id": {p.id}, "redirect_uri": {p.back.URL + "/callback"}, "response_type": {"code"}, "state": {"s"},
		"scope": {"read set"}, "code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])},
		"code_challenge_method": {"S256"}, "resource": {p.url + "/mcp"},
	}.Encode())
	harness.WaitFor(p.t, 20*time.Second, "the code", func() (ok bool) { // the page loads again now and then
		var err error
		code, err = chromedp.Run(p.ctx, chromedp.Evaluate[string](`document.querySelector(".code").textContent`))
		return err == nil && code != ""
	})
	return code
}

// brought returns what the user's browser brought back.
func (p *program) brought() url.Values {
	p.t.Helper()
	select {
	case v := <-p.sent:
		return v
	case <-time.After(20 * time.Second):
		p.t.Fatal("the browser was not sent back")
		return nil
	}
}

// exchange exchanges a code for an access token.
func (p *program) exchange(code string) (token string) {
	p.t.Helper()
	var got struct {
		Token string `json:"access_token"`
	}
	if status := p.post(p.t, "/token", "application/x-www-form-urlencoded", url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {p.back.URL + "/callback"},
		"client_id": {p.id}, "code_verifier": {p.text},
	}.Encode(), &got); status != 200 {
		p.t.Fatal("the code is exchanged with ", status)
	}
	return got.Token
}

// call calls a tool, and returns the status, and whether it was refused.
func (p *program) call(token, tool, arguments string) (status int, refused bool) {
	p.t.Helper()
	var answer struct {
		Result struct {
			IsError bool `json:"isError"`
		} `json:"result"`
		Error *struct{} `json:"error"`
	}
	status = p.post(p.t, "/mcp", "application/json", harness.ToolCall(tool, arguments), &answer, "Authorization", "Bearer "+token,
		"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call",
		"Mcp-Name", tool)
	return status, answer.Result.IsError || answer.Error != nil
}

const (
	readBox = `{"points":["box/relay"]}`
	boxOn   = `{"output":"box/relay","on":true,"for_seconds":1}`
)

// TestSignIn: from a program's URL in one browser by the owner's word in the page to a call, which the page shows; what
// the program may do is changed while it is connected, and ended by one tap and a passkey: the next call is 401.
func TestSignIn(t *testing.T) {
	t.Parallel()
	site, ann, o, b := openShed(t, "http: { oauth: on }")
	ann.MustCLI(t, "clock", "--set", "--site", "shed")
	p := newProgram(t, site, "Claude")
	code := p.begin()
	run[bool](b, "location.hash = '#waiting', true")
	card := fmt.Sprintf(`[data-signin=%q] `, code)
	b.is(15*time.Second, "document.querySelector("+quote(card+"[data-permission]")+")")
	shows := func(selector, text string) {
		t.Helper()
		b.is(10*time.Second, fmt.Sprintf("document.querySelector(%s)?.textContent.includes(%s)", quote(selector), quote(text)))
	}
	if run[bool](b, "document.querySelector("+quote(card)+").textContent.includes("+quote(code)+")") {
		t.Error("the page shows the code that its reader is to write")
	}
	shows(card+".kv", strings.TrimPrefix(p.back.URL, "http://"))
	b.is(0, "document.querySelector("+quote(card+"[data-local]")+")")

	// The permission is chosen by points, and said in a sentence; one that cannot be read cannot be allowed.
	b.press(card + `[data-pick="set box/relay"] input`)
	b.is(10*time.Second, "document.querySelector("+quote(card+"[name=may]")+").value.includes('set box/relay max 2m 10/h')")
	shows(card+"[data-sentence]", "Box")
	shows(card+"[data-sentence]", "2 min")
	allow := card + `[data-act="sign-in/allow"]`
	b.fill(card+"[name=may]", "read *, fly")
	b.is(10*time.Second, "document.querySelector("+quote(card+"[data-mistake]")+") && document.querySelector("+quote(allow+"[aria-disabled]")+")")
	b.fill(card+"[name=may]", "read den 4/h confirm")
	b.press(card + "[data-permission] details input:not(:checked)")
	b.is(10*time.Second, fmt.Sprintf("/^read den[+]box.relay 4.h confirm$/.test(document.querySelector(%s).value)",
		quote(card+"[name=may]")))
	const may = "set box/relay max 5m, read *"
	b.fill(card+"[name=may]", may)
	shows(card+"[data-sentence]", "5 min")
	b.fill(card+"[name=code]", "AAAA-AAAA")
	b.is(10*time.Second, "document.querySelector("+quote(allow+"[aria-disabled]")+")")
	b.fill(card+"[name=code]", strings.ToLower(code))
	b.is(10*time.Second, "document.querySelector("+quote(allow+":not([aria-disabled])")+")")
	b.press(allow)
	if screen := o.asked(1); !strings.Contains(screen, code) || !strings.Contains(screen, may) || !strings.Contains(screen, "Claude") {
		t.Errorf("the terminal does not show what is allowed:\n%s", screen)
	}
	if grants := ann.MustCLI(t, "grants", "--site", "shed"); strings.Contains(grants, "claude") {
		t.Errorf("it may do something before anybody confirms it:\n%s", grants)
	}
	o.typed("\n")
	token := p.exchange(p.brought().Get("code"))
	for tool, arguments := range map[string]string{"read_points": readBox, "switch_output": boxOn} {
		if status, refused := p.call(token, tool, arguments); status != 200 || refused {
			t.Errorf("%s: %d, refused: %v", tool, status, refused)
		}
	}

	// The page shows the program, and what it did.
	run[bool](b, "location.hash = '#access', true")
	const row = `[data-program=claude] `
	shows(row, "5 min")
	b.is(20*time.Second, "document.querySelector("+quote(row+"[data-called]")+")?.dataset.called > 0")
	b.press(row + "[aria-pressed]")
	b.is(10*time.Second, fmt.Sprintf("[...document.querySelectorAll(%s)].some(x => x.textContent.includes('switch_output'))", quote(row+"pre.exact")))
	b.press(row + "[data-act=change]")
	b.fill(row+"[name=may]", "read *")
	b.press(row + `[data-act="token/change"]`)
	if screen := o.asked(2); strings.Count(screen, may) < 2 {
		t.Errorf("the terminal does not show what it might do before:\n%s", screen)
	}
	o.typed("\n")
	b.is(10*time.Second, "!document.querySelector("+quote(row+"[name=may]")+")")
	if status, refused := p.call(token, "switch_output", boxOn); status == 200 && !refused {
		t.Error("a narrower permission does not count")
	}
	if status, refused := p.call(token, "read_points", readBox); status != 200 || refused {
		t.Errorf("it is out: %d", status)
	}

	b.authenticator()
	b.addPasskey(o, 3)
	b.press(row + `[data-act="owner/revoke"]`)
	o.asked(4)
	b.press(row + "[data-act=passkey]")
	b.is(10*time.Second, "!document.querySelector("+quote(row)+")")
	if status, _ := p.call(token, "read_points", readBox); status != 401 {
		t.Errorf("after its end: %d", status)
	}
}

// TestDenySignIn: a program that calls itself by a script and a long text is shown as text, with nothing wrong for axe,
// and the owner's no, which shows it, too, reaches the program.
func TestDenySignIn(t *testing.T) {
	t.Parallel()
	site, ann, o, b := openShed(t, "http: { oauth: on }")
	ann.MustCLI(t, "clock", "--set", "--site", "shed")
	p := newProgram(t, site, "<script>document.title='hacked'</script><img src=x onerror=alert(1)>"+strings.Repeat("x", 5000))
	if title := run[string](p.tab, "document.title"); strings.Contains(title, "hacked") {
		t.Error(title)
	}
	code := p.begin()
	run[bool](b, "location.hash = '#waiting', true")
	b.is(15*time.Second, `document.querySelector("[data-signin] [data-sentence]")`)
	for _, size := range [][2]int64{laptop, phone} {
		for _, scheme := range []string{"light", "dark"} {
			b.look(size, scheme)
			b.axe("a program that asks to sign in, "+scheme, size)
		}
	}
	if html := run[string](b, `document.querySelector("[data-signin] h3").innerHTML`); !strings.Contains(html, "&lt;script") || len(html) > 500 {
		t.Error(html)
	}
	b.press(`[data-signin] [data-act="owner/deny"]`)
	if screen := o.asked(1); !strings.Contains(screen, code) || !strings.Contains(screen, "script") {
		t.Errorf("the terminal does not show who is denied:\n%s", screen)
	}
	o.typed("\n")
	if v := p.brought(); v.Get("error") != "access_denied" || v.Get("code") != "" {
		t.Error(v)
	}
	b.is(10*time.Second, `!document.querySelector("[data-signin]")`)
}
