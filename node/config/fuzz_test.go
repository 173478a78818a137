package config

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// FuzzParse: no text panics or hangs, and a text that is accepted means the same
// twice, and in a plan.
func FuzzParse(f *testing.F) {
	f.Add([]byte(greenhouse))
	for _, text := range []string{
		"", "site: { name: a }", "site:\n  name: |\n    a\n", "a: &x [*x]", "<<: 1", "? a\n: b", "[[[[", "- - - -", "---\n---\n", "a: 'b", "a: >-\n b\n",
	} {
		f.Add([]byte(text))
	}
	files, err := filepath.Glob("testdata/bad/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		input, _, _ := bytes.Cut(text, []byte("-- error --\n"))
		f.Add(input)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		first, err := Parse("a.yaml", text, fakes())
		if err != nil {
			_ = err.Error()
			return
		}
		second, err := Parse("a.yaml", text, fakes())
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Fatalf("the second time differs: %v", err)
		}
		planned(t, first)
	})
}
