//go:build e2e

package page

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// fill writes into a field, as a person who types.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.is(20*time.Second, "document.querySelector("+quote(selector)+")")
	run[bool](b, fmt.Sprintf(`(() => {
		const e = document.querySelector(%s);
		e.value = %s;
		return e.dispatchEvent(new Event("input", { bubbles: true }));
	})()`, quote(selector), quote(text)))
}

// TestAddPart: an owner adds a relay in the page and the terminal, and moves it.
func TestAddPart(t *testing.T) {
	t.Parallel()
	site, invitation := harness.StartUnclaimed(t, harness.TempDir(t))
	ann := harness.NewPerson(t)
	ann.MustCLI(t, "claim", invitation.String())
	o := openPage(t, ann, "")
	b := newBrowser(t)
	b.open(o.Link)
	b.live()
	run[bool](b, "location.hash = '#board', true")
	b.press("[data-act=add]")
	b.fill("#driver", "sim")
	b.press("[data-driver=sim] [data-act=take]")
	b.fill("[name=device]", "box")
	b.fill("[name=model]", "relay")
	b.fill("[name=min_off]", "0")
	b.press("[data-act=see]")
	b.is(10*time.Second, `document.querySelector("main .note.bad")`) // there is a box
	b.fill("[name=device]", "valve")
	b.press("[data-act=see]")
	b.is(20*time.Second, `document.querySelector("[data-change]")?.textContent.includes("+   valve: ")`)
	b.press(`[data-act="owner/configure"]`)
	if screen := o.asked(1); !strings.Contains(screen, "valve") {
		t.Errorf("the terminal does not show the text:\n%s", screen)
	}
	o.typed("\n")
	b.is(20*time.Second, "location.hash.startsWith('#site')")
	b.press(`[data-output="valve/relay"]`)
	const hold = `article[data-output="valve/relay"] [data-act=move]`
	b.is(20*time.Second, fmt.Sprintf("document.querySelector(%s + ':not([aria-disabled])')", quote(hold)))
	b.hold(hold, func() {
		harness.WaitFor(t, 10*time.Second, "the relay is on", func() bool {
			says, err := site.CLI(t, "read", "valve/relay")
			return err == nil && strings.Contains(says, " on")
		})
	})
}

// TestEditConfiguration: a mistake is shown at its line and is not written; a configuration with which the site
// is not well is rolled back, and the page says why; what somebody else wrote meanwhile stays.
func TestEditConfiguration(t *testing.T) {
	t.Parallel()
	folder := harness.TempDir(t)
	_, invitation := harness.StartUnclaimed(t, folder)
	ann := harness.NewPerson(t)
	ann.MustCLI(t, "claim", invitation.String())
	o := openPage(t, ann, "")
	b := newBrowser(t)
	b.open(strings.Replace(o.Link, "/#", "/?lang=de#", 1))
	b.live()
	run[bool](b, "location.hash = '#board', true")
	b.press("[data-act=edit]")
	b.is(20*time.Second, `document.querySelector("#text") && document.documentElement.lang === "de"`)
	file := run[string](b, `document.querySelector("main code").textContent`)
	read := func() string {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	before := strings.TrimRight(read(), "\n") + "\n"
	line := strings.Count(before, "\n") + 1
	const write = `[data-act="owner/configure"]`

	b.fill("#text", before+"  bad: { driver: nothing }\n")
	b.is(20*time.Second, fmt.Sprintf(`document.querySelector("[data-mistake='%d']") && document.querySelector(%s).ariaDisabled === "true"`, line, quote(write)))

	b.fill("#text", before+"  air: { driver: bme280, bus: i2c-77 }\n")
	b.is(20*time.Second, fmt.Sprintf(`document.querySelector("[data-checked='0']") && document.querySelector(%s).ariaDisabled !== "true"`, quote(write)))
	b.press(write)
	if screen := o.asked(1); !strings.Contains(screen, "\n  +  air: {") || strings.Contains(screen, `"text"`) {
		t.Errorf("the terminal shows\n%s", screen)
	}
	o.typed("\n")
	b.is(30*time.Second, `document.querySelector("main .note.bad")?.textContent.includes("i2c-77")`)
	b.is(10*time.Second, fmt.Sprintf("!document.querySelector(%s).ariaBusy", quote(write)))
	if now := read(); strings.Contains(now, "air") || !strings.Contains(now, "box") {
		t.Errorf("after it was not well:\n%s", now)
	}

	theirs := before + "  # by somebody else\n"
	if err := os.WriteFile(file, []byte(theirs), 0o600); err != nil {
		t.Fatal(err)
	}
	b.fill("#text", before+"  second: { driver: sim, model: relay }\n")
	b.is(20*time.Second, fmt.Sprintf(`document.querySelector("[data-checked='0']") && document.querySelector(%s).ariaDisabled !== "true"`, quote(write)))
	b.press(write) // nobody is asked about it
	b.is(20*time.Second, `document.querySelector("[data-conflict]")`)
	if now := read(); now != theirs {
		t.Errorf("what somebody else wrote became\n%s", now)
	}
}
