//go:build e2e

package mcp

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"

	"github.com/chromedp/chromedp"
)

// TestChromium opens a site over HTTPS as a browser's user does. Chromium warns of an unknown
// authority, offers to proceed, and then shows the help page.
func TestChromium(t *testing.T) {
	chromium, _ := exec.LookPath("chromium")
	harness.Need(t, "chromium", chromium)
	r := harness.StartHTTPS(t, harness.TempDir(t))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.NoSandbox)...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()

	url := r.HTTPS(t).URL + "/help"
	err := chromedp.Do(ctx, chromedp.Navigate(url))
	if err == nil || !strings.Contains(err.Error(), "ERR_CERT_AUTHORITY_INVALID") {
		t.Fatalf("Chromium says %v, and only the authority may be unknown to it", err)
	}
	err = chromedp.Do(ctx,
		chromedp.Click(chromedp.CSS("#details-button")),
		chromedp.Click(chromedp.CSS("#proceed-link")),
	)
	if err != nil {
		t.Fatalf("the warning offers no way on: %v", err)
	}
	if text, err := chromedp.Run(ctx, chromedp.Text(chromedp.CSS("h1 ~ pre"))); err != nil || !strings.Contains(text, "agentsite discover") {
		t.Errorf("the page says %q, %v", text, err)
	}
}
