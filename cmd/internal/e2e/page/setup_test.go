//go:build e2e

package page

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
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
	site, _, o, b := openShed(t)
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

// TestComplete: by the keyboard, keys and values are completed at the cursor of the configuration, by its schema.
func TestComplete(t *testing.T) {
	t.Parallel()
	_, invitation := harness.StartUnclaimed(t, harness.TempDir(t))
	ann := harness.NewPerson(t)
	ann.MustCLI(t, "claim", invitation.String())
	o := openPage(t, ann, "")
	b := newBrowser(t)
	b.open(o.Link)
	b.live()
	b.look([2]int64{320, 700}, "dark")
	run[bool](b, "location.hash = '#edit', true")
	b.is(20*time.Second, `document.querySelector("#text")`)
	open := func(text string) { // with the cursor at |
		t.Helper()
		before, after, _ := strings.Cut(text, "|")
		b.fill("#text", before+after)
		run[bool](b, fmt.Sprintf(`(a => { a.focus(); a.setSelectionRange(%d, %[1]d); return true; })(
			document.querySelector("#text"))`, len(before)))
		b.key(" ", chromedp.KeyModifiers(chromedp.ModifierCtrl))
	}
	text := func() string { return run[string](b, `document.querySelector("#text").value`) }
	const chosen = `document.getElementById(document.querySelector("#text")
		.getAttribute("aria-activedescendant"))?.dataset.option`
	open("site: { name: x }\ndevices:\n  lamp: { driver: re|, pin: 17 }\n")
	b.is(20*time.Second, `[...document.querySelectorAll("[role=option]")].map(o => o.dataset.option).join()
		=== "relay,registers"`)
	b.axe("the options", [2]int64{320, 700})
	b.key(kb.ArrowDown)
	b.is(5*time.Second, chosen+` === "registers"`)
	b.key(kb.ArrowUp)
	b.is(5*time.Second, chosen+` === "relay"`)
	if run[bool](b, `document.querySelector("#text").dispatchEvent(
		new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }))`) {
		t.Error("Enter also breaks the line") // chromedp's Enter does so whatever becomes of the key
	}
	b.is(5*time.Second, `!document.querySelector("[role=option]")`)
	if now := text(); !strings.Contains(now, "{ driver: relay, pin: 17 }") {
		t.Errorf("a value became %q", now)
	}
	open("site: { name: x }\ndevices:\n  lamp:\n    |\n    driver: relay\n")
	b.is(5*time.Second, `document.querySelector("[data-option=pin]")?.textContent.includes("GPIO17")`)
	b.key("co")
	b.is(5*time.Second, chosen+` === "confirm"`)
	b.key(kb.Tab)
	b.key("o")
	b.is(5*time.Second, `document.querySelector("#text").value.includes("    confirm: o\n")`)
	b.key(" ", chromedp.KeyModifiers(chromedp.ModifierCtrl))
	b.is(5*time.Second, chosen+` === "owner"`)
	b.key(kb.Escape)
	b.is(5*time.Second, `!document.querySelector("[role=option]") && document.activeElement.id === "text"`)
	if now := text(); !strings.Contains(now, "    confirm: o\n") {
		t.Errorf("after Escape: %q", now)
	}
}

// TestMachine: the board view shows what doctor finds, with its remedies, and which device is at which pin, also on
// a small screen.
func TestMachine(t *testing.T) {
	t.Parallel()
	site, invitation := harness.StartUnclaimed(t, harness.TempDir(t), "  valve: { driver: button, pin: GPIO17 }",
		"  air: { driver: bme280, bus: i2c-250 }")
	ann := harness.NewPerson(t)
	ann.MustCLI(t, "claim", invitation.String())
	o := openPage(t, ann, "")
	b := newBrowser(t)
	b.open(strings.Replace(o.Link, "/#", "/?lang=de#", 1))
	b.live()
	b.look([2]int64{320, 700}, "light")
	b.show("board")
	b.is(20*time.Second, `document.querySelector("[data-pin='11']")?.textContent.includes("valve")`)
	b.is(20*time.Second, `[...document.querySelectorAll("[data-findings] li")]
		.some(l => l.textContent.includes("air") && l.querySelector("[data-state=bad]"))`)
	b.axe("the board", [2]int64{320, 700})
	says, _ := site.CLI(t, "doctor", "--json")
	var found struct {
		Findings []struct {
			Subject, Do string
		}
	}
	if err := json.Unmarshal([]byte(says), &found); err != nil || len(found.Findings) == 0 {
		t.Fatalf("%q %v", says, err)
	}
	shown := run[string](b, `document.querySelector("[data-findings]").textContent`)
	for _, f := range found.Findings {
		if f.Subject == "air" && !strings.Contains(shown, f.Do) {
			t.Errorf("the page does not show %+v", f)
		}
	}
}
