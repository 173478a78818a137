package config

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/lexer"
)

func TestEdit(t *testing.T) {
	const head = "site: { name: x }\ndevices:\n"
	long := strings.Repeat("x", 90)
	for name, tt := range map[string]struct {
		before string
		device string
		keys   []Setting
		after  string
	}{
		"a value":                 {head + "  a: { driver:   thermo, address:  0x76 } # why\n", "a", []Setting{{"address", "0x77"}}, head + "  a: { driver:   thermo, address:  0x77 } # why\n"},
		"a value on its line":     {head + "  a:\n    every:   10s  # slow\n    driver: 'probe'", "a", []Setting{{"every", "5s"}}, head + "  a:\n    every:   5s  # slow\n    driver: 'probe'"},
		"the last value":          {head + "  a:\n    driver: 'probe'", "a", []Setting{{"driver", "thermo"}}, head + "  a:\n    driver: thermo"},
		"a key in braces":         {head + "  a: { driver: probe, } # why\n", "a", []Setting{{"every", "5s"}}, head + "  a: { driver: probe, every: 5s, } # why\n"},
		"a key on lines":          {head + "  a:\n    driver: probe # p\n    # more\n\n  b: { driver: probe }\n", "a", []Setting{{"every", "5s"}, {"scale", "2"}}, head + "  a:\n    driver: probe # p\n    # more\n    every: 5s\n    scale: 2\n\n  b: { driver: probe }\n"},
		"keys below another":      {head + "  a:\n    points:\n      heater: { safe: off }\n    driver: multi\n", "a", []Setting{{"points", "{ vent: { safe: 0 } }"}}, head + "  a:\n    points: { vent: { safe: 0 } }\n    driver: multi\n"},
		"a list at the margin":    {head + "  a:\n    steps:\n    - { after: 1s }\n    driver: multi\n", "a", []Setting{{"steps", ""}}, head + "  a:\n    driver: multi\n"},
		"a text of several lines": {head + "  a:\n    note: |\n      one # not\n      two\n    driver: probe\n", "a", []Setting{{"note", "one"}}, head + "  a:\n    note: one\n    driver: probe\n"},
		"no key":                  {head + "  a:\n    driver: probe\n    every: 5s", "a", []Setting{{"every", ""}}, head + "  a:\n    driver: probe"},
		"no key with a comment":   {head + "  a:\n    every: 5s # slow\n    driver: probe\n", "a", []Setting{{"every", ""}}, head + "  a:\n    # slow\n    driver: probe\n"},
		"no first in braces":      {head + "  a: { every: 5s,  driver: probe }\n", "a", []Setting{{"every", ""}}, head + "  a: { driver: probe }\n"},
		"no last in braces":       {head + "  a: { driver: probe , every: 5s }\n", "a", []Setting{{"every", ""}}, head + "  a: { driver: probe }\n"},
		"nothing to remove":       {head + "  a: { driver: probe }\n", "a", []Setting{{"every", ""}}, head + "  a: { driver: probe }\n"},
		"text that needs quotes":  {head + "  a: { driver: probe }\n", "a", []Setting{{"description", "hot, {x} #1: \"a\""}}, head + "  a: { driver: probe, description: \"hot, {x} #1: \\\"a\\\"\" }\n"},
		"text that would be keys": {head + "  a: { driver: probe }\n", "a", []Setting{{"description", "x }\n  b: { driver: probe"}}, head + "  a: { driver: probe, description: \"x }\\n  b: { driver: probe\" }\n"},
		"a long device":           {head, "a", []Setting{{"driver", "probe"}, {"description", long}}, head + ""},
		"all in braces":           {"{ site: { name: x }, devices: { a: { driver: probe } } }\n", "b", []Setting{{"driver", "probe"}}, "{ site: { name: x }, devices: { a: { driver: probe }, b: { driver: probe } } }\n"},
		"lines of braces":         {"site: { name: x }\ndevices: {\n  ä: 1, # first\n  a: { driver: probe } # second ü\n}\n", "b", []Setting{{"driver", "probe"}}, "site: { name: x }\ndevices: {\n  ä: 1, # first\n  a: { driver: probe }, b: { driver: probe } # second ü\n}\n"},
		"of Windows":              {"\ufeff" + strings.ReplaceAll(head+"  a:\n    driver: probe\n", "\n", "\r\n"), "a", []Setting{{"every", "5s"}}, "\ufeff" + strings.ReplaceAll(head+"  a:\n    driver: probe\n    every: 5s\n", "\n", "\r\n")},
	} {
		if name == "a long device" {
			tt.before, tt.after = head+"  b: { driver: probe }\n", head+"  b: { driver: probe }\n  a:\n    driver: probe\n    description: "+long+"\n"
		}
		got, err := Edit("f.yaml", []byte(tt.before), tt.device, tt.keys)
		if err != nil || string(got) != tt.after {
			t.Errorf("%s: %v\n%q\nwant\n%q", name, err, got, tt.after)
		}
	}
}

// TestEditRefuses: what would lose a comment, or cannot be edited, is refused, and so is what Parse refuses.
func TestEditRefuses(t *testing.T) {
	set := []Setting{{"every", "5s"}}
	const head = "site: { name: x }\ndevices:\n"
	for name, tt := range map[string]struct {
		text, device string
		keys         []Setting
	}{
		"a comment in the value": {head + "  a:\n    points:\n      # mine\n      heater: { safe: off }\n    driver: multi\n", "a", []Setting{{"points", ""}}},
		"capitals":               {head, "Pump", set},
		"a name with a colon":    {head, "a: b", set},
		"a key with a colon":     {head, "a", []Setting{{"a: b", "1"}}},
		"a key twice":            {head, "a", append(set, set...)},
		"too many keys":          {head, "a", make([]Setting, maxSettings+1)},
		"a device in a word":     {head + "  a: probe\n", "a", set},
		"a list of devices":      {head + "  - a\n", "a", set},
		"a tab":                  {head + "\ta: { driver: probe }\n", "a", set},
		"an anchor":              {head + "  a: &x { driver: probe }\n", "a", set},
		"two documents":          {head + "  a: { driver: probe }\n---\nb: 1\n", "a", set},
		"a key there twice":      {head + "  a: { driver: probe, every: 1s, every: 2s }\n", "a", set},
		"no YAML":                {"site: {", "a", set},
		"nothing":                {"", "a", set},
		"a word":                 {"site", "a", set},
	} {
		if got, err := Edit("f.yaml", []byte(tt.text), tt.device, tt.keys); err == nil || got != nil {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// editings are what the tests set: nothing, values, and text that could be mistaken for more.
var editings = []string{"", "5s", "off", "[1, 2]", "{ a: 1, b: [x] }", "a, b", "# no", "'it''s'", "\"a\\nb\"", "x: y", "ü # z", "|", "- a", "}", "*a", "~"}

// editAtRandom makes ten edits in a row. Each leaves every comment, and everything but the key.
func editAtRandom(t *testing.T, text []byte, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	for range 10 {
		root, src, err := parseTree("f", text)
		if err != nil {
			return
		}
		names := []string{"new-" + string(rune('a'+r.IntN(20)))}
		if devices, ok := find(root.entries, devicesKey); ok {
			for _, e := range devices.entries() {
				names = append(names, e.key)
			}
		}
		name, key := names[r.IntN(len(names))], []string{"every", "driver", "pin", "points", "note"}[r.IntN(5)]
		s := Setting{key, editings[r.IntN(len(editings))]}
		out, err := Edit("f", text, name, []Setting{s})
		if err != nil {
			continue
		}
		after, _, err := parseTree("f", out)
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, text, out)
		}
		lines := func(text string) (all []string) {
			for _, c := range lexer.Tokenize(text) {
				if c.Type.String() == "Comment" {
					all = append(all, c.Value)
				}
			}
			return all
		}
		if was, is := lines(strings.Join(src.lines, "\n")), lines(strings.ReplaceAll(strings.TrimPrefix(string(out), "\ufeff"), "\r\n", "\n")); !slices.Equal(was, is) {
			t.Fatalf("%q became %q\n%s\n%s", was, is, text, out)
		}
		got, gone := without(after, name, key)
		want, _ := without(root, name, key)
		if s.Value == "" && gone != nil || s.Value != "" && gone == nil || canonical(got) != canonical(want) {
			t.Fatalf("%s %+v:\n%s\n%s", name, s, text, out)
		}
		if bytes := len(text) - len(out); bytes > len(text)/2+200 {
			t.Fatalf("%d bytes less", bytes)
		}
		text = out
	}
}

// without returns the tree without a key of a device, and without the device that has no other.
func without(root *node, name, key string) ([]entry, *node) {
	devices, _ := find(root.entries, devicesKey)
	dev, _ := find(devices.entries(), name)
	e, _ := find(dev.entries(), key)
	var left *node
	if entries := with(dev.entries(), key, nil); len(entries) > 0 {
		left = &node{shape: mapping, entries: entries}
	}
	var all *node
	if entries := with(devices.entries(), name, left); len(entries) > 0 {
		all = &node{shape: mapping, entries: entries}
	}
	return with(root.entries, devicesKey, all), e.value
}

// TestEdits: ten edits in a row, of the files that the documents show.
func TestEdits(t *testing.T) {
	for _, text := range editable(t) {
		for seed := range uint64(15) {
			editAtRandom(t, text, seed)
			editAtRandom(t, []byte("\ufeff"+strings.ReplaceAll(string(text), "\n", "\r\n")), seed)
		}
	}
}

// TestSetAlone: keys that are set in the lines of a device alone give the text that they give in the whole file.
func TestSetAlone(t *testing.T) {
	alone := 0
	for _, text := range editable(t) {
		for _, text := range [][]byte{text, []byte("\ufeff" + strings.ReplaceAll(string(text), "\n", "\r\n"))} {
			d, err := readDocument("f", text)
			if err != nil {
				continue
			}
			devices, _ := find(d.root.entries, devicesKey)
			for i, e := range devices.entries() {
				r := rand.New(rand.NewPCG(uint64(i), 1))
				for range 20 {
					var keys []Setting
					for _, key := range []string{"every", "driver", "note", "pin", "points"} {
						if r.IntN(2) == 0 {
							keys = append(keys, Setting{key, editings[r.IntN(len(editings))]})
						}
					}
					got, err := d.setAlone(e.key, keys)
					want, errAll := d.setAll(e.key, keys)
					switch {
					case err != nil && errAll == nil && !d.valueOf(devices.at).flow():
						t.Fatalf("%s %+v: %v\n%s", e.key, keys, err, d.text)
					case err == nil && (errAll != nil || got.text != want.text):
						t.Fatalf("%s %+v: %v\n%s\nand not\n%s", e.key, keys, errAll, got.text, want.text)
					case err == nil:
						alone++
					}
				}
			}
		}
	}
	if alone < 200 {
		t.Errorf("only %d were set so", alone)
	}
}

func BenchmarkEdit(b *testing.B) {
	text := []byte("site: { name: x }\ndevices:\n  a:\n    driver: probe\n" +
		strings.Repeat("# a comment of fifty bytes in a line of its own ....\n", 10_000))
	var keys []Setting
	for i := range maxSettings {
		keys = append(keys, Setting{fmt.Sprintf("key%d", i), "1"})
	}
	for b.Loop() {
		if _, err := Edit("f", text, "a", keys); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzEdit(f *testing.F) {
	for i, text := range editable(f) {
		f.Add(text, uint64(i))
	}
	f.Fuzz(editAtRandom)
}

func editable(t testing.TB) [][]byte {
	all := [][]byte{[]byte(greenhouse), []byte("# a\nsite: { name: x } # b\n# c\ndevices:\n  # d\n  a: # e\n    driver: probe # f\n    # g\n\n    every: 5s\n  # h\n# i\nhttp:\n  listen: none"), []byte("{ site: { name: x }, devices: { # a\n  b: { driver: probe }, # c\n  'd': { driver: \"probe\", # e\n  every: 1s } } }")}
	files, err := filepath.Glob("../../docs/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	return all
}

// TestEntrySettings: an entry is the same device when it is written key by key.
func TestEntrySettings(t *testing.T) {
	got, err := EntrySettings(Entry{"a", "{ driver: thermo, every: '5s', steps: [a, { b: c }] }"})
	if want := []Setting{{"driver", "thermo"}, {"every", "'5s'"}, {"steps", "[a, { b: c }]"}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q %v", got, err)
	}
}
