package site

import (
	"fmt"
	"strings"

	"agentsite/node/access"
	"agentsite/node/config"
	"agentsite/node/state"
	"agentsite/node/update"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"rsc.io/qr"
)

// outputsNow says how the outputs are at a start.
func outputsNow(unsafe error, stopped bool) string {
	switch {
	case unsafe != nil:
		return "NOT EVERY OUTPUT IS KNOWN TO BE SAFE (the log says which); they are driven there."
	case stopped:
		return "THE EMERGENCY STOP IS LATCHED: outputs stay at their safe values until agentsite reset."
	}
	return "Its outputs are at their safe values."
}

// welcome tells the person at the terminal what runs and what to do next. The
// lines are there to be pasted.
func welcome(o Options, cfg *config.Site, from, url, outputs string, claim *access.Invitation) {
	what := "the devices of " + from
	if from == "" {
		what = "a simulated greenhouse and this machine's own sensors (no agentsite.yaml here)"
	}
	program := update.RunningProgram()
	connect := []string{"connect"}
	more := ""
	if !o.Folder.IsDefault() {
		connect = append(connect, "--data", string(o.Folder))
		more = " --data " + state.ShellQuote(string(o.Folder))
	}
	entry, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"agentsite-" + cfg.Name: map[string]any{"command": program, "args": connect},
	}}, json.Deterministic(true), jsontext.SpaceAfterColon(true), jsontext.SpaceAfterComma(true))

	owned := ""
	switch {
	case from == "":
		owned = "Whoever may use this machine owns it, and nobody else reaches it.\n"
	case claim != nil && claim.Secret != (access.ClaimSecret{}):
		owned = "Nobody's key owns it yet: whoever may use this machine does.\n"
	}
	fmt.Fprintf(o.Out, `agentsite %[1]s: the site %[2]q runs, with %[3]s.
%[9]s Stop it with Ctrl-C; they return there.
%[11]s
In another terminal:
  %[4]s points%[5]s
  %[4]s read%[5]s

For an MCP client, paste this into its configuration:
  %[6]s

With curl:
  curl -s %[7]s -H "Authorization: Bearer $(cat %[8]s)" \
    -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
    -H 'MCP-Protocol-Version: %[10]s' -H 'Mcp-Method: tools/call' -H 'Mcp-Name: read_points' \
    -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_points","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"%[10]s","io.modelcontextprotocol/clientCapabilities":{}}}}'

`, o.Version, cfg.Name, what, state.ShellQuote(program), more, entry, state.ShellQuote(url+"/mcp"), state.ShellQuote(o.Folder.Path(state.TokenFile)), outputs, rpc.Revision, owned)
	switch {
	case claim == nil:
		return
	case claim.Secret == (access.ClaimSecret{}):
		fmt.Fprintf(o.Out, "Its owners make it known on their own machines with:\n  agentsite claim %s\n\n", state.ShellQuote(claim.String()))
		return
	}
	fmt.Fprint(o.Out, "To own it by your own key, run this on your own machine within fifteen minutes:\n")
	if o.Terminal {
		fmt.Fprint(o.Out, Picture(*claim)) // before the line, which is to stay on a small screen
	}
	fmt.Fprintf(o.Out, "  agentsite claim %s\n", state.ShellQuote(claim.String()))
}

// Picture is the address to claim a site by as a QR code, two of its squares above each
// other in each letter. It is light where the code is dark, as it has to be on a dark
// terminal. Of where the site is reached it has the first alone, and so 21 rows as a rule.
func Picture(claim access.Invitation) string {
	claim.Addresses = claim.Addresses[:min(len(claim.Addresses), 1)]
	code, err := qr.Encode(claim.String(), qr.L)
	if err != nil {
		return ""
	}
	const margin = 2
	var b strings.Builder
	for y := -margin; y < code.Size+margin; y += 2 {
		for x := -margin; x < code.Size+margin; x++ {
			above, below := !code.Black(x, y), !code.Black(x, y+1)
			switch {
			case above && below:
				b.WriteRune('█')
			case above:
				b.WriteRune('▀')
			case below:
				b.WriteRune('▄')
			default:
				b.WriteRune(' ')
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
