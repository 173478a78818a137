//go:build e2e

package page

import (
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"

	"github.com/chromedp/chromedp"
)

// TestPhoneKilled: a phone whose page ends while the owner compares is in once its key is granted something, and one
// that does not reach the site when its session is over stays in.
func TestPhoneKilled(t *testing.T) {
	t.Parallel()
	ann := harness.NewPerson(t)
	claimed(t, ann, harness.TempDir(t), "shed", "127.0.0.1:0")
	g := grantPhone(t, ann)
	b := onPhone(t, g.Link)
	b.is(20*time.Second, `document.querySelector("[data-out=compare] [data-print]")`)
	if err := chromedp.Do(b.ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	g.asked(1)
	g.typed("\n")
	if err := g.cmd.Wait(); err != nil {
		t.Fatal(err, g.screen)
	}
	b.open("https://" + b.host + "/")
	b.live()

	const away = `(async () => {
		window.before = sessionStorage.getItem("token");
		const real = window.fetch, headers = { Authorization: "Bearer " + window.before };
		window.asked = 0;
		window.fetch = (to, o) => String(to) === "/page/challenge" && !window.asked++ ? Promise.reject(new TypeError("away"))
			: real(to, o);
		const all = (await (await real("/page/session", { headers })).json()).sessions;
		return (await real("/page/session/" + all.find(s => s.own).session, { method: "DELETE", headers })).ok;
	})()`
	if !run[bool](b, away) {
		t.Fatal("its session does not end")
	}
	b.is(20*time.Second, `window.asked > 1 && (t => t && t !== window.before)(sessionStorage.getItem("token"))`)
	b.live()
}
