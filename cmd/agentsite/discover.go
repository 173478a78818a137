package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentsite/cmd/internal/peer"
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
nothing; KEY is what tells sites apart, and what yours were claimed by. One that is not
known here is asked by your key whether you own it, as the owner's card on a new board
says; "agentsite claim" with its name or key, or --site, has it known here.

With --watch it goes on, and prints what comes, changes and goes, until Ctrl-C.`,
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
	there := make(map[string]peer.Found)
	err := peer.Discover(ctx, peer.DiscoverOptions{For: lookFor, Version: version}, func(c discovery.Change, s peer.Found) {
		if delete(there, s.DID); c != discovery.Gone {
			there[s.DID] = s
		}
	})
	if err != nil {
		return err
	}
	all := make([]peer.Found, 0, len(there))
	for _, s := range there {
		all = append(all, s)
	}
	if len(all) == 0 && !a.json {
		return a.say("no site answers on this network; agentsite doctor, where one runs, says what may be in the way")
	}
	return a.printFound(all)
}

// printFound prints sites that were found.
func (a *app) printFound(all []peer.Found) error {
	slices.SortFunc(all, func(a, b peer.Found) int { return strings.Compare(a.Name+a.DID, b.Name+b.DID) })
	var rows [][]string
	unknown := false
	for _, s := range all {
		if a.json {
			if err := a.printJSON(s); err != nil {
				return err
			}
			continue
		}
		known := s.Known
		switch {
		case s.Yours:
			known, unknown = "yours, not known here", true
		case known == "":
			known = "not yours"
		}
		rows = append(rows, []string{s.Name, known, addresses(s.URLs), s.DID})
	}
	if a.json {
		return nil
	}
	if err := table(a.out, []string{"SITE", "YOU CALL IT", "ADDRESSES", "KEY"}, rows); err != nil || !unknown {
		return err
	}
	fmt.Fprintln(a.errs, "agentsite: agentsite claim with a name or a key has a site known here that is yours")
	return nil
}

// foundPrinter prints sites one by one, as they are found.
type foundPrinter struct {
	*app
	count int
}

func (a *app) foundPrinter() *foundPrinter { return &foundPrinter{app: a} }

func (p *foundPrinter) print(s peer.Found) {
	p.count++
	if p.json {
		p.printJSON(s)
		return
	}
	rows := [][]string{{"SITE", "YOU CALL IT", "KEY", "ADDRESSES"}, {s.Name, cmp.Or(s.Known, "not yours"), s.DID, addresses(s.URLs)}}
	for _, row := range rows[min(p.count-1, 1):] { // no later one makes a column wider
		p.say("%s%s%s%s", pad(row[0], nameWidth+2), pad(row[1], nameWidth+2), pad(row[2], len(s.DID)+2), row[3])
	}
}

// nameWidth is how long a site's name is at most.
const nameWidth = 24

// addresses returns the first of a site's addresses and how many more there are, which --json
// lists: those of libp2p alone would be wider than a terminal.
func addresses(all []string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	return fmt.Sprintf("%s (%d more)", all[0], len(all)-1)
}

type seenResult struct {
	Change discovery.Change `json:"change"`
	peer.Found
}

func (a *app) watchSites(ctx context.Context) error {
	return peer.Discover(ctx, peer.DiscoverOptions{Version: version}, func(c discovery.Change, s peer.Found) {
		if a.json {
			a.printJSON(seenResult{c, s})
			return
		}
		a.say("%s  %-8s  %s  %s  %s", time.Now().Format(time.TimeOnly), c, s.Name, addresses(s.URLs), s.DID)
	})
}
