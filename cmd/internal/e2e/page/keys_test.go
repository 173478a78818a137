//go:build e2e

package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// key presses keys.
func (b *tab) key(keys string, with ...chromedp.KeyOption) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, chromedp.KeyEvent(keys, with...)); err != nil {
		b.t.Fatal(err)
	}
}

// to presses Tab until what a CSS selector finds has the focus, and fails where that does not show.
func (b *tab) to(selector string) {
	b.t.Helper()
	b.is(10*time.Second, fmt.Sprintf("document.querySelector(%s)", quote(selector)))
	for range 80 {
		b.key(kb.Tab)
		if run[bool](b, fmt.Sprintf("!!document.activeElement?.matches(%s)", quote(selector))) {
			if !run[bool](b, `(s => s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0 || s.boxShadow !== "none")(getComputedStyle(document.activeElement))`) {
				b.t.Errorf("the focus does not show at %s", selector)
			}
			return
		}
	}
	b.t.Fatalf("Tab does not come to %s", selector)
}

// TestKeyboard: by the keyboard alone, an output is moved and sent back to safe, a call that waits is opened, and
// everything is stopped.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	site, _, o, b := openShed(t, pump)
	is := func(value string) {
		t.Helper()
		harness.WaitFor(t, 10*time.Second, "box/relay is "+value, func() bool {
			says, err := site.CLI(t, "read", "box/relay")
			return err == nil && strings.Contains(says, " "+value)
		})
	}
	b.to("main [data-site]")
	b.key(kb.Enter)
	b.to(`button[data-output="box/relay"]`)
	b.key(kb.Enter)
	const card = `article[data-output="box/relay"] `
	b.is(10*time.Second, fmt.Sprintf("document.querySelector(%s)?.ariaDisabled !== 'true'", quote(card+"[data-act=move]")))
	b.to(card + "[data-act=move]")
	b.key(kb.Enter)
	b.to("[data-panel] [data-act=yes]")
	b.key(kb.Enter)
	b.is(10*time.Second, `document.querySelector('article[data-output="box/relay"][data-kind=held]')`)
	is("on")
	b.is(10*time.Second, `document.activeElement !== document.body`) // though its row is gone
	b.to(card + "[data-act=safe]")
	b.key(kb.Enter)
	is("off")
	run[bool](b, script)
	run[said](b, `call("/at/shed/mcp", "tools/call", {name: "switch_output", arguments: {output: "pump/relay", on: true, for_seconds: 60}}, "switch_output")`)
	b.is(10*time.Second, `document.querySelector("[data-nav=waiting] .n")`)
	b.key("gw")
	b.to(`[data-approval] [data-act="owner/approve"]`)
	b.key(kb.Enter)
	if screen := o.asked(1); !strings.Contains(screen, "pump/relay") {
		t.Errorf("the terminal does not show what is approved:\n%s", screen)
	}
	b.key(".", chromedp.KeyModifiers(chromedp.ModifierCtrl))
	harness.WaitFor(t, 5*time.Second, "the site stops", func() bool { return stopped(t, site) })
	b.is(5*time.Second, `document.activeElement?.id === "main" || document.querySelector("[data-stopping]")`)
	o.typed("n\n")
}
