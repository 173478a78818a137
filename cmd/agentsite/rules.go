package main

import (
	"context"
	"strings"

	hostedagent "agentsite/agents/agent"
	"agentsite/agents/rule"
	"agentsite/node/acts"
	"agentsite/node/hosted"

	"github.com/spf13/cobra"
)

func (a *app) rulesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rules", GroupID: groupEveryday, Args: noArgs,
		Short: "Show what the site's rules do, and why",
		Long: `List the rules of the site's configuration: what each does now, and why. A rule is an entry
under agents: with "kind: rule"; it holds outputs while a condition is true, or moves them
at an event or a time. docs/rules.md explains how to write one, and agentsite check tries
the tests that stand in it.

An output that an owner moves or returns to safe is left alone by the rule until that
ends and its condition was false once.`,
		Example: "  agentsite rules\n  agentsite rules pause frost",
		RunE: a.asOwner(func(ctx context.Context, s *session, _ []string) error {
			all, err := s.rules(ctx)
			if err != nil {
				return err
			}
			return printList(a, all, "no rule is in the site's configuration",
				[]string{"RULE", "STATE", "WHY", "MOVES"}, func(r hosted.Agent) []string {
					return []string{clean(r.Name), clean(string(r.State)), clean(r.Says), clean(strings.Join(r.Moves, ", "))}
				})
		}),
	}
	cmd.AddCommand(
		a.rulesTryCommand(),
		a.pauseCommand("rule", a.completeRules), a.resumeCommand("rule", a.completeRules),
	)
	return cmd
}

// rules lists the hosted agents that are rules.
func (s *session) rules(ctx context.Context) (rules []hosted.Agent, err error) {
	all, err := callOwner(ctx, s, acts.AgentsAct, acts.None{})
	for _, agent := range all.Agents {
		if agent.Kind == rule.KindName && agent.State != hostedagent.Draft {
			rules = append(rules, agent)
		}
	}
	return rules, err
}

func (a *app) completeRules(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.completeWith(cmd, args, func(ctx context.Context, s *session) (names []string, err error) {
		all, err := s.rules(ctx)
		for _, r := range all {
			names = append(names, cobra.CompletionWithDesc(clean(r.Name), clean(string(r.State)+": "+r.Says)))
		}
		return names, err
	})
}
