package main

import (
	"fmt"
	"io"
	"strings"

	"agentsite/cmd/internal/qr"
	"agentsite/cmd/internal/site"
	"agentsite/node/access"
	"agentsite/node/state"
	"agentsite/node/update"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// printBanner tells the person at the terminal what runs and what to do next, in lines that
// can be pasted.
func printBanner(out io.Writer, terminal bool, folder state.Folder, s site.Started) {
	what := "the devices of " + s.File
	switch {
	case s.File == "":
		what = "a simulated greenhouse and this machine's own sensors"
	case s.Simulated:
		what = "simulated devices in place of those of " + s.File
	}
	program := update.RunningProgram()
	connect := []string{"connect"}
	more := ""
	if !folder.IsDefault() {
		connect = append(connect, "--data", string(folder))
		more = " --data " + state.ShellQuote(string(folder))
	}
	entry, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"agentsite-" + s.Name: map[string]any{"command": program, "args": connect},
	}}, json.Deterministic(true), jsontext.SpaceAfterColon(true), jsontext.SpaceAfterComma(true))

	owned, chat := "", ""
	switch {
	case s.File == "":
		chat = "\n  " + state.ShellQuote(program) + " chat gardener" + more
		owned = "Whoever may use this machine owns it, and nobody else reaches it.\n"
	case s.Simulated:
		owned = "Nothing real moves, and nobody but whoever may use this machine reaches it.\n"
	case s.Claim != nil && s.Claim.Secret != (access.ClaimSecret{}):
		owned = "No owner yet. Until someone claims it, anyone with access to this computer controls it.\n"
	}
	if s.Simulated && s.File != "" {
		chat = "\n  " + state.ShellQuote(program) + " sim list" + more
	}
	look := ""
	if terminal || s.File == "" { // a service's log is no place for a secret
		look = "\nIn your browser (the link counts once, within ten minutes; agentsite open prints others):\n  " +
			s.Page() + "\n"
	}
	text := fmt.Sprintf(`agentsite %[1]s: the site %[2]q runs, with %[3]s.
%[9]s Stop it with Ctrl-C; they return there.
%[11]s%[13]s
In another terminal:
  %[4]s points%[5]s
  %[4]s read%[5]s%[12]s

For an MCP client, paste this into its configuration:
  %[6]s

With curl:
  curl -s %[7]s -H "Authorization: Bearer $(cat %[8]s)" \
    -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
    -H 'MCP-Protocol-Version: %[10]s' -H 'Mcp-Method: tools/call' -H 'Mcp-Name: read_points' \
    -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_points","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"%[10]s","io.modelcontextprotocol/clientCapabilities":{}}}}'

`, version, s.Name, what, state.ShellQuote(program), more, entry, state.ShellQuote(s.URL+"/mcp"), state.ShellQuote(folder.Path(state.TokenFile)), s.State, rpc.Revision, owned, chat, look)
	io.WriteString(out, fitSentences(text, lineWidth(out)))
	switch {
	case s.Claim == nil:
		return
	case s.Claim.Secret == (access.ClaimSecret{}):
		fmt.Fprintf(out, "Its owners make it known on their own machines with:\n  agentsite claim %s\n\n", state.ShellQuote(s.Claim.String()))
		return
	}
	fmt.Fprint(out, "To own it by your own key, run this on your own machine within fifteen minutes:\n")
	if terminal {
		fmt.Fprint(out, qr.Color(qrCode(*s.Claim))) // before the line, which is to stay on a small screen
	}
	fmt.Fprintf(out, "  agentsite claim %s\n", state.ShellQuote(s.Claim.String()))
}

// fitSentences puts the lines of a text that are not indented into lines of a width, 0 for any. The others are to be
// pasted.
func fitSentences(text string, width int) string {
	if width == 0 {
		return text
	}
	var all strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, " ") && cellsOf(line) > width {
			line = strings.Join(fill(unbroken(strings.TrimSuffix(line, "\n")), width), "\n") + "\n"
		}
		all.WriteString(line)
	}
	return all.String()
}

// qrCode returns the address of a claim as a QR code. It has the first endpoint only, so that it usually
// takes 21 rows.
func qrCode(claim access.Invitation) string {
	claim.Addresses = claim.Addresses[:min(len(claim.Addresses), 1)]
	return qr.Draw(claim.String())
}
