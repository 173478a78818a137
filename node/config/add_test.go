package config

import (
	"strings"
	"testing"
)

func TestAdd(t *testing.T) {
	devices := []Entry{{"thermo", "{ driver: thermo, address: 0x77 }"}, {"lamp", "{ driver: relay, pin: GPIO4 }"}}
	const added = "  thermo: { driver: thermo, address: 0x77 }\n  lamp: { driver: relay, pin: GPIO4 }\n"
	for name, tt := range map[string]struct{ before, after string }{
		"no file":           {"", "site: { name: shed }\ndevices:\n" + added},
		"no devices":        {"# mine\nsite: { name: x }\n\n# end\n", "# mine\nsite: { name: x }\n\n# end\ndevices:\n" + added},
		"no last line end":  {"site: { name: x }", "site: { name: x }\ndevices:\n" + strings.TrimSuffix(added, "\n")},
		"braces":            {"site: { name: x }\ndevices: { a: { driver: probe } } # mine\n", "site: { name: x }\ndevices: { a: { driver: probe }, thermo: { driver: thermo, address: 0x77 }, lamp: { driver: relay, pin: GPIO4 } } # mine\n"},
		"empty braces":      {"site: { name: x }\ndevices: {}\n", "site: { name: x }\ndevices: { thermo: { driver: thermo, address: 0x77 }, lamp: { driver: relay, pin: GPIO4 } }\n"},
		"an empty section":  {"devices: # none yet\nsite: { name: x }\n", "devices: # none yet\n" + added + "site: { name: x }\n"},
		"commented out":     {"site: { name: x }\ndevices:\n  # a: { driver: probe }\n", "site: { name: x }\ndevices:\n  # a: { driver: probe }\n" + added},
		"at the end":        {"site: { name: x }\ndevices:\n  # first\n  a: { driver: probe } # why\n\n  b:\n    driver: probe\n    # after\n\n# the end\n", "site: { name: x }\ndevices:\n  # first\n  a: { driver: probe } # why\n\n  b:\n    driver: probe\n    # after\n" + added + "\n# the end\n"},
		"in the middle":     {"devices:\n  a: { driver: probe,\n    every: 1s }\n\n# about the site\nsite: { name: x }\n", "devices:\n  a: { driver: probe,\n    every: 1s }\n" + added + "\n# about the site\nsite: { name: x }\n"},
		"another indent":    {"site: { name: x }\ndevices:\n   a: { driver: probe }\n", "site: { name: x }\ndevices:\n   a: { driver: probe }\n" + "   thermo: { driver: thermo, address: 0x77 }\n   lamp: { driver: relay, pin: GPIO4 }\n"},
		"of Windows":        {"\ufeffsite: { name: x }\r\ndevices:\r\n  a: { driver: probe }\r\n", "\ufeffsite: { name: x }\r\ndevices:\r\n  a: { driver: probe }\r\n" + strings.ReplaceAll(added, "\n", "\r\n")},
		"a document begins": {"---\nsite: { name: x }\ndevices:\n  a: { driver: probe }\n", "---\nsite: { name: x }\ndevices:\n  a: { driver: probe }\n" + added},
	} {
		got, err := Add("f.yaml", []byte(tt.before), "shed", devices, fakes())
		if err != nil || string(got) != tt.after {
			t.Errorf("%s: %v\n%q\nwant\n%q", name, err, got, tt.after)
		}
	}
}

func TestAddRefuses(t *testing.T) {
	ok := []Entry{{"thermo", "{ driver: thermo }"}}
	for name, tt := range map[string]struct {
		text    string
		devices []Entry
		says    string
	}{
		"a file with mistakes": {"site: { name: x }\ndevices:\n  a: { driver: prob }\n", ok, "f.yaml:3:"},
		"no YAML":              {"site: {", ok, "f.yaml:"},
		"nothing there":        {"site: { name: x }\ndevices: ~\n", ok, "is empty"},
		"a name that is taken": {"site: { name: x }\ndevices:\n  thermo: { driver: probe }\n", ok, "f.yaml:3:3: "},
		"a bad device":         {"site: { name: x }\n", []Entry{{"a", "{ driver: relay }"}}, "pin is missing"},
	} {
		got, err := Add("f.yaml", []byte(tt.text), "shed", tt.devices, fakes())
		if got != nil || err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}
