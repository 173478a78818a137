package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/goccy/go-yaml"
)

// TestClientEntries: each client's entry is valid in its format, and has the program and the flags.
func TestClientEntries(t *testing.T) {
	page, err := os.ReadFile("../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"connect", "--as", `a "b"\c`}
	for _, c := range mcpClients {
		if !bytes.Contains(page, []byte("`"+c.name+"`")) {
			t.Errorf("docs/clients.md has no %s", c.name)
		}
		var command any
		var given []any
		text := c.entry(`/opt/my "site"\agentsite`, args)
		switch c.name {
		case "codex": // the tests have no reader of TOML; what it takes of JSON is known
			lines := strings.Split(text, "\n")
			_, program, _ := strings.Cut(lines[1], "command = ")
			_, list, _ := strings.Cut(lines[2], "args = ")
			if err := json.Unmarshal([]byte(program), &command); err != nil || lines[0] != "[mcp_servers.agentsite]" {
				t.Errorf("%s: %v", text, err)
			}
			if err := json.Unmarshal([]byte(list), &given); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		case "goose":
			var file struct {
				Extensions map[string]struct {
					Type, Cmd string
					Args      []any
				}
			}
			if err := yaml.Unmarshal([]byte(text), &file); err != nil {
				t.Fatal(err)
			}
			command, given = file.Extensions[entryName].Cmd, file.Extensions[entryName].Args
		default:
			var file map[string]map[string]struct {
				Type, Command string
				Args          []any
			}
			if err := json.Unmarshal([]byte(text), &file, json.MatchCaseInsensitiveNames(true)); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			for _, servers := range file {
				command, given = servers[entryName].Command, servers[entryName].Args
			}
		}
		if command != `/opt/my "site"\agentsite` || !slices.Equal(given, []any{args[0], args[1], args[2]}) {
			t.Errorf("%s: %v, %v", c.name, command, given)
		}
	}
}

// TestClientEntry: the entry alone is on standard output, and a misspelt client gets its nearest name.
func TestClientEntry(t *testing.T) {
	var out, errs bytes.Buffer
	a := &app{out: &output{Writer: &out}, errs: &errs}
	if code := a.execute(t.Context(), []string{"connect", "--config", "vscode", "--data", "/x"}); code != exitOK {
		t.Fatal(errs.String())
	}
	var file any
	if err := json.Unmarshal(out.Bytes(), &file); err != nil || !strings.Contains(out.String(), `"--data"`) {
		t.Errorf("%v: %s", err, out.String())
	}
	out.Reset()
	if code := a.execute(t.Context(), []string{"connect", "--config", "zedd"}); code != exitUsage || out.Len() > 0 {
		t.Errorf("exit %d, %s", code, out.String())
	}
}
