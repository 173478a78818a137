package skill

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const good = "---\nname: water\ndescription: How we water.\nmetadata:\n  author: kim\n---\nOnly at night.\n"

// write makes a folder of skills; files are its contents by their paths.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		file := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// TestBuiltIn: the skills that come with the program are of a size that a model reads, and their digests are theirs.
func TestBuiltIn(t *testing.T) {
	var names []string
	for _, s := range BuiltIn() {
		names = append(names, s.Name)
		if n := len(s.Text); n < 2000 || n > 4096 {
			t.Errorf("%s has %d bytes", s.Name, n)
		}
		f := s.Entry.Resources[0]
		if f.Digest != fmt.Sprintf(
			"sha256:%x", sha256.Sum256([]byte(s.Text)),
		) || f.Size != len(s.Text) || f.URI != s.Entry.URI || f.URI != "skill://"+s.Name+"/SKILL.md" {
			t.Errorf("%s: %+v", s.Name, f)
		}
		if s.Entry.Frontmatter["name"] != s.Name || s.Entry.Frontmatter["description"] != s.Description {
			t.Errorf("%s: %v", s.Name, s.Entry.Frontmatter)
		}
	}
	if got := strings.Join(names, " "); got != "check-up commission-a-device use-a-site write-a-rule" {
		t.Error(got)
	}
}

// TestOwn: an owner's skill stands beside those of the program, and replaces one of the same name.
func TestOwn(t *testing.T) {
	folder := write(t, map[string]string{
		"water/SKILL.md":    good,
		"check-up/SKILL.md": strings.ReplaceAll(good, "name: water", "name: check-up"),
		".git/config":       "x",
	})
	all, errs := Open(folder)
	if errs != nil || len(all) != len(BuiltIn())+1 {
		t.Fatal(len(all), errs)
	}
	texts := make(map[string]string)
	for _, s := range all {
		texts[s.Name] = s.Text
	}
	if texts["water"] != good || !strings.Contains(texts["check-up"], "Only at night") {
		t.Error(texts["water"], texts["check-up"])
	}
	if all, errs := Open(filepath.Join(folder, "none")); errs != nil || !Equal(all, BuiltIn()) {
		t.Error(len(all), errs)
	}
}

// TestMistakes: a skill with a mistake is left out with its file and line, and the others are offered.
func TestMistakes(t *testing.T) {
	front := func(lines string) string { return "---\n" + lines + "\n---\ntext\n" }
	for _, tt := range []struct{ text, where, says string }{
		{"name: water\n", ":1", "begin with a line ---"},
		{"---\nname: water\n", ":1", "ends the frontmatter"},
		{front("name: water"), ":1", "description: is missing"},
		{front("description: x"), ":1", "name: is missing"},
		{front("description: x\nname: Water"), ":3", "a-z"},
		{front("description: x\nname: wa--ter"), ":3", "hyphens"},
		{front("description: x\nname: other"), ":3", "the folder is called"},
		{front("name: water\ndescription: 5"), ":3", "in quotes"},
		{front("name: water\ndescription: &a x\nlicense: *a"), "", ""},
		{front("name: water\ndescription: x\nallowed-tools: Bash"), ":4", "allowed-tools"},
		{front("name: water\ndescription: x\nversion: \"1\""), ":4", "no key of a skill"},
		{front("name: water\ndescription: x\nname: water"), "", ""},
		{front("name: water\ndescription: x\nmetadata: [a]"), ":4", "metadata"},
		{front("name: water\ndescription: x\nmetadata:\n  io.modelcontextprotocol/x: a"), ":5", "reserved"},
		{front("name: water\ndescription: \"x"), "", ""},
		{front("name: water\ndescription: How we water: by hand"), ":3", "in quotes"},
		{front("- name"), ":2", "lines such as"},
		{"---\nname: water\ndescription: x\n---\n \n", "", "no text"},
		{front("name: water\ndescription: \xff"), "", "UTF-8"},
		{front("name: water\ndescription: " + strings.Repeat("x", 1025)), ":1", "at most"},
		{front("name: water\ndescription: x") + strings.Repeat("x", maxFile), "", "longer"},
		{front("name: water\ndescription: x\nlicense: " + strings.Repeat("x", maxFront)), ":1", "longer"},
	} {
		folder := write(
			t, map[string]string{"water/SKILL.md": tt.text, "fine/SKILL.md": strings.ReplaceAll(good, "water", "fine")},
		)
		all, errs := Open(folder)
		file := filepath.Join(folder, "water", "SKILL.md")
		if len(
			errs,
		) != 1 || !strings.HasPrefix(errs[0].Error(), file+tt.where+":") || !strings.Contains(errs[0].Error(), tt.says) {
			t.Errorf("%.60q: %v", tt.text, errs)
		}
		if len(all) != len(BuiltIn())+1 {
			t.Errorf("%.60q: %d skills", tt.text, len(all))
		}
	}
}

// TestNotPlain: nothing outside of the folder is read, and nothing that is no plain file.
func TestNotPlain(t *testing.T) {
	outside := write(t, map[string]string{"water/SKILL.md": good})
	folder := write(t, map[string]string{"readme.md": "x", "empty/notes": "x", "dir/SKILL.md/x": "x"})
	if err := os.Symlink(filepath.Join(outside, "water"), filepath.Join(folder, "water")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(folder, "linked"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(
		filepath.Join(outside, "water", "SKILL.md"), filepath.Join(folder, "linked", "SKILL.md"),
	); err != nil {
		t.Fatal(err)
	}
	all, errs := Open(folder)
	if len(all) != len(BuiltIn()) || len(errs) != 5 {
		t.Errorf("%d skills: %v", len(all), errs)
	}
}

// TestMost: there are at most maxSkills of an owner.
func TestMost(t *testing.T) {
	files := make(map[string]string)
	for i := range maxSkills + 1 {
		name := fmt.Sprintf("s%02d", i)
		files[name+"/SKILL.md"] = strings.ReplaceAll(good, "name: water", "name: "+name)
	}
	all, errs := Open(write(t, files))
	if len(all) != len(BuiltIn())+maxSkills || len(errs) != 1 {
		t.Error(len(all), errs)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("\ufeff---\r\nname: water\r\ndescription: >\r\n  a\r\n  b\r\n---\r\nx"))
	f.Add([]byte("---\nname: water\ndescription: {a: &b [*b]}\n---\nx"))
	for _, s := range BuiltIn() {
		f.Add([]byte(s.Text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse("water", text)
		if err == nil && (s.Name != "water" || s.Description == "" || s.Entry.Resources[0].Size != len(text)) {
			t.Errorf("%+v", s)
		}
	})
}
