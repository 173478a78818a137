//go:build e2e

package page

import (
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// TestInstallable: Chromium finds nothing that keeps the page from being installed, neither that of agentsite
// open nor that of a site on its network; the latter's certificate is trusted here.
func TestInstallable(t *testing.T) {
	t.Parallel()
	ann := harness.NewPerson(t)
	site := claimed(t, ann, harness.TempDir(t), "shed", "127.0.0.1:0")
	for _, link := range []string{openPage(t, ann, "").Link, site.HTTPS(t).URL + "/"} {
		b := newBrowser(t, chromedp.Flag("ignore-certificate-errors", true))
		b.open(link)
		b.is(20*time.Second, `document.querySelector("[data-net=live], [data-out=out]")`)
		got, err := chromedp.Call(b.ctx, page.GetAppManifest, page.GetAppManifestParams{})
		if err != nil || len(got.Errors) != 0 || !strings.HasSuffix(got.URL, "/page/app.webmanifest") ||
			strings.Contains(got.Data, "shed") {
			t.Errorf("%s: %+v, %v", link, got, err)
		}
		why, err := chromedp.Call(b.ctx, page.GetInstallabilityErrors, cdp.Empty{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range why.InstallabilityErrors {
			t.Errorf("%s: %+v", link, e)
		}
	}
}
