package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"agentsite/agents/task"
	"agentsite/cmd/internal/peer"

	"github.com/spf13/cobra"
)

// foundAgent is one agent that agents find prints as JSON, or a site that lists none.
type foundAgent struct {
	Site    string      `json:"site"` // as it calls itself
	DID     string      `json:"did"`
	Known   string      `json:"known_as,omitzero"`
	Through []string    `json:"through"`
	Agent   *task.Agent `json:"agent,omitzero"`
	Why     string      `json:"why,omitzero"` // no agent is listed
}

func (a *app) findAgentsCommand() *cobra.Command {
	var skills []string
	var realm string
	cmd := &cobra.Command{
		Use: "find --skill TAG", Args: noArgs,
		Short: "Find agents by what they can be asked for, on your sites, your network and in a realm",
		Long: `Find agents that have a skill, by its tag, such as irrigation. These are asked:

  - the sites that you know (agentsite sites)
  - sites on your network that are yours, or that announce it to everybody
  - the sites of a realm that you are in and that announce the skill there

A site announces the tags of agents that have "listed: true" in its configuration. Each site
that was found is asked for its agents with your key, and shows those that you may ask. A
site of the realm "public" that you do not know is named, and not asked.

That an agent was found says nothing about whether it can be trusted: a site writes its own
tags and descriptions. Only KEY identifies a site.`,
		Example: "  agentsite agents find --skill irrigation\n  agentsite agents find --skill irrigation --skill drip --realm garden",
		RunE: a.asUser(func(ctx context.Context, user peer.Person, _ []string) error {
			if len(skills) == 0 {
				return usagef("--skill is missing: it takes a tag, such as irrigation")
			}
			w := peer.AgentsWanted{Tags: skills, As: a.as, Version: version}
			all, err := user.Realms().List()
			if err != nil {
				return err
			}
			if realm != "" || len(all) == 1 {
				j, err := user.Realms().Get(realm)
				if err != nil {
					return err
				}
				w.Realm = &j
			}
			if w.Realm == nil && len(all) > 1 {
				a.note("no realm is searched, because you are in several: name one with --realm")
			}
			ctx, cancel := context.WithTimeout(ctx, findTimeout)
			defer cancel()
			found, lookup, err := peer.FindAgents(ctx, w)
			if err != nil {
				return a.undialled(err)
			}
			if lookup != nil {
				a.note("the realm %s was not searched: %v", w.Realm.Name(), lookup)
			}
			return a.printFoundAgents(found)
		}),
	}
	cmd.Flags().StringArrayVar(&skills, "skill", nil, "a tag, such as irrigation; several times for agents with a skill that has them all: sites are found by the first")
	cmd.Flags().StringVar(&realm, "realm", "", "the realm (default: the only one that you are in)")
	cmd.RegisterFlagCompletionFunc("realm", completeRealms)
	return cmd
}

// printFoundAgents prints the agents, and remarks on sites without.
func (a *app) printFoundAgents(all []peer.FoundAgents) error {
	var rows []foundAgent
	for _, s := range all {
		f := foundAgent{Site: s.Name, DID: s.DID, Known: s.Known, Through: s.Through}
		for i := range s.Agents {
			f.Agent = &s.Agents[i]
			rows = append(rows, f)
		}
		switch {
		case len(s.Agents) > 0:
			continue
		case s.Err != nil && s.Known != "" && len(s.Through) == 1: // nothing says that it has the skill
			if why := peer.Unreached(s.Err); why != nil {
				a.note("%s does not answer: %v", s.Known, why)
			} else {
				a.note("%s does not list its agents: %s", s.Known, saidBy("it", plain(s.Err)))
			}
			continue
		case peer.Unreached(s.Err) != nil:
			f.Why = "announces the skill; it does not answer"
		case s.Err != nil:
			f.Why = "announces the skill; it shows you no agents"
		default:
			f.Why = "announces the skill; you may ask none of its agents"
		}
		rows = append(rows, f)
	}
	err := printList(a, rows, "no agent that you may ask has this skill", []string{"SITE", "YOU CALL IT", "AGENT", "SKILL", "TAGS", "DESCRIPTION", "KEY"}, func(f foundAgent) []string {
		row := []string{cmp.Or(f.Site, f.Known), cmp.Or(f.Known, "not yours"), "", "", "", f.Why, f.DID}
		if f.Agent != nil {
			var ids, tags []string
			for _, s := range f.Agent.Skills {
				ids, tags = append(ids, s.ID), append(tags, s.Tags...)
			}
			slices.Sort(tags)
			row[2], row[3], row[4] = f.Agent.Name, strings.Join(ids, " "), strings.Join(slices.Compact(tags), " ")
			row[5] = cmp.Or(f.Agent.Description, f.Agent.Skills[0].Description)
		}
		return row
	})
	if err == nil && !a.json && slices.ContainsFunc(rows, func(f foundAgent) bool { return f.Known == "" }) {
		a.note("a site that was found is not one that can be trusted: compare its KEY with what its owner tells you")
	}
	return err
}

func (a *app) showAgentCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show [SITE/]AGENT", Args: exactly("[SITE/]AGENT"),
		Short: "Show what an agent can be asked for",
		Long: `Show what an agent can be asked for: its skills with their tags, how long they take, and the
JSON Schema of their arguments. SITE is a name of agentsite sites, or a key. Only agents that
you may ask are shown. "agentsite ask" asks one.`,
		Example: "  agentsite agents show shed/water_beds\n  agentsite agents show water_beds",
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if site, agent, ok := strings.Cut(name, "/"); ok {
				if a.site != "" || a.peer != "" || a.url != "" || a.data != "" {
					return usagef("%s names a site already: leave out --site, --peer, --url and --data", site)
				}
				if name = agent; len(site) > maxName {
					a.peer = site
				} else {
					a.site = site
				}
			}
			return a.with(func(s *session) error {
				all, err := within(cmd.Context(), patience, func(ctx context.Context) ([]task.Agent, error) { return s.Tasks().Agents(ctx, nobody) })
				if err != nil {
					return a.unreached(err)
				}
				i := slices.IndexFunc(all, func(t task.Agent) bool { return t.Name == name })
				if i < 0 {
					return usagef("there is no agent %.40q that you may ask: %s ask lists them", name, a.again())
				}
				return a.showAgent(all[i])
			})
		},
	}
}

func (a *app) showAgent(t task.Agent) error {
	if a.json {
		return a.printJSON(t)
	}
	lines := []string{t.Name + after(": ", t.Description)}
	for _, s := range t.Skills {
		lines = append(lines, "", s.ID+after(": ", s.Description))
		if len(s.Tags) > 0 {
			lines = append(lines, "  tags:      "+strings.Join(s.Tags, " "))
		}
		if s.Seconds > 0 {
			lines = append(lines, "  takes:     about "+span(s.Seconds))
		}
		if s.Input != nil {
			lines = append(lines, "  arguments: "+string(s.Input))
		}
	}
	for _, line := range append(lines, "", "Ask it: "+a.again()+" ask "+t.Name) {
		a.say("%s", line) // which cleans it
	}
	return nil
}
