package sysfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRoot(t *testing.T) {
	root := Root(t.TempDir())
	if err := os.Mkdir(root.Path("sys"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a1": " bme280\x00\n", "a2": "x\xFFy", "b": strings.Repeat("x", maxFile+1), "page": strings.Repeat("y", 5000)} {
		if err := os.WriteFile(root.Path("sys", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var r Reader
	for name, want := range map[string]string{"a1": "bme280", "a2": "xy", "b": "", "none": "", "page": strings.Repeat("y", 5000)} {
		if got := root.Text("sys", name); got != want {
			t.Errorf("%s says %q, want %q", name, got, want)
		}
		if got := r.Text(root.Path("sys/" + name)); got != want {
			t.Errorf("%s says %q to a reader, want %q", name, got, want)
		}
	}
	if got := root.Glob("sys/a*"); len(got) != 2 || filepath.Base(got[0]) != "a1" || !root.Exists("sys", "b") || root.Exists("sys/c") {
		t.Errorf("%q", got)
	}
	if got := Root("").Path("sys"); got != filepath.Join("/", "sys") {
		t.Error(got)
	}
}
