//go:build e2e

package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// TestWaiting: a call that waits is shown with exactly what it asks. To allow it takes the person at the
// terminal, and the journal then says who allowed what.
func TestWaiting(t *testing.T) {
	t.Parallel()
	_, _, o, b := openShed(t, pump)
	run[bool](b, script)
	run[said](b, `call("/at/shed/mcp", "tools/call", {name: "switch_output", arguments: {output: "pump/relay", on: true, for_seconds: 60}}, "switch_output")`)
	run[bool](b, "location.hash = '#waiting', true")
	b.is(10*time.Second, `document.querySelector("[data-approval] pre")?.textContent.match(/switch_output[^]*pump\/relay[^]*60/)`)
	b.press(`[data-approval] [data-act="owner/approve"]`)
	b.is(10*time.Second, `document.querySelector("[data-approval] .note pre")?.textContent.includes("owner/approve")`)
	if screen := o.asked(1); !strings.Contains(screen, "pump/relay") {
		t.Errorf("the terminal does not show what is approved:\n%s", screen)
	}
	if !run[bool](b, `document.querySelector("[data-approval]") !== null`) {
		t.Error("the page takes a call as allowed before the person has answered")
	}
	o.typed("n\n")
	b.is(10*time.Second, `document.querySelector("[data-approval] .note.bad")`)
	says := run[string](b, `document.querySelector("[data-approval] .note.bad").textContent`)
	if strings.Contains(says, "may not") {
		t.Errorf("after a no the page says %q", says)
	}
	b.press(`[data-approval] [data-act="owner/approve"]`)
	o.asked(2)
	o.typed("\n")
	b.is(10*time.Second, `!document.querySelector("[data-approval]")`)
	run[bool](b, "location.hash = '#journal', true")
	b.is(10*time.Second, `[...document.querySelectorAll("main li pre")].some(p => p.textContent.match(/approve[^]*pump\/relay/))`)
}

// TestTalk checks that messages to and from an agent are shown as text, that the site's records are shown apart
// from them, and that an output that the agent moved can be returned to safe from its card.
func TestTalk(t *testing.T) {
	t.Parallel()
	demo := harness.Start(t, "", harness.Need(t, "the program", harness.Program))
	o := openPage(t, harness.NewPerson(t), demo.Folder)
	b := newBrowser(t)
	b.open(o.Link)
	b.live()
	run[bool](b, "location.hash = '#talk?s=demo&a=gardener', true")
	const hostile = `lamp on <img src=x onerror=alert(1)>`
	b.is(10*time.Second, `document.querySelector("#msg")`)
	run[bool](b, fmt.Sprintf(`(() => { const m = document.querySelector("#msg"); m.value = %s; return m.dispatchEvent(new Event("input", { bubbles: true })); })()`, quote(hostile)))
	b.press(".say .btn")
	b.is(20*time.Second, `document.querySelector("[data-record] li")?.textContent.includes("greenhouse/lamp")`)
	if !run[bool](b, fmt.Sprintf(`document.querySelector(".me").textContent.includes(%s) && !document.querySelector("main img")`, quote(hostile))) {
		t.Error("what was said is not shown as it was said")
	}
	const lamp = `[data-moved="greenhouse/lamp"]`
	b.press(lamp + " [data-act=safe]")
	b.is(10*time.Second, fmt.Sprintf("!document.querySelector(%s)", quote(lamp)))
	if says, err := demo.CLI(t, "read", "greenhouse/lamp"); err != nil || !strings.Contains(says, " off") {
		t.Errorf("%s %v", says, err)
	}
}

// TestActCut: of an owner's act whose answer was lost nobody says that it was not done.
func TestActCut(t *testing.T) {
	t.Parallel()
	_, _, _, b := openShed(t)
	run[bool](b, `(real => { window.fetch = (to, o) => String(o?.body).includes("owner/reload")
		? Promise.reject(new TypeError("cut")) : real(to, o); location.hash = "#board"; return true; })(window.fetch)`)
	b.press(`[data-act="owner/reload"]`)
	b.is(10*time.Second, `document.querySelector("main .note.unk")`)
	if run[bool](b, `document.querySelector("main .note.bad") !== null`) {
		t.Error("it says that the act was not done")
	}
}
