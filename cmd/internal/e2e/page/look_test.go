//go:build e2e

package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// hold keeps the left button pressed, at the middle of what a CSS selector finds, while it waits.
func (b *tab) hold(selector string, wait func()) {
	b.t.Helper()
	at := run[[]float64](b, fmt.Sprintf(`(async () => {
		const e = document.querySelector(%s);
		e.scrollIntoView({ block: "center", behavior: "instant" });
		for (let n = 0; n < 3; n++) await new Promise(requestAnimationFrame); // the scroll is over: it ends a hold
		const r = e.getBoundingClientRect();
		return [r.x + r.width / 2, r.y + r.height / 2];
	})()`, quote(selector)))
	for _, event := range []input.DispatchMouseEventType{input.DispatchMouseEventTypeMousePressed, input.DispatchMouseEventTypeMouseReleased} {
		if err := chromedp.Do(b.ctx, chromedp.MouseEvent(event, at[0], at[1], chromedp.ButtonLeft, chromedp.ClickCount(1))); err != nil {
			b.t.Fatal(selector, err)
		}
		if event == input.DispatchMouseEventTypeMousePressed {
			wait()
		}
	}
}

// TestThreeClicks: from agentsite run to a moved heater: the link, the site, the heater, and its button, held
// for a second.
func TestThreeClicks(t *testing.T) {
	t.Parallel()
	demo := harness.Start(t, "", harness.Need(t, "the program", harness.Program))
	b := newBrowser(t)
	b.open(demo.Page)
	b.press("[data-site]")
	b.press(`[data-output="greenhouse/heater"]`)
	const hold = `article[data-output="greenhouse/heater"] [data-act=move]`
	b.is(10*time.Second, fmt.Sprintf("document.querySelector(%s)?.ariaDisabled !== 'true'", quote(hold)))
	b.hold(hold, func() {
		harness.WaitFor(t, 10*time.Second, "the heater is on", func() bool {
			says, err := demo.CLI(t, "read", "greenhouse/heater")
			return err == nil && strings.Contains(says, " on")
		})
	})
	b.is(10*time.Second, `document.querySelector('[data-output="greenhouse/heater"][data-kind=held]')`)
}

// TestViews: no view is broken, calls another host, or violates the page's own policy; and the page is few
// files.
func TestViews(t *testing.T) {
	t.Parallel()
	demo := harness.Start(t, "", harness.Need(t, "the program", harness.Program))
	o := openPage(t, harness.NewPerson(t), demo.Folder)
	b := newBrowser(t)
	b.open(o.Link)
	b.live()
	files := run[[]string](b, `[...new Set(performance.getEntriesByType("resource").map(e => new URL(e.name).pathname)
		.filter(p => !p.endsWith("/mcp")))]`)
	if len(files) > 6 {
		t.Errorf("beside the document the page loads %q", files)
	}
	b.is(10*time.Second, `document.querySelectorAll("nav [data-nav]").length > 0`)
	views := run[[]string](b, `[...document.querySelectorAll("nav [data-nav]")].map(a => a.dataset.nav)`)
	views = append(views, "site?s=demo", "point?s=demo&p=greenhouse/temperature", "point?s=demo&p=greenhouse/heater", "why?s=demo&p=greenhouse/heater")
	for _, view := range views {
		run[bool](b, "location.hash = "+quote("#"+view)+", true")
		b.is(10*time.Second, `document.querySelector("main h2, main h3, main p, main li")`)
		if text := run[string](b, `document.querySelector("[data-broken]")?.textContent ?? ""`); text != "" {
			t.Errorf("%s: %s", view, text)
		}
	}
	run[bool](b, "location.hash = '#house', true")
	b.is(10*time.Second, `document.querySelector("[data-view=house]")`)
}

// TestSmallScreen: on a phone a view has its own title, a list that opens begins with its first line, and no word
// runs over the edge of the stop.
func TestSmallScreen(t *testing.T) {
	t.Parallel()
	demo := harness.Start(t, "", harness.Need(t, "the program", harness.Program))
	o := openPage(t, harness.NewPerson(t), demo.Folder)
	b := newBrowser(t)
	b.look(phone, "light")
	b.open(o.Link)
	b.live()
	run[bool](b, "location.hash = '#more', true")
	b.is(10*time.Second, `document.querySelector("main [href='#board']") &&
		document.querySelector("h1").textContent === document.querySelector("nav [href='#more']").textContent`)
	if n := run[int](b, `document.querySelectorAll("nav [aria-current=page]").length`); n != 1 {
		t.Errorf("%d views are marked as the one that is shown", n)
	}
	run[bool](b, "location.hash = '#point?s=demo&p=greenhouse/temperature', true")
	b.is(10*time.Second, `document.querySelector("[data-chart] svg")`) // which moves the button
	run[bool](b, `document.querySelector("[data-act=compare]").click(), true`)
	b.is(10*time.Second, `document.querySelector("[data-panel] li")`)
	if y := run[float64](b, `document.querySelector("[data-panel]").scrollTop`); y != 0 {
		t.Errorf("the list is open at %v px", y)
	}
	b.press("[data-stop]")
	b.is(10*time.Second, `document.querySelector("#stop.held")`)
	if over := run[float64](b, `(s => s.querySelector("b").getBoundingClientRect().width + 2 * parseFloat(
		getComputedStyle(s).paddingLeft) - s.clientWidth)(document.getElementById("stop"))`); over > 0.5 {
		t.Errorf("the stop's words are %v px too wide", over)
	}
}

// TestSignedOut: a window that is signed out keeps no stream, and asks the site nothing: each such request was an
// entry of the journal.
func TestSignedOut(t *testing.T) {
	t.Parallel()
	demo := harness.Start(t, "", harness.Need(t, "the program", harness.Program))
	b := newBrowser(t)
	b.open(demo.Page)
	b.live()
	run[bool](b, "location.hash = '#access', true")
	b.press("main [data-act=sign-out]")
	b.is(10*time.Second, "document.querySelector('[data-out=out]')")
	harness.WaitFor(t, 10*time.Second, "no stream is kept", func() bool {
		return run[int](b, "navigator.locks.query().then(q => q.held.length)") == 0
	})
}

// TestEndStop: the end of a stop waits where it is shown, until the terminal or a passkey confirms it.
func TestEndStop(t *testing.T) {
	t.Parallel()
	demo := harness.Start(t, "", harness.Need(t, "the program", harness.Program))
	o := openPage(t, harness.NewPerson(t), demo.Folder)
	b := newBrowser(t)
	b.open(o.Link)
	b.live()
	b.press("[data-stop]")
	b.press("[data-act=endstop]")
	b.press("[data-panel] [data-act=yes]")
	if screen := o.asked(1); !strings.Contains(screen, "owner/reset") {
		t.Errorf("the terminal asks\n%s", screen)
	}
	b.is(10*time.Second, `document.querySelector("[data-stopping] .note .exact")?.textContent.includes("owner/reset")`)
	o.typed("\n")
	b.is(10*time.Second, `!document.querySelector("[data-stopping]")`)
}
