package main

import (
	"fmt"
	"strings"

	"agentsite/device"
	"agentsite/node/update"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// mcpClient is a program that starts agentsite connect, and the file in which that is written.
type mcpClient struct {
	name  string
	file  string // for people
	entry func(program string, args []string) string
}

// mcpClients are those of docs/clients.md, which has the source and the date of each.
var mcpClients = []mcpClient{
	{"claude-code", ".mcp.json in a project", jsonEntry("mcpServers", false)},
	{"claude-desktop", "claude_desktop_config.json (Settings, Developer, Edit config)", jsonEntry("mcpServers", false)},
	{"codex", "~/.codex/config.toml", codexEntry},
	{"continue", ".continue/mcpServers/agentsite.json in a workspace", jsonEntry("mcpServers", false)},
	{"cursor", "~/.cursor/mcp.json", jsonEntry("mcpServers", false)},
	{"gemini", "~/.gemini/settings.json", jsonEntry("mcpServers", false)},
	{"goose", "~/.config/goose/config.yaml", gooseEntry},
	{"jan", "mcp_config.json in Jan's data folder, or Settings, MCP Servers", jsonEntry("mcpServers", false)},
	{"lm-studio", "mcp.json (Program, Install, Edit mcp.json)", jsonEntry("mcpServers", false)},
	{"vscode", "mcp.json (MCP: Open User Configuration)", jsonEntry("servers", true)},
	{"windsurf", "~/.codeium/windsurf/mcp_config.json", jsonEntry("mcpServers", false)},
	{"zed", "settings.json (zed: open settings file)", jsonEntry("context_servers", false)},
}

// clientNames are the names of the clients, in their order.
func clientNames() (all []string) {
	for _, c := range mcpClients {
		all = append(all, c.name)
	}
	return all
}

// entryName is the site's name in the clients.
const entryName = "agentsite"

// jsonEntry returns the entry of a file in JSON below key, with the kind of the connection if typed.
func jsonEntry(key string, typed bool) func(string, []string) string {
	return func(program string, args []string) string {
		server := map[string]any{"command": program, "args": args}
		if typed {
			server["type"] = "stdio"
		}
		file := map[string]any{key: map[string]any{entryName: server}}
		text, _ := json.Marshal(file, json.Deterministic(true), jsontext.WithIndent("  "))
		return string(text)
	}
}

// codexEntry returns a table of TOML, whose strings and lists are written as in JSON.
func codexEntry(program string, args []string) string {
	return fmt.Sprintf("[mcp_servers.%s]\ncommand = %s\nargs = %s", entryName, inJSON(program), inJSON(args))
}

// gooseEntry returns YAML, whose strings and lists may be written as in JSON.
func gooseEntry(program string, args []string) string {
	return fmt.Sprintf(`extensions:
  %s:
    name: %[1]s
    type: stdio
    enabled: true
    cmd: %s
    args: %s
    timeout: 300`, entryName, inJSON(program), inJSON(args))
}

func inJSON(v any) string {
	text, _ := json.Marshal(v, jsontext.SpaceAfterComma(true))
	return string(text)
}

// printClientEntry prints the entry that has a client start agentsite connect with the same flags.
func (a *app) printClientEntry(client string) error {
	for _, c := range mcpClients {
		if c.name != client {
			continue
		}
		args := []string{"connect"}
		for _, f := range [][2]string{{"--data", a.data}, {"--site", a.site}, {"--peer", a.peer}, {"--as", a.as}} {
			if f[1] != "" {
				args = append(args, f[0], f[1])
			}
		}
		a.note("for %s; if it has that section already, add only the entry %q to it", c.file, entryName)
		_, err := fmt.Fprintln(a.out, c.entry(update.RunningProgram(), args))
		return err
	}
	return usagef("--config takes one of %s, and not %q%s", strings.Join(clientNames(), ", "), client,
		device.Suggest(client, clientNames(), ""))
}
