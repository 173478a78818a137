package hosting

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"testing"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/node/config"
)

// TestCheckPlain: only the children without isolation that were there before are accepted.
func TestCheckPlain(t *testing.T) {
	parse := func(agents string) *config.Site {
		t.Helper()
		cfg, err := config.Parse("test", []byte("site: { name: x }\nagents:\n"+agents), nil)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	const plain = "  a: { kind: mcp, command: [/bin/cat], tools: [x], isolation: none }\n"
	const other = "  a: { kind: mcp, command: [/bin/sh], tools: [x], isolation: none }\n"
	const isolated = "  b: { kind: mcp, command: [/bin/sh], tools: [x] }\n"
	const rule = "  c: { kind: rule, when: day, hold: { a/b: on } }\n"
	for _, tt := range []struct {
		was, is string
		ok      bool
	}{
		{rule, rule + plain, false}, {plain, other, false}, {isolated, plain, false},
		{plain, isolated + plain + rule, true}, {plain, rule, true}, {rule, isolated, true},
	} {
		if err := CheckPlain(parse(tt.is), parse(tt.was)); (err == nil) != tt.ok {
			t.Errorf("%s after %s: %v", tt.is, tt.was, err)
		}
	}
}

// secretive is a driver that sends a secret to a server.
type secretive struct {
	URL     string      `json:"url"`
	KeyFile driver.File `json:"key_file,omitempty"`
}

func (*secretive) Open(context.Context) (device.Device, error) { return nil, errors.ErrUnsupported }

// TestCheckFiles: a configuration that is sent over the network can name only files beside the configuration.
func TestCheckFiles(t *testing.T) {
	drivers := []driver.Driver{{Name: "secretive", Config: func() driver.Config { return new(secretive) }}}
	folder := t.TempDir()
	parse := func(url, file string) *config.Site {
		t.Helper()
		text := "site: { name: x }\ndevices: { a: { driver: secretive, url: " + url + ", key_file: " + strconv.Quote(file) + " } }\n"
		cfg, err := config.Parse(filepath.Join(folder, "agentsite.yaml"), []byte(text), drivers)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	other := filepath.Join(t.TempDir(), "token")
	was := parse("https://a", other)
	for _, tt := range []struct {
		url, file string
		ok        bool
	}{
		{"https://a", "a.key", true}, {"https://b", filepath.Join(folder, "a.key"), true}, {"https://a", other, true},
		{"https://b", other, false}, {"https://a", "../token", false}, {"https://a", ".npmrc", false},
		{"https://a", "sub/a.key", false},
		{"https://a", other + "2", false},
	} {
		if err := CheckPlain(parse(tt.url, tt.file), was); (err == nil) != tt.ok {
			t.Errorf("%s to %s: %v", tt.file, tt.url, err)
		}
	}
}
