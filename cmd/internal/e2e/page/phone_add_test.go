//go:build e2e

package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"

	"github.com/chromedp/chromedp"
)

// addPhone adds a phone in the access view of the page of agentsite open, and returns the link that it shows.
func (b *tab) addPhone() string {
	b.t.Helper()
	b.show("access")
	if !run[bool](b, `!!document.querySelector("[data-phone]")`) {
		b.press("[data-act=phone-add]")
	}
	b.press("[data-act=phone]")
	b.is(20*time.Second, `document.querySelector("[data-qr] path + path")`)
	return run[string](b, `document.querySelector("[data-link]").textContent`)
}

// TestAddPhone: a phone that opens the link in the page is let in by a passkey, with nothing at the terminal, which
// shows what is confirmed and not the link. A second phone that opens the link is told so.
func TestAddPhone(t *testing.T) {
	t.Parallel()
	ann := harness.NewPerson(t)
	claimed(t, ann, harness.TempDir(t), "shed", "127.0.0.1:0")
	o := openPage(t, ann, "")
	b := newBrowser(t)
	b.open(o.Link)
	b.live()
	b.authenticator()
	b.addPasskey(o, 1)
	link := b.addPhone()
	p := onPhone(t, link)
	p.is(20*time.Second, `document.querySelector("[data-out=compare] [data-print]")`)
	letters := run[string](p, `document.querySelector("[data-print]").textContent`)
	second := onPhone(t, link)
	second.is(20*time.Second, `document.querySelector("[data-out=expired]")`)
	b.is(10*time.Second, `document.querySelector("[data-letters]")?.textContent === `+quote(letters))
	if run[bool](b, `!!document.querySelector("[data-link],[data-qr]")`) {
		t.Error("the page still shows a link that was used")
	}
	screen := o.asked(2)
	_, code, _ := strings.Cut(link, "#k=")
	if !strings.Contains(screen, letters) || strings.Contains(screen, code) {
		t.Errorf("the phone shows %q, and the terminal:\n%s", letters, screen)
	}
	if grants := ann.MustCLI(t, "grants", "--json", "--site", "shed"); strings.Contains(grants, "did:key:") {
		t.Errorf("it is granted something before anybody confirms it:\n%s", grants)
	}
	b.press("[data-act=passkey]")
	p.live()
	const asks = `performance.getEntriesByType("resource").filter(e => e.name.endsWith("/page/key")).length`
	if n := run[int](p, asks); n != 1 {
		t.Errorf("it asked %d times whether it is let in", n)
	}
	const name = "chrome-on-linux"
	grants := ann.MustCLI(t, "grants", "--site", "shed")
	if strings.Count(grants, name) != 1 || !strings.Contains(grants, "read *, set *, stop") {
		t.Errorf("the grants are\n%s", grants)
	}
	b.is(10*time.Second, `document.querySelector("[data-grant] h3")?.textContent === `+quote(name)+
		` && !document.querySelector("[data-letters]")`)

	// What it moves is in the journal by its name, which ends its permission.
	run[bool](p, script)
	run[said](p, `call("/mcp", "tools/call", {name: "switch_output", arguments: {output: "box/relay", on: true, for_seconds: 60}},
		"switch_output")`)
	b.show("journal")
	b.is(20*time.Second, `[...document.querySelectorAll("main li.top summary span")].some(x => x.textContent.startsWith(`+
		quote(name)+`))`)
	ann.MustCLI(t, "revoke", name, "--site", "shed")
	p.is(20*time.Second, `document.querySelector("[data-out=out]")`)
}

// TestAddPhoneShown: the code in the page is the link, for another program and in the dark, and axe finds nothing in
// it. One that is cancelled counts no more, a permission that cannot be read gets none, and a phone that the person
// at the terminal refuses gets nothing.
func TestAddPhoneShown(t *testing.T) {
	t.Parallel()
	ann := harness.NewPerson(t)
	claimed(t, ann, harness.TempDir(t), "shed", "127.0.0.1:0")
	o := openPage(t, ann, "")
	b := newBrowser(t)
	b.open(o.Link)
	b.live()
	everywhere := func(what string, do func()) {
		t.Helper()
		for _, size := range [][2]int64{laptop, phone} {
			for _, scheme := range []string{"light", "dark"} {
				b.look(size, scheme)
				b.axe(what+", "+scheme, size)
				do()
			}
		}
	}
	link := b.addPhone()
	everywhere("the code", func() {
		picture, err := chromedp.Run(b.ctx, chromedp.Screenshot(chromedp.CSS("[data-qr]")))
		if err != nil {
			t.Fatal(err)
		}
		if got := scanned(t, picture); got != link {
			t.Errorf("the code is %q, and the link %q", got, link)
		}
	})
	b.press("[data-phone] .btn") // cancel
	b.is(10*time.Second, `document.querySelector("[data-phone] [name=may]")`)
	late := onPhone(t, link)
	late.is(20*time.Second, `document.querySelector("[data-out=expired]")`)
	everywhere("what a phone may do", func() {})

	b.fill("[name=may]", "fly")
	b.press("[data-act=phone]")
	b.is(10*time.Second, `document.querySelector("[data-phone] .note.bad")`)
	b.fill("[name=may]", "read *")
	p := onPhone(t, b.addPhone())
	p.is(20*time.Second, `document.querySelector("[data-out=compare]")`)
	b.is(10*time.Second, `document.querySelector("[data-letters]")`)
	everywhere("the letters", func() {})
	if screen := o.asked(1); !strings.Contains(screen, fmt.Sprintf("%q", "read *")) {
		t.Errorf("the terminal does not show the permission:\n%s", screen)
	}
	o.typed("n\n")
	b.is(10*time.Second, `document.querySelector("[data-phone] .note.bad")`)
	if grants := ann.MustCLI(t, "grants", "--json", "--site", "shed"); strings.Contains(grants, "did:key:") {
		t.Errorf("a refused phone is granted something:\n%s", grants)
	}
}
