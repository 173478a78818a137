//go:build e2e

package page

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// A tab's sizes: of a laptop and of a phone.
var laptop, phone = [2]int64{1440, 900}, [2]int64{390, 844}

// look sets the size of a tab, and whether it is dark.
func (b *tab) look(size [2]int64, scheme string) {
	b.t.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}}
	for _, err := range []error{
		chromedp.Do(b.ctx, chromedp.EmulateViewport(size[0], size[1])),
		second(chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media)),
	} {
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// show goes to a view, and waits until it has loaded what it shows.
func (b *tab) show(view string) {
	b.t.Helper()
	run[bool](b, "location.hash = "+quote("#"+view)+", true")
	b.is(20*time.Second, `document.querySelector("main h2, main h3, main p, main li") && !document.querySelector("main .sk")`)
	if text := run[string](b, `document.querySelector("[data-broken]")?.textContent ?? ""`); text != "" {
		b.t.Errorf("%s: %s", view, text)
	}
}

// openHouse opens the page of a house where all is at once: of the site demo an output is held, at the site
// shed a call waits and a device is faulty, the site cellar is stopped, and the site barn is gone, so that its
// readings are stale.
func openHouse(t *testing.T) (*tab, *harness.Site) {
	t.Helper()
	ann, demo := harness.NewPerson(t), harness.Start(t, "", harness.Need(t, "the program", harness.Program))
	claimed(t, ann, harness.TempDir(t), "shed", "127.0.0.1:0", "  pump: { driver: sim, model: relay, min_off: 0, confirm: owner }",
		"  weather: { driver: bme280, bus: i2c-250, every: 1h }")
	cellar := claimed(t, ann, harness.TempDir(t), "cellar", "127.0.0.1:0")
	barn := claimed(t, ann, harness.TempDir(t), "barn", "127.0.0.1:0", "  hay: { driver: sim, model: climate }")
	if _, err := demo.CLI(t, "set", "greenhouse/heater", "on", "--for", "10m"); err != nil {
		t.Fatal(err)
	}
	o := openPage(t, ann, demo.Folder)
	b := newBrowser(t)
	b.open(o.Link)
	b.live()
	b.is(20*time.Second, `document.querySelectorAll("[data-site]").length == 4 && !document.querySelector('[data-site] [data-state=wait]')`)
	run[bool](b, script)
	run[said](b, `call("/at/shed/mcp", "tools/call", {name: "switch_output", arguments: {output: "pump/relay", on: true, for_seconds: 60}}, "switch_output")`)
	if _, err := cellar.CLI(t, "stop"); err != nil {
		t.Fatal(err)
	}
	barn.Kill(t)
	b.is(40*time.Second, `document.querySelector("[data-gone=barn]") && document.querySelector("[data-away]") && document.querySelector("[data-stopping]")
		&& document.querySelector('[data-nav=waiting] .n') && document.querySelector('main a[href*="weather"], main [data-state=bad]')`)
	return b, demo
}

// violation is a rule of axe that a view breaks, and where.
type violation struct {
	Rule string
	At   []string
}

// TestAxe: axe finds nothing in any view, light and dark, on a phone and on a laptop, while an output is held, a
// call waits, a stop is latched and a site is gone.
func TestAxe(t *testing.T) {
	t.Parallel()
	axe, err := os.ReadFile(filepath.Join(harness.Need(t, "axe-core", os.Getenv("NPM_MODULES")), "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := openHouse(t)
	run[bool](b, string(axe)+"; true")
	views := run[[]string](b, `[...document.querySelectorAll("nav [data-nav]")].map(a => a.dataset.nav)`)
	views = append(views, "more", "why?s=demo&p=greenhouse/heater")
	for _, site := range []string{"demo", "shed", "cellar", "barn"} {
		views = append(views, "site?s="+site)
	}
	for _, p := range []string{"demo&p=greenhouse/temperature", "demo&p=greenhouse/heater", "demo&p=greenhouse/lamp", "shed&p=weather/temperature", "shed&p=pump/relay",
		"cellar&p=box/relay", "barn&p=hay/temperature"} {
		views = append(views, "point?s="+p)
	}
	for _, size := range [][2]int64{phone, laptop} {
		for _, scheme := range []string{"light", "dark"} {
			b.look(size, scheme)
			for _, view := range views {
				b.show(view)
				for _, v := range run[[]violation](b, `axe.run(document, { resultTypes: ["violations"] })
					.then(r => r.violations.map(v => ({ Rule: v.id, At: v.nodes.slice(0, 3).map(n => n.html + " " + (n.any[0]?.message ?? "")) })))`) {
					t.Errorf("%s, %s at %d px breaks %s: %s", view, scheme, size[0], v.Rule, strings.Join(v.At, "\n\t"))
				}
				if wide := run[int64](b, "document.documentElement.scrollWidth"); wide > size[0] {
					t.Errorf("%s is %d px wide at %d px", view, wide, size[0])
				}
			}
		}
	}
	t.Log(fmt.Sprint(len(views)), "views")
}
