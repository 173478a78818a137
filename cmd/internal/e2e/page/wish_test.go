//go:build e2e

package page

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestWish: a call that was refused to a program waits in the page, with the permission that would cover it. Once the
// owner gives that, the call is made on the connection that is there; and their no shows them what is denied.
func TestWish(t *testing.T) {
	t.Parallel()
	site, ann, o, b := openShed(t, "  fan: { driver: sim, model: relay, min_off: 0 }", "http: { oauth: on }")
	ann.MustCLI(t, "clock", "--set", "--site", "shed")
	p := newProgram(t, site, "Claude")
	ann.MustCLI(t, "approve", p.begin(), "--may", "read *, set fan max 1s", "--until", "3d", "--site", "shed")
	token := p.exchange(p.brought().Get("code"))
	if status, refused := p.call(token, "switch_output", boxOn); status == 200 && !refused {
		t.Fatal("it is not refused")
	}
	run[bool](b, "location.hash = '#waiting', true")
	const card = "[data-wish] "
	b.is(15*time.Second, fmt.Sprintf(`document.querySelector(%s)?.value.includes("box") && document.querySelector(%s)`,
		quote(card+"[name=may]"), quote(card+"[data-sentence]")))
	for _, size := range [][2]int64{laptop, phone} {
		b.look(size, "dark")
		b.axe("a call that was refused", size)
	}
	// What an owner takes from it meanwhile is not given back with the rest.
	ann.MustCLI(t, "token", "change", "claude", "read *", "--until", "3d", "--site", "shed")
	b.is(20*time.Second, fmt.Sprintf(`!document.querySelector(%s)?.value.includes("fan")`, quote(card+"[name=may]")))
	b.is(10*time.Second, fmt.Sprintf(`document.querySelector(%s)?.value.includes("box")`, quote(card+"[name=may]")))
	b.press(card + `[data-act="token/change"]`)
	if screen := o.asked(1); !strings.Contains(screen, "box") || !strings.Contains(screen, "Claude") {
		t.Errorf("the terminal does not show what is allowed:\n%s", screen)
	}
	o.typed("\n")
	b.is(10*time.Second, "!document.querySelector('"+card+"')")
	if status, refused := p.call(token, "switch_output", boxOn); status != 200 || refused {
		t.Errorf("what the owner gave it: %d, refused: %v", status, refused)
	}
	p.call(token, "switch_output", `{"output":"fan/relay","on":true,"for_seconds":60}`)
	p.call(token, "switch_output", `{"output":"fan/relay","on":true,"for_seconds":60}`)
	b.is(15*time.Second, fmt.Sprintf(`document.querySelector(%s)?.textContent.includes("60") && document.querySelector(%s)`,
		quote(card+"pre.exact"), quote(card+"[data-sentence]"))) // nothing moves below it any more
	b.press(card + `[data-act="owner/deny"]`)
	if screen := o.asked(2); strings.Count(screen, "fan/relay") == 0 {
		t.Errorf("the terminal does not show what is denied:\n%s", screen)
	}
	o.typed("\n")
	b.is(10*time.Second, "!document.querySelector('"+card+"')")
}
