package view

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
)

var update = flag.Bool("update", false, "write view.html anew")

// bundle makes the page from its sources, which share parts with the site's own page.
func bundle(t *testing.T) string {
	t.Helper()
	sources, err := filepath.Abs("../../page/src/view")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(sources, "view.html"))
	if err != nil {
		t.Fatal(err)
	}
	r := api.Build(api.BuildOptions{
		EntryPoints: []string{
			"main.ts", "view.css",
		}, AbsWorkingDir: sources, Outdir: sources, Bundle: true, Charset: api.CharsetUTF8,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, Format: api.FormatIIFE, Target: api.ES2022,
		// Style sheets keep light-dark(), which this target would write out.
		Engines: []api.Engine{{
			Name: api.EngineChrome, Version: "123",
		}, {Name: api.EngineFirefox, Version: "120"}, {Name: api.EngineSafari, Version: "17.5"}},
		TsconfigRaw: "{}",
	})
	for _, m := range append(r.Errors, r.Warnings...) {
		t.Errorf("%+v: %s", m.Location, m.Text)
	}
	parts := map[string]string{}
	for _, f := range r.OutputFiles {
		parts[filepath.Ext(f.Path)] = strings.TrimSpace(string(f.Contents))
	}
	return strings.NewReplacer("{{style}}", parts[".css"], "{{script}}", parts[".js"]).Replace(string(page))
}

// TestBundle: view.html is current, and small.
func TestBundle(t *testing.T) {
	want := bundle(t)
	if *update {
		if err := os.WriteFile("view.html", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if HTML != want {
		t.Error("view.html is not what its sources give: run go generate ./transport/mcp/view")
	}
	if len(HTML) > 25<<10 {
		t.Errorf("the page has %d bytes", len(HTML))
	}
	t.Logf("%d bytes", len(HTML))
}

// TestPage: the page refers to no network, makes no text into script or elements, and has no inline handlers.
func TestPage(t *testing.T) {
	for _, no := range []string{
		"http", `src=`, `href`, `@import`, `url\(`, `\beval\b`, `Function\(`, `innerHTML`, `outerHTML`, `insertAdjacent`, `document\.write`, `\bimport\(`,
		`fetch\(`, `XMLHttpRequest`, `WebSocket`, `EventSource`, `sendBeacon`, `localStorage`, `<[a-z]+[^<>]*\son[a-z]+\s*=`,
	} {
		if found := regexp.MustCompile(no).FindString(HTML); found != "" {
			t.Errorf("the page has %q", found)
		}
	}
	if n := strings.Count(HTML, "</script"); n != 1 {
		t.Errorf("the page ends its script %d times", n)
	}
}
