package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	_ "time/tzdata" // the examples are in Berlin, whatever the machine has

	"agentsite/cmd/internal/site"
)

var updateExamples = flag.Bool("update-examples", false, "write wiring.svg and expected.txt of docs/examples anew")

// TestExamples: each configuration of docs/examples is checked without a warning, and its picture and the
// moves of its day are as this program makes them. After a change: make examples, and read what changed.
func TestExamples(t *testing.T) {
	t.Setenv("COLUMNS", "120")
	folders, err := filepath.Glob("../../docs/examples/*/agentsite.yaml")
	if err != nil || len(folders) != 12 {
		t.Fatalf("%d examples, %v", len(folders), err)
	}
	for _, file := range folders {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			cfg, from, err := site.CheckBoard(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, doubt := range site.Doubts(cfg, from) {
				t.Error(doubt)
			}
			run := func(args ...string) []byte {
				t.Helper()
				var out bytes.Buffer
				a := &app{out: &output{Writer: &out}, errs: &out}
				if code := a.execute(t.Context(), args); code != exitOK {
					t.Fatalf("exit %d: %s", code, out.String())
				}
				return out.Bytes()
			}
			for name, is := range map[string][]byte{
				"wiring.svg": run("pinout", "--config", file, "--root", dir, "--svg", "-"),
				"expected.txt": run("rules", "try", "--config", file, "--readings", filepath.Join(dir, "day.csv"),
					"--zone", "Europe/Berlin", "--moves"),
			} {
				if *updateExamples {
					if err := os.WriteFile(filepath.Join(dir, name), is, 0o644); err != nil {
						t.Fatal(err)
					}
				} else if was, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(was, is) {
					t.Errorf("%s is not as this program makes it (%v): make examples", name, err)
				}
			}
		})
	}
}
