package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"agentsite/agents/agent"
	"agentsite/agents/op"
	"agentsite/cmd/internal/peer"
	"agentsite/node/acts"
	"agentsite/node/hosted"

	"github.com/spf13/cobra"
)

// agentsShown is the JSON output of the command agents.
type agentsShown struct {
	Hosted []hosted.Agent `json:"hosted,omitzero"` // absent where no site was asked
	Yours  []peer.Agent   `json:"yours"`
	// May holds their permissions, as the sites report them.
	May []agentPermission `json:"may,omitzero"`
}

func (a *app) agentsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "agents", GroupID: groupOwner, Args: noArgs,
		Short: "List the agents of a site, and your own",
		Long: `List the agents that a site hosts: the entries under agents: in its configuration, with what
each may do, what it does now, and why; and the agents that came as bundles, with their
authors (docs/bundles.md). This is for the site's owners.

Below them are your own agents, and what each may do on which site, as that site says;
with --site on that one only. An agent of yours has a
key of its own and the permissions that you give it, never those of an owner. "agentsite
connect" connects an MCP client as one of your agents. Where no
site answers, they are all that is listed.`,
		Example: "  agentsite agents\n  agentsite agents pause frost --site shed",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.refuseURL("agents"); err != nil {
				return err
			}
			yours, err := peer.Agents()
			if err != nil {
				return err
			}
			all := agentsShown{Yours: append([]peer.Agent{}, yours...)}
			if all.May, err = a.agentPermissions(cmd.Context(), yours); err != nil {
				return err
			}
			named := a.site != "" || a.peer != "" || a.data != ""
			err = a.with(func(s *session) (err error) {
				all.Hosted, err = s.hosted(cmd.Context())
				return err
			})
			if err != nil && named {
				return err
			}
			if err != nil {
				a.note("only your own agents are listed: %v", err)
			}
			if a.json {
				return a.printJSON(all)
			}
			return a.printAgents(all)
		},
	}
	cmd.AddCommand(a.findAgentsCommand(), a.showAgentCommand(), a.agentToolsCommand(), a.allowCommand(), a.forbidCommand(), a.pauseCommand("agent", a.completeHosted), a.resumeCommand("agent", a.completeHosted),
		a.exportAgentCommand(), a.shareAgentCommand(), a.unshareAgentCommand(), a.importAgentCommand(),
		a.tryAgentCommand(), a.acceptAgentCommand(), a.removeAgentCommand(), a.publishAgentCommand(),
		a.unpublishAgentCommand(), a.searchAgentsCommand(), a.installAgentCommand(), a.agentUpdatesCommand())
	return cmd
}

func (a *app) printAgents(all agentsShown) error {
	if all.Hosted != nil {
		err := a.printHosted(all.Hosted)
		if err != nil {
			return err
		}
		a.say("")
	}
	var rows [][]string
	for _, p := range all.May {
		rows = append(rows, p.cells())
	}
	if len(rows) == 0 {
		return a.say("no agent of yours has a permission: agentsite agents allow gives it one")
	}
	return table(a.out, []string{"YOUR AGENT", "SITE", "MAY", "UNTIL"}, rows)
}

func (a *app) printHosted(all []hosted.Agent) error {
	var rows [][]string
	for _, h := range all {
		why := h.Says
		if h.LastError != "" && h.State != agent.Failed {
			why = strings.TrimPrefix(fmt.Sprintf("%s; it failed %v ago: %s", why, time.Duration(h.FailedAgo)*time.Second, h.LastError), "; ")
		}
		rows = append(rows, []string{clean(h.Name), clean(h.Kind), clean(h.Principal), clean(string(h.State)), clean(why), clean(h.May), clean(h.Author)})
	}
	if len(rows) == 0 {
		return a.say("the site hosts no agent")
	}
	head := []string{"AGENT", "KIND", "PRINCIPAL", "STATE", "WHY", "MAY", "AUTHOR"}
	return painted(a.out, head, rows, func(row, column int) style {
		if head[column] == "STATE" {
			return stateStyle(all[row].State)
		}
		return ""
	})
}

// hosted lists the agents that the site hosts; it is not nil without an error.
func (s *session) hosted(ctx context.Context) ([]hosted.Agent, error) {
	all, err := callOwner(ctx, s, acts.AgentsAct, acts.None{})
	return append([]hosted.Agent{}, all.Agents...), err
}

type completion = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective)

// pauseCommand and resumeCommand are those of hosted agents that are a noun's: a rule, an agent.
func (a *app) pauseCommand(noun string, complete completion) *cobra.Command {
	return a.changeHostedCommand("pause", noun, "Stop the "+noun+" until it is resumed, over restarts too", "paused; what it held is released", acts.PauseAct, complete)
}

func (a *app) resumeCommand(noun string, complete completion) *cobra.Command {
	return a.changeHostedCommand("resume", noun, "Start the "+noun+" that was paused", "resumed", acts.ResumeAct, complete)
}

func (a *app) changeHostedCommand(verb, noun, short, done string, method op.Name[acts.Name, acts.None], complete completion) *cobra.Command {
	name := strings.ToUpper(noun)
	return &cobra.Command{
		Use: verb + " " + name, Short: short, Args: exactly(name),
		RunE: a.asOwner(func(ctx context.Context, s *session, args []string) error {
			if _, err := callOwner(ctx, s, method, acts.Name{Name: args[0]}); err != nil {
				return err
			}
			return a.print(acts.Name{Name: args[0]}, "%s is %s", args[0], done)
		}),
		ValidArgsFunction: complete,
	}
}

func (a *app) completeHosted(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.completeWith(cmd, args, func(ctx context.Context, s *session) (names []string, err error) {
		all, err := s.hosted(ctx)
		for _, h := range all {
			names = append(names, cobra.CompletionWithDesc(clean(h.Name), clean(h.Kind+": "+string(h.State))))
		}
		return names, err
	})
}
