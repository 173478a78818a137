package config

import (
	"strings"
	"testing"
)

// TestPack compares entries with the decoded ones, including their positions.
func TestPack(t *testing.T) {
	text := strings.Repeat("\n", 200) + "kind: rule\n\"when\": \"a/b < 5 Cel\"\nhold: { house/heater: on, lamp/level: '40' }\n" +
		"do:\n  - set: { lamp/level: 40 }\n    for: 2h\n  - []\n  - {}\n  - ~\nlong: |\n  two\n  lines – and no ASCII\n" +
		"longer: " + strings.Repeat("x", 20_000) + "\n"
	root, _, err := parseTree("a.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var same func(a, b []entry) bool
	same = func(a, b []entry) bool {
		if len(a) != len(b) {
			return false
		}
		for i, e := range a {
			f, v, w := b[i], e.value, b[i].value
			if e.at != f.at || e.key != f.key || v.at != w.at || v.shape != w.shape || v.quoted != w.quoted || v.text != w.text || !same(v.entries, w.entries) {
				return false
			}
		}
		return true
	}
	if p := pack(root.entries); !same(root.entries, p.entries()) || len(p) > len(text) {
		t.Errorf("%q came back otherwise", p)
	}
}
