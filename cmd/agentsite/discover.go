package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"agentsite/cmd/internal/site"
	"agentsite/discovery"

	"github.com/spf13/cobra"
)

// lookFor is how long discover looks: sites that are there answer within a second.
const lookFor = 2 * time.Second

func (a *app) discoverCommand() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use: "discover", GroupID: groupAgents, Args: noArgs,
		Short: "Find the sites on your network",
		Long: `Find the sites on your network, by mDNS. A name is what a site says of itself and proves
nothing; KEY is what tells sites apart, and what yours were claimed by. With --watch it
goes on, and prints what comes, changes and goes, until Ctrl-C.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.claims("discover"); err != nil {
				return err
			}
			if watch {
				return a.watchSites(cmd.Context())
			}
			return a.listFound(cmd.Context())
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "go on until Ctrl-C")
	return cmd
}

func (a *app) listFound(ctx context.Context) error {
	there := make(map[string]site.Found)
	looking, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	err := site.Discover(looking, func(c discovery.Change, s site.Found) {
		if delete(there, s.DID); c != discovery.Gone {
			there[s.DID] = s
		}
	})
	if err != nil {
		return err
	}
	all := make([]site.Found, 0, len(there))
	for _, s := range there {
		all = append(all, s)
	}
	if len(all) == 0 && !a.json {
		return a.say("no site answers on this network; agentsite doctor, where one runs, says what may be in the way")
	}
	return a.printFound(all)
}

// printFound prints sites that were found.
func (a *app) printFound(all []site.Found) error {
	slices.SortFunc(all, func(a, b site.Found) int { return strings.Compare(a.Name+a.DID, b.Name+b.DID) })
	var rows [][]string
	for _, s := range all {
		if a.json {
			if err := a.printJSON(s); err != nil {
				return err
			}
			continue
		}
		known := s.Known
		if known == "" {
			known = "not yours"
		}
		rows = append(rows, []string{s.Name, known, strings.Join(s.URLs, " "), s.DID})
	}
	if a.json {
		return nil
	}
	return table(a.out, []string{"SITE", "YOU CALL IT", "ADDRESSES", "KEY"}, rows)
}

type seenResult struct {
	Change discovery.Change `json:"change"`
	site.Found
}

func (a *app) watchSites(ctx context.Context) error {
	return site.Discover(ctx, func(c discovery.Change, s site.Found) {
		if a.json {
			a.printJSON(seenResult{c, s})
			return
		}
		a.say("%s  %-8s  %s  %s  %s", time.Now().Format(time.TimeOnly), c, s.Name, strings.Join(s.URLs, " "), s.DID)
	})
}
