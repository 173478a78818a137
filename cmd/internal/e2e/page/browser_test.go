//go:build e2e

package page

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// tab is a tab of Chromium. What no page of ours may do fails the test: to call another host, to violate
// its own policy, or to write an error.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	host     string // the only one that it may call
	expected string // errors with this text are right; "" for none
}

// newBrowser starts Chromium and returns its first tab. more are options that override the usual ones.
func newBrowser(t *testing.T, more ...chromedp.ExecAllocatorOption) *tab {
	t.Helper()
	chromium, _ := exec.LookPath("chromium")
	harness.Need(t, "chromium", chromium)
	ctx, cancel := context.WithTimeout(t.Context(), harness.Workload(5*time.Minute, 20*time.Minute))
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true), chromedp.WindowSize(1440, 900)), more...)...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	return watched(t, ctx)
}

// another opens a further tab of the same browser.
func (b *tab) another() *tab {
	b.t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	b.t.Cleanup(cancel)
	return watched(b.t, ctx)
}

func watched(t *testing.T, ctx context.Context) *tab {
	t.Helper()
	b := &tab{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, b.see); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		second(chromedp.Call(ctx, log.Enable, cdp.Empty{})), second(chromedp.Call(ctx, network.Enable, network.EnableParams{})),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func second[T any](_ T, err error) error { return err }

// see fails the test for what no page of ours does.
func (b *tab) see(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	says := ""
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if at, err := url.Parse(e.Request.URL); err == nil && at.Host != "" && at.Host != b.host {
			says = "it called " + e.Request.URL
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Source == "security" || e.Entry.Source == "violation" {
			says = fmt.Sprintf("%s %s: %s", e.Entry.Source, e.Entry.Level, e.Entry.Text)
		}
	case *runtime.EventExceptionThrown:
		says = fmt.Sprintf("an exception: %+v", e.ExceptionDetails)
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "assert" {
			says = fmt.Sprintf("the console: %+v", e.Args)
		}
	}
	if says != "" && (b.expected == "" || !strings.Contains(says, b.expected)) {
		b.t.Error(says)
	}
}

// open goes to a link, of the only host that the tab may call from then on.
func (b *tab) open(link string) {
	b.t.Helper()
	at, err := url.Parse(link)
	if err != nil {
		b.t.Fatal(err)
	}
	b.mu.Lock()
	b.host = at.Host
	b.mu.Unlock()
	if err := chromedp.Do(b.ctx, chromedp.Navigate(link)); err != nil {
		b.t.Fatal(link, err)
	}
}

// expect has errors with that text be right from now on.
func (b *tab) expect(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = text
}

// is waits until an expression of JavaScript is true.
func (b *tab) is(most time.Duration, expression string) {
	b.t.Helper()
	harness.WaitFor(b.t, most, expression, func() bool {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		return err == nil && ok
	})
}

// run evaluates an expression, and waits where it is a promise.
func run[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatal(expression, err)
	}
	return v
}

// quote writes a value in JavaScript.
func quote(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// press clicks what a CSS selector finds.
func (b *tab) press(selector string) {
	b.t.Helper()
	b.is(10*time.Second, "document.querySelector("+quote(selector)+")")
	if err := chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS(selector))); err != nil {
		b.t.Fatal(selector, err)
	}
}

// live waits until the page hears of its sites.
func (b *tab) live() {
	b.t.Helper()
	b.is(30*time.Second, `document.querySelector("[data-net=live]")`)
}
