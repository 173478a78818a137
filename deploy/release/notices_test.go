package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// TestNotices: a released program comes with a licence of each module that it links, and both the
// packages and the image have the file. Its bill of materials has each module by its public name.
func TestNotices(t *testing.T) {
	t.Chdir("../..") // as the scripts
	program := filepath.Join(t.TempDir(), "program")
	if said, err := exec.Command("go", "build", "-o", program, "./cmd/agentsite").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	var list bytes.Buffer
	if err := sbom(&list, program); err != nil {
		t.Fatal(err)
	}
	var listed bom
	if err := json.Unmarshal(list.Bytes(), &listed); err != nil {
		t.Fatal(err)
	}
	for _, c := range listed.Components {
		if strings.Contains(c.PURL, "/./") || strings.ContainsAny(c.PURL, "()") || c.Version == "" {
			t.Errorf("no name by which others know a module: %+v", c)
		}
	}
	var text bytes.Buffer
	if err := notices(&text, []string{program}); err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range info.Deps {
		if !strings.Contains(text.String(), "\n"+m.Path+" ") {
			t.Errorf("no notice of %s", m.Path)
		}
	}
	for _, want := range []string{"Mozilla Public License", "The Go Authors", "MIT License"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q", want)
		}
	}
	for script, most := range map[string]string{"deploy/packages": "NOTICES", "deploy/nfpm.yaml": "/usr/share/doc/agentsite/NOTICES", "deploy/image/build": "NOTICES"} {
		if b, err := os.ReadFile(script); err != nil || !strings.Contains(string(b), most) {
			t.Errorf("%s has no %s: %v", script, most, err)
		}
	}
}
