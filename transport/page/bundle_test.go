package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
)

var update = flag.Bool("update", false, "write dist anew")

// bundle makes the files of dist from src and vendor.
func bundle(t *testing.T) map[string][]byte {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	vendor := func(file string) string { return filepath.Join(here, "vendor", file) }
	r := api.Build(api.BuildOptions{
		EntryPointsAdvanced: []api.EntryPoint{
			{InputPath: "src/main.tsx", OutputPath: "page"}, {InputPath: "src/style.css", OutputPath: "style"},
			{InputPath: "src/worker.ts", OutputPath: "worker"},
		},
		AbsWorkingDir: here, Outdir: here, Bundle: true, Charset: api.CharsetUTF8, LegalComments: api.LegalCommentsNone,
		// What is loaded later has a name of its own text, so that an open page never loads that of another version.
		Splitting: true, ChunkNames: "[name]-[hash]",
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, Format: api.FormatESModule, Target: api.ES2022,
		// Style sheets keep light-dark(), which this target would write out.
		Engines: []api.Engine{{Name: api.EngineChrome, Version: "123"}, {Name: api.EngineFirefox, Version: "120"}, {Name: api.EngineSafari, Version: "17.5"}},
		JSX:     api.JSXAutomatic, JSXImportSource: "preact",
		TsconfigRaw: "{}",
		Alias: map[string]string{
			"preact": vendor("preact.mjs"), "preact/hooks": vendor("hooks.mjs"), "preact/jsx-runtime": vendor("jsxRuntime.mjs"),
			"@preact/signals": vendor("signals.mjs"), "@preact/signals-core": vendor("signals-core.mjs"),
		},
	})
	for _, m := range append(r.Errors, r.Warnings...) {
		t.Errorf("%+v: %s", m.Location, m.Text)
	}
	files := map[string][]byte{}
	for _, f := range r.OutputFiles {
		files[strings.Replace(filepath.Base(f.Path), "style.css", "page.css", 1)] = f.Contents
	}
	for _, name := range []string{"index.html", "icon.svg", "icon-192.png", "icon-512.png", "app.webmanifest"} {
		if files[name], err = os.ReadFile(filepath.Join("src", name)); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// TestBundle: dist is what its sources give, and its scripts are small but for what is loaded to set up
// a site, and what a browser keeps to show messages.
func TestBundle(t *testing.T) {
	var small bytes.Buffer
	w, _ := gzip.NewWriterLevel(&small, gzip.BestCompression)
	files := bundle(t)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		want := files[name]
		path := filepath.Join("dist", name)
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what its sources give: run go generate ./transport/page (%v)", path, err)
		}
		if strings.HasSuffix(name, ".js") && !strings.HasPrefix(name, "setting-") && name != "worker.js" {
			w.Write(want)
		}
	}
	w.Close()
	if small.Len() > 60<<10 {
		t.Errorf("the page's scripts have %d bytes, compressed", small.Len())
	}
	in, err := fs.ReadDir(dist, "dist")
	if err != nil || !*update && len(in) != len(files) {
		t.Errorf("dist has %v, %v", in, err)
	}
	for _, was := range in {
		if _, ok := files[was.Name()]; *update && !ok {
			os.Remove(filepath.Join("dist", was.Name()))
		}
	}
}

// TestVendor: the parts of others are those whose sums were noted.
func TestVendor(t *testing.T) {
	text, err := os.ReadFile("vendor/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	sums := strings.Fields(string(text))
	for i := 0; i+1 < len(sums); i += 2 {
		file, err := os.ReadFile(filepath.Join("vendor", sums[i+1]))
		if sum := sha256.Sum256(file); err != nil || hex.EncodeToString(sum[:]) != sums[i] {
			t.Errorf("%s: %x, %v", sums[i+1], sum, err)
		}
	}
	if in, err := os.ReadDir("vendor"); err != nil || len(in) != len(sums)/2+2 {
		t.Errorf("vendor has %d files for %d sums, %v", len(in), len(sums)/2, err)
	}
}
