//go:build e2e

package page

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"

	"github.com/chromedp/chromedp"
)

// onPhone opens a link in a phone's browser, and goes on where it warns of the certificate.
func onPhone(t *testing.T, link string) *tab {
	t.Helper()
	at, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t, chromedp.WindowSize(390, 844))
	b.host = at.Host
	b.expect("ERR_CERT_AUTHORITY_INVALID")
	chromedp.Do(b.ctx, chromedp.Navigate(link)) // fails, by that error
	b.press("#details-button")
	b.expect("responded with a status of 4") // the browser notes what the site refuses
	b.press("#proceed-link")
	return b
}

// grantPhone runs agentsite grant phone as the owner of the site shed.
func grantPhone(t *testing.T, p harness.Person, more ...string) *opened {
	t.Helper()
	o := atTerminal(t, p, append([]string{"grant", "phone", "--site", "shed"}, more...)...)
	t.Cleanup(func() { o.cmd.Process.Kill() })
	return o
}

// letIn lets a phone in whose browser opened the link.
func (o *opened) letIn(t *testing.T, b *tab) {
	t.Helper()
	b.is(20*time.Second, `document.querySelector("[data-out=compare] [data-print]")`)
	o.asked(1)
	o.typed("\n")
	if err := o.cmd.Wait(); err != nil {
		t.Fatal(err, o.screen)
	}
	b.live()
}

// TestPhoneInBrowser: a phone that an owner lets in reads and moves, also after its page was closed, and does no
// owner's act. A second one that shows the same code is told so, and one that is refused gets nothing. What is
// revoked does not count from then on: what it moved is safe, and with its last permission the phone is out, and
// neither a reload nor the code of before brings it back.
func TestPhoneInBrowser(t *testing.T) {
	t.Parallel()
	ann := harness.NewPerson(t)
	site := claimed(t, ann, harness.TempDir(t), "shed", "127.0.0.1:0")
	g := grantPhone(t, ann)
	b := onPhone(t, g.Link)
	b.is(20*time.Second, `document.querySelector("[data-out=compare] [data-print]")`)
	letters := run[string](b, `document.querySelector("[data-print]").textContent`)
	second := onPhone(t, g.Link)
	second.is(20*time.Second, `document.querySelector("[data-out=expired]")`)
	if screen := g.asked(1); !regexp.MustCompile(`(?m)^  `+letters+`$`).MatchString(screen) || len(letters) != 8 {
		t.Errorf("the phone shows %q, and the terminal:\n%s", letters, screen)
	}
	g.typed("\n")
	if err := g.cmd.Wait(); err != nil {
		t.Fatal(err, g.screen)
	}
	b.live()

	b.press("[data-site]")
	b.press(`[data-output="box/relay"]`)
	move := func() {
		t.Helper()
		const hold = `article[data-output="box/relay"] [data-act=move]`
		b.is(20*time.Second, fmt.Sprintf("document.querySelector(%s + ':not([aria-disabled])')", quote(hold)))
		b.hold(hold, func() {
			harness.WaitFor(t, 10*time.Second, "the relay is on", func() bool {
				says, err := site.CLI(t, "read", "box/relay")
				return err == nil && strings.Contains(says, " on")
			})
		})
	}
	move()
	// As after the tab was closed: its session is gone, and its key stays.
	run[bool](b, "sessionStorage.clear(), location.reload(), true")
	b.live()
	b.is(10*time.Second, `document.querySelector('[data-output="box/relay"][data-kind=held]')`)

	// As after the site was started again, or hours without a use: the page gets another session by itself.
	const end = `(async () => {
		window.before = sessionStorage.getItem("token");
		const headers = { Authorization: "Bearer " + window.before };
		const ask = (path, method) => fetch("/page/session" + path, { method, headers });
		const all = (await (await ask("", "GET")).json()).sessions;
		return all.length > 0 && (await ask("/" + all.find(s => s.own).session, "DELETE")).ok;
	})()`
	if !run[bool](b, end) {
		t.Fatal("its session does not end")
	}
	b.is(10*time.Second, `(t => t && t !== window.before)(sessionStorage.getItem("token"))`)
	b.live()

	run[bool](b, script)
	for _, method := range []string{"owner/approve", "owner/grant", "owner/phone", "owner/configuration"} {
		if a := run[said](b, fmt.Sprintf(`call("/mcp", %q, {name: "x"})`, method)); a.Error.Code != -32601 {
			t.Errorf("%s: %+v", method, a)
		}
	}

	refused := grantPhone(t, ann)
	onPhone(t, refused.Link)
	refused.asked(1)
	refused.typed("n\n")
	if err := refused.cmd.Wait(); err == nil {
		t.Error("a refused phone is granted something")
	}
	grants := ann.MustCLI(t, "grants", "--json", "--site", "shed")
	key := regexp.MustCompile(`did:key:\w+`).FindAllString(grants, -1)
	if len(key) != 1 {
		t.Fatalf("the grants are\n%s", grants)
	}

	// A smaller permission counts at once.
	first := regexp.MustCompile(`[0-9a-f]{16}`).FindString(grants)
	ann.MustCLI(t, "grant", key[0], "read *", "--site", "shed")
	ann.MustCLI(t, "revoke", first, "--site", "shed")
	const on = `{name: "switch_output", arguments: {output: "box/relay", on: true, for_seconds: 60}}`
	if a := run[said](b, `call("/mcp", "tools/call", `+on+`, "switch_output")`); a.Result.Structured.Value == true {
		t.Errorf("it moves by a permission that was revoked: %+v", a)
	}
	if says, err := site.CLI(t, "read", "box/relay"); err != nil || !strings.Contains(says, " off") {
		t.Errorf("what it moved: %s %v", says, err)
	}
	b.live()
	b.is(10*time.Second, `document.querySelector('[data-output="box/relay"]')`)

	ann.MustCLI(t, "revoke", key[0], "--site", "shed")
	since := time.Now()
	b.is(time.Second+slack, `document.querySelector("[data-out=out]")`)
	t.Log("it is out after", time.Since(since))
	for _, again := range []string{"?a", "?b" + g.Link[strings.Index(g.Link, "#"):]} {
		b.open("https://" + b.host + "/" + again)
		b.is(10*time.Second, `document.querySelector("[data-out=out] pre,[data-out=expired] pre")?.textContent ===
			"agentsite grant phone --site shed"`)
	}
}
