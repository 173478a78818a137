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

// TestBrowser: a browser goes from a client's page to the site's, waits there, and is back with one code, however often
// it goes back; in a frame it asks nobody.
func TestBrowser(t *testing.T) {
	chromium, _ := exec.LookPath("chromium")
	harness.Need(t, "chromium", chromium)
	p := newPlace(t)
	c := new(webClient)
	c.Server = httptest.NewServer(c)
	defer c.Close()
	base := strings.TrimSuffix(p.url, "/mcp")
	id := p.register(t, "Web", c.URL+"/callback")
	at := base + "/authorize?" + url.Values{
		"client_id": {id}, "redirect_uri": {c.URL + "/callback"}, "response_type": {"code"}, "state": {"s"},
		"code_challenge": {strings.Repeat("A", 43)}, "code_challenge_method": {"S256"}, "resource": {p.url},
	}.Encode()

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true),
		chromedp.Flag("host-resolver-rules", "MAP *.local 127.0.0.1"), chromedp.Flag("ignore-certificate-errors", true))...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	do := func(a chromedp.Action[chromedp.Void]) {
		t.Helper()
		if err := chromedp.Do(ctx, a); err != nil {
			t.Fatalf("%v\n%s", err, p.Log)
		}
	}
	shows := func(expression string) {
		t.Helper()
		harness.WaitFor(t, 20*time.Second, expression, func() bool {
			ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
			return err == nil && ok
		})
	}

	do(chromedp.Navigate(c.URL + "/frame?to=" + url.QueryEscape(at)))
	shows(`document.querySelector("iframe")`)
	do(chromedp.Navigate(c.URL + "/begin?to=" + url.QueryEscape(at)))
	do(chromedp.Click(chromedp.CSS("a")))
	shows(`document.querySelector(".code")`)
	code, err := "", error(nil)
	harness.WaitFor(t, 20*time.Second, "the code", func() bool { // the page loads again now and then
		code, err = chromedp.Run(ctx, chromedp.Evaluate[string](`document.querySelector(".code").textContent`))
		return err == nil && code != ""
	})
	var waiting struct {
		SignIns []struct {
			Handle string `json:"handle"`
		} `json:"sign_ins"`
	}
	if err := json.Unmarshal([]byte(p.owner(t, "approve", "--json")), &waiting); err != nil || len(waiting.SignIns) != 1 || waiting.SignIns[0].Handle != code {
		t.Fatalf("the browser shows %s, and these wait: %+v %v", code, waiting, err)
	}
	p.owner(t, "approve", code, "--may", "read *")
	shows(`document.querySelector("#back")`)
	for range 3 {
		for _, way := range []string{"back", "forward"} { // the answer may be lost with the page
			_, _ = chromedp.Run(ctx, chromedp.Evaluate[chromedp.Void]("history."+way+"()"))
			shows(`document.querySelector("a, #back, .code")`)
		}
	}
	if codes, times := c.arrived(); len(codes) != 1 || codes[0] == "" {
		t.Errorf("%d codes in %d visits: %q", len(codes), times, codes)
	}
}
