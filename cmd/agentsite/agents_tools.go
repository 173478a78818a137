package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"agentsite/agents/agent"
	"agentsite/node/acts"
	"agentsite/node/state"

	"github.com/spf13/cobra"
)

func (a *app) agentToolsCommand() *cobra.Command {
	var digest string
	cmd := &cobra.Command{
		Use: "tools AGENT", Short: "Show what another program offers by a site's agent, and what you accepted",
		Long: `Show the tools of an agent of the site with "kind: mcp". The site starts the agent's program
and compares what it offers with what you accepted earlier. A tool that is new or changed is
offered to nobody until you accept it: read its texts, which models will follow, and run
the command that stands below them, which accepts exactly what was shown. If the program
offers something else meanwhile, nothing is accepted.`,
		Example: "  agentsite agents tools weather",
		Args:    exactly("AGENT"),
		RunE: a.asOwner(func(ctx context.Context, s *session, args []string) error {
			o, err := callOwner(ctx, s, acts.OfferAct, agent.Acceptance{Agent: args[0], Digest: digest})
			if err != nil {
				return err
			}
			if a.json {
				return a.print(o, "")
			}
			return a.showOffer(args[0], o)
		}),
	}
	cmd.Flags().StringVar(&digest, "accept", "", "accept what was shown with this digest")
	return cmd
}

func (a *app) showOffer(name string, o agent.Offer) error {
	pending := false
	for _, t := range o.Tools {
		a.say("%s, offered as %s: %s%s", clean(t.Name), clean(t.As), t.State, after(": ", clean(t.Why)))
		lines := []string{"  " + t.Offered}
		if t.State != agent.ToolAccepted && t.State != agent.ToolNew {
			lines = []string{"  accepted: " + t.Accepted, "  offered:  " + t.Offered}
		}
		for _, line := range lines {
			a.say("%s", escape([]byte(line)))
		}
		pending = pending || t.State == agent.ToolNew || t.State == agent.ToolChanged
	}
	for _, other := range o.Others {
		a.say("%s is not among the agent's \"tools:\"", clean(other))
	}
	if !pending {
		return nil
	}
	if b, err := hex.DecodeString(o.Digest); err != nil || len(b) != sha256.Size {
		return a.say("The site sent no digest of this; do not accept it")
	}
	return a.say("To accept all that is offered above: %s agents tools %s --accept %s", a.again(), state.ShellQuote(name), o.Digest)
}

// after returns a text with a prefix, "" for no text.
func after(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}
