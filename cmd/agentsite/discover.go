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

// discoverTime is how long discover waits for answers; sites answer within a second.
const discoverTime = 2 * time.Second

func (a *app) discoverCommand() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use: "discover", GroupID: groupNetwork, Args: noArgs,
		Short: "Find the sites on your network",
		Long: `Find the sites on your network, by mDNS. Any site can use any name: only KEY identifies a
site. A site that is not in your list of sites is asked whether your key owns it, as the
owner's card on a new board may say. "agentsite claim" with its name or key, or --site,
adds it to your list.

With --watch, print changes until Ctrl-C.`,
		RunE: a.asUser(func(ctx context.Context, _ peer.Person, _ []string) error {
			if watch {
				return a.watchSites(ctx)
			}
			return a.discover(ctx)
		}),
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "print changes until Ctrl-C")
	return cmd
}

func (a *app) discover(ctx context.Context) error {
	present := make(map[string]peer.Found)
	err := a.during("looking for sites on your network", func() error {
		o := peer.DiscoverOptions{For: discoverTime, Version: version}
		return peer.Discover(ctx, o, func(c discovery.Change, s peer.Found) {
			if delete(present, s.DID); c != discovery.Gone {
				present[s.DID] = s
			}
		})
	})
	if err != nil {
		return err
	}
	none := "no site answers on this network; agentsite doctor, on a site's machine, reports why"
	if ctx.Err() != nil { // Ctrl-C
		none = "no site has answered yet: sites answer within a second or two"
	}
	all := make([]peer.Found, 0, len(present))
	for _, s := range present {
		all = append(all, s)
	}
	return a.printFound(all, none)
}

// printFound prints sites that were found, or the sentence none.
func (a *app) printFound(all []peer.Found, none string) error {
	slices.SortFunc(all, func(a, b peer.Found) int { return strings.Compare(a.Name+a.DID, b.Name+b.DID) })
	err := printList(a, all, none, []string{"SITE", "YOU CALL IT", "ADDRESSES", "KEY"}, func(s peer.Found) []string {
		known := cmp.Or(s.Known, "not yours")
		if s.Yours {
			known = "yours, not listed yet"
		}
		return []string{s.Name, known, addresses(s.URLs), s.DID}
	})
	if err == nil && !a.json && slices.ContainsFunc(all, func(s peer.Found) bool { return s.Yours }) {
		a.note("agentsite claim with a name or key adds a site of yours to agentsite sites")
	}
	return err
}

// foundPrinter prints sites one by one, as they are found.
type foundPrinter struct {
	*app
	count int
}

func (p *foundPrinter) print(s peer.Found) {
	p.count++
	if p.json {
		p.printJSON(s)
		return
	}
	head := []string{"SITE", "YOU CALL IT", "KEY", "ADDRESSES"}
	// The widths are fixed.
	row := []string{pad(s.Name, maxName), pad(cmp.Or(s.Known, "not yours"), maxName), s.DID, addresses(s.URLs)}
	if p.count == 1 {
		table(p.out, head, [][]string{row})
		return
	}
	tableRow(p.out, head, row...)
}

// maxName is the maximum length of a site's name.
const maxName = 24

// addresses returns the first of a site's addresses and the number of others, which --json
// lists: those of libp2p alone are wider than a terminal.
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
		tableRow(a.out, []string{"TIME", "", "SITE", "ADDRESSES", "KEY"}, time.Now().Format(time.TimeOnly),
			fmt.Sprintf("%-8s", c), s.Name, addresses(s.URLs), s.DID)
	})
}
