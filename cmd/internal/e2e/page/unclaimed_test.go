//go:build e2e

package page

import (
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"

	"github.com/chromedp/chromedp"
)

// TestUnclaimed: on a phone, the page of a site that nobody owns says how to claim it, and nothing of the
// secret; once somebody owns it, the page says that it is signed out.
func TestUnclaimed(t *testing.T) {
	t.Parallel()
	site, claim := harness.StartUnclaimed(t, harness.TempDir(t))
	b := newBrowser(t, chromedp.Flag("ignore-certificate-errors", true), chromedp.WindowSize(390, 844))
	b.open(site.HTTPS(t).URL + "/")
	b.is(10*time.Second, `document.querySelector("[data-out=unclaimed]")`)
	if says := run[string](b, "document.documentElement.outerHTML"); strings.Contains(says, claim.Secret.Text()) || !strings.Contains(says, "agentsite claim") {
		t.Errorf("the page says %s", says)
	}
	harness.NewPerson(t).MustCLI(t, "claim", claim.String())
	b.open(site.HTTPS(t).URL + "/?again")
	// It tells strangers no name of the site.
	b.is(10*time.Second, `/^agentsite grant phone --peer did:key:\w+$/.test(document.querySelector("[data-out=out] pre")?.textContent)`)
}
