//go:build e2e

package page

import (
	"net/url"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"

	"github.com/chromedp/chromedp"
)

// TestProceed: at the HTTPS listener of a site Chromium warns of the certificate, and lets the person go on. With
// one that it cannot read it would not.
func TestProceed(t *testing.T) {
	t.Parallel()
	ann := harness.NewPerson(t)
	site := claimed(t, ann, harness.TempDir(t), "shed", "127.0.0.1:0")
	at := site.HTTPS(t).URL
	parsed, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t)
	b.host = parsed.Host
	b.expect("ERR_CERT_AUTHORITY_INVALID")
	chromedp.Do(b.ctx, chromedp.Navigate(at)) // fails, by that error
	b.is(10*time.Second, `document.querySelector("#proceed-link")`)
}
