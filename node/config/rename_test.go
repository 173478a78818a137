package config

import (
	"strings"
	"testing"
)

// TestKeepName: the name of the site is replaced, and nothing else.
func TestKeepName(t *testing.T) {
	const of = "# mine\nsite:\n  name: shed # here\n  watchdog: off\n"
	for text, want := range map[string]string{
		"site: { name: all, x: name } # all\ndevices: {}\n":        "site: { name: shed, x: name } # all\ndevices: {}\n",
		"devices:\n  all: { name: all }\nsite:\n  name: \"all\"\n": "devices:\n  all: { name: all }\nsite:\n  name: shed\n",
		"site: { name: shed }":                                     "site: { name: shed }",
		"site: { }":                                                "",
		"site: [":                                                  "",
		"site: { name: [x] }":                                      "",
		"- site":                                                   "",
		"\ufeffsite: { name: a }\r\n":                              "\ufeffsite: { name: shed }\r\n",
	} {
		got, err := KeepName("x.yaml", []byte(text), []byte(of))
		if string(got) != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q %v", text, got, err)
		}
	}
	if got, err := KeepName(
		"x.yaml", []byte("site: {name: all}"), []byte("site: {name: 'on'}"),
	); err != nil || !strings.Contains(string(got), "on") {
		t.Errorf("%s %v", got, err)
	}
}
