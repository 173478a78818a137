//go:build e2e

package page

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/node/identity"

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
// readings are old. more adds further sites.
func openHouse(t *testing.T, more ...func(harness.Person)) (*tab, *harness.Site) {
	t.Helper()
	ann, demo := harness.NewPerson(t), harness.Start(t, "", harness.Need(t, "the program", harness.Program))
	claimed(t, ann, harness.TempDir(t), "shed", "127.0.0.1:0", pump,
		"  weather: { driver: bme280, bus: i2c-250, every: 1h }")
	cellar := claimed(t, ann, harness.TempDir(t), "cellar", "127.0.0.1:0")
	barn := claimed(t, ann, harness.TempDir(t), "barn", "127.0.0.1:0", "  hay: { driver: sim, model: climate }")
	if _, err := demo.CLI(t, "set", "greenhouse/heater", "on", "--for", "10m"); err != nil {
		t.Fatal(err)
	}
	for _, add := range more {
		add(ann)
	}
	o := openPage(t, ann, demo.Folder)
	b := newBrowser(t)
	b.open(o.Link)
	b.live()
	b.is(20*time.Second, fmt.Sprintf(`document.querySelectorAll("[data-site]").length == %d`, 4+len(more)))
	b.is(20*time.Second, `!document.querySelector('[data-site] [data-state=wait]')`)
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

// stale answers as a site with a reading that is stale, and a pressure that is in Pa.
func stale(w http.ResponseWriter, r *http.Request) {
	type o = map[string]any
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Name string }
	}
	body, _ := io.ReadAll(r.Body)
	json.Unmarshal(body, &m)
	points := []o{{"point": "loft/temperature", "kind": "measurement", "unit": "Cel", "device": "loft"},
		{"point": "loft/pressure", "kind": "measurement", "unit": "Pa", "device": "loft"}}
	if m.Method == "subscriptions/listen" {
		w.Header().Set("Content-Type", "text/event-stream")
		note, _ := json.Marshal(o{"jsonrpc": "2.0", "method": "notifications/agentsite/values", "params": o{
			"_meta": o{"io.modelcontextprotocol/subscriptionId": m.ID}, "points": points, "emergency_stop": false,
			"approvals": []o{}, "readings": []o{{"i": 0, "value": 3.5, "age_seconds": 900, "quality": "stale", "why": "too old"},
				{"i": 1, "value": 101325, "age_seconds": 1, "quality": "good"}},
		}})
		fmt.Fprintf(w, "data: %s\n\n", note)
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if strings.HasPrefix(m.Method, "owner/") && m.Method != "owner/time" {
		json.NewEncoder(w).Encode(o{"jsonrpc": "2.0", "id": m.ID, "error": o{"code": 503, "message": "not now"}})
		return
	}
	answer := o{}
	switch m.Params.Name {
	case "list_points":
		answer["structuredContent"] = o{"points": points}
	case "site_status":
		answer["structuredContent"] = o{"site": "attic", "version": "1", "uptime_seconds": 60, "devices": []o{}}
	case "read_history":
		now, steps := time.Now().Truncate(time.Minute), []o{}
		for i := range 60 {
			steps = append(steps, o{"time": now.Add(time.Duration(i-60) * time.Minute).Format(time.RFC3339),
				"min": 101200, "mean": 101325 + i, "max": 101500, "last": 101325, "good": 1})
		}
		answer["structuredContent"] = o{"point": "loft/pressure", "unit": "Pa", "step_seconds": 60, "steps": steps}
	case "ask_agent":
		answer["structuredContent"] = o{"agents": []o{}, "tasks": []o{}}
	default:
		answer["structuredContent"] = o{}
	}
	answer["resultType"], answer["content"] = "complete", []o{}
	json.NewEncoder(w).Encode(o{"jsonrpc": "2.0", "id": m.ID, "result": answer})
}

// TestPressure: the air's pressure, which sites have in Pa, is shown in hPa: as a value, at the axis of its chart and
// in the table of it.
func TestPressure(t *testing.T) {
	t.Parallel()
	ann := harness.NewPerson(t)
	claimed(t, ann, harness.TempDir(t), "shed", "127.0.0.1:0")
	own(t, ann, "attic", identity.New(), stale)
	o := openPage(t, ann, "")
	b := newBrowser(t)
	b.open(strings.Replace(o.Link, "/#", "/?lang=en#", 1))
	b.live()
	run[bool](b, "location.hash = '#point?s=attic&p=loft/pressure', true")
	b.is(20*time.Second, `document.querySelector("main").innerText.match(/1,013\.3\s*hPa/)`)
	b.is(20*time.Second, `[...document.querySelectorAll("[data-chart] svg text")]
		.some(x => /^1,0\d\d hPa$/.test(x.textContent))`)
	if text := run[string](b, `document.querySelector("main").textContent`); strings.Contains(text, "101,") {
		t.Errorf("it shows Pa: %s", text)
	}
}

// axe fails the test for each rule of axe that what is shown breaks, and where it is wider than the tab.
func (b *tab) axe(what string, size [2]int64) {
	b.t.Helper()
	if !run[bool](b, "'axe' in window") {
		modules := harness.Need(b.t, "axe-core", os.Getenv("NPM_MODULES"))
		script, err := os.ReadFile(filepath.Join(modules, "axe-core", "axe.min.js"))
		if err != nil {
			b.t.Fatal(err)
		}
		run[bool](b, string(script)+"; true")
	}
	for _, v := range run[[]violation](b, `axe.run(document, { resultTypes: ["violations"] })
		.then(r => r.violations.map(v => ({ Rule: v.id, At: v.nodes.slice(0, 3).map(n => n.html + " " + (n.any[0]?.message ?? "")) })))`) {
		b.t.Errorf("%s at %d px breaks %s: %s", what, size[0], v.Rule, strings.Join(v.At, "\n\t"))
	}
	if wide := run[int64](b, "document.documentElement.scrollWidth"); wide > size[0] {
		b.t.Errorf("%s is %d px wide at %d px", what, wide, size[0])
	}
}

// violation is a rule of axe that a view breaks, and where.
type violation struct {
	Rule string
	At   []string
}

// TestAxe: axe finds nothing in any view, light and dark, on a phone and on a laptop, while an output is held, a
// call waits, a stop is latched, a reading is stale and a site is gone.
func TestAxe(t *testing.T) {
	t.Parallel()
	b, _ := openHouse(t, func(ann harness.Person) { own(t, ann, "attic", identity.New(), stale) })
	b.is(20*time.Second, `document.querySelector('[data-view=house] a[href*="loft"] [data-state=old]')`)
	views := run[[]string](b, `[...document.querySelectorAll("nav [data-nav]")].map(a => a.dataset.nav)`)
	views = append(views, "more", "claim?n=shed&k=did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK",
		"why?s=demo&p=greenhouse/heater", "journal?s=shed", "board?s=shed", "add?s=shed",
		"edit?s=shed")
	for _, site := range []string{"demo", "shed", "cellar", "barn", "attic"} {
		views = append(views, "site?s="+site)
	}
	for _, p := range []string{"demo&p=greenhouse/temperature", "demo&p=greenhouse/heater", "demo&p=greenhouse/lamp", "shed&p=weather/temperature", "shed&p=pump/relay",
		"cellar&p=box/relay", "barn&p=hay/temperature", "attic&p=loft/temperature"} {
		views = append(views, "point?s="+p)
	}
	for _, size := range [][2]int64{phone, laptop} {
		for _, scheme := range []string{"light", "dark"} {
			b.look(size, scheme)
			for _, view := range views {
				t.Log(view)
				b.show(view)
				b.axe(view+", "+scheme, size)
			}
		}
	}
	t.Log(fmt.Sprint(len(views)), "views")
}
