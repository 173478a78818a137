package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"agentsite/cmd/internal/peer"
	"agentsite/node/acts"
	"agentsite/node/bundle"
	"agentsite/node/identity"
	"agentsite/node/imports"

	"github.com/spf13/cobra"
)

// published is a bundle that agents search prints as JSON.
type published struct {
	ID          string        `json:"id"`
	Name        string        `json:"name"`
	Kind        string        `json:"kind"`
	Version     uint32        `json:"version"`
	Author      string        `json:"author"`
	AuthorName  string        `json:"author_name,omitzero"` // what the user calls that key
	Description string        `json:"description,omitzero"`
	Words       []string      `json:"words"`
	Needs       []bundle.Need `json:"needs"`
	Wish        string        `json:"wish,omitzero"`
	Sites       []peer.Found  `json:"sites"`
}

func (a *app) searchAgentsCommand() *cobra.Command {
	var realm string
	cmd := &cobra.Command{
		Use: "search [WORD]...", Short: "Search agents that others publish, in your realms", Args: cobra.ArbitraryArgs,
		Long: `Search the agents that sites publish, in all realms that you are in: those that have all words.
A word is a name or a part of one, a kind or a tag, such as irrigation. Without words all
are listed. Be in the realm "public" (agentsite realm join public) to search what is
published to everybody.

The signature of each was verified: AUTHOR is the key that signed it. That says nothing
about whether its author means well: anybody may use any name and any words. At most 32
sites are asked in a realm, and 16 agents shown of one.`,
		Example: "  agentsite agents search irrigation\n  agentsite agents search frost rule --realm garden",
		RunE: a.asUser(func(ctx context.Context, user peer.Person, words []string) error {
			if err := peer.CheckWords(words); err != nil {
				return err
			}
			match := func(b *bundle.Bundle) bool { return b.Matches(words) }
			found, err := a.searchHub(ctx, user, realm, words, match)
			if err != nil {
				return err
			}
			names, err := user.KeyNames()
			if err != nil {
				return err
			}
			var rows []published
			for _, p := range found {
				did := p.Author.String()
				rows = append(rows, published{
					p.ID.String(), p.Name, p.Kind, p.Version, did, names[did], p.Description, p.Words(), p.Needs, p.May, p.Sites,
				})
			}
			head := []string{"NAME", "VERSION", "KIND", "NEEDS", "DESCRIPTION", "SITES", "AUTHOR", "HASH"}
			err = printList(a, rows, "nobody publishes such an agent in your realms now", head, published.cells)
			if err == nil && len(rows) > 0 && !a.json {
				a.note("what is found need not be good: compare AUTHOR with what its author tells you; then install it by its " +
					"HASH: agentsite agents install HASH")
			}
			return err
		}),
	}
	cmd.Flags().StringVar(&realm, "realm", "", "the realm (default: all that you are in)")
	cmd.RegisterFlagCompletionFunc("realm", completeRealms)
	return cmd
}

func (p published) cells() []string {
	var needs, sites []string
	for _, n := range p.Needs {
		needs = append(needs, clean(strings.TrimSpace(string(n.Kind)+" "+n.Unit)))
	}
	for _, s := range p.Sites[:min(len(p.Sites), 3)] {
		sites = append(sites, clean(cmp.Or(s.Known, s.Name)))
	}
	if more := len(p.Sites) - 3; more > 0 {
		sites = append(sites, fmt.Sprint("and ", more, " more"))
	}
	slices.Sort(needs)
	author := p.Author
	if p.AuthorName != "" {
		author = p.AuthorName + " " + author
	}
	return []string{
		p.Name, fmt.Sprint(p.Version), p.Kind, strings.Join(slices.Compact(needs), ", "), clean(p.Description),
		strings.Join(sites, ", "), clean(author), p.ID,
	}
}

// searchHub searches the realm of that name, for "" all of the user's. It remarks on those that fail, and fails where
// all do: then nobody knows what is published.
func (a *app) searchHub(
	ctx context.Context, user peer.Person, realm string, words []string, match func(*bundle.Bundle) bool,
) ([]peer.Published, error) {
	realms, err := user.Realms().SearchRealms(realm)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	found, lookups, err := peer.SearchHub(ctx, realms, words, match, version)
	for _, e := range lookups {
		a.note("%v", e)
	}
	if err == nil && len(lookups) == len(realms) {
		err = coded{exitAway, errors.New("no realm was searched: what is published there is not known")}
	}
	return found, err
}

func (a *app) installAgentCommand() *cobra.Command {
	var author, update string
	var draft draftFlags
	cmd := &cobra.Command{
		Use: "install sha256:…|NAME", Short: "Fetch an agent that others publish, as a draft that does nothing", Args: exactly("sha256:…|NAME"),
		Long: `Fetch an agent from a site that publishes it, verify its hash and its author's signature, bind
what it needs to points of the site, and keep it as a draft. A draft does nothing and may
nothing before you accept it.

By its hash you get what you were told of. By its NAME you get the newest version, and
have to write the key of its author if several authors publish that name. With --update it
is a newer version of an import of the site, by the same author: the difference is shown,
its needs keep their points, and the old one runs on until you accept the new one.`,
		Example: "  agentsite agents install sha256:9f86d081…\n" +
			"  agentsite agents install frost --author did:key:z6Mk…\n" +
			"  agentsite agents install sha256:9f86d081… --update frost",
	}
	cmd.RunE = a.asOwner(func(ctx context.Context, s *session, args []string) error {
		text, b, err := a.findPublished(ctx, args[0], author, draft.realm)
		if err != nil {
			return err
		}
		if author != "" && b.Author.String() != author {
			return fmt.Errorf("%s is by %s, and not by the key that you wrote: nothing is kept", args[0], b.Author)
		}
		var old *imports.Draft
		if update != "" {
			if old, err = importCalled(ctx, s, update); err != nil {
				return err
			}
		}
		if err := a.keepDraft(ctx, s, text, b, draft, update); err != nil || old == nil || a.json {
			return err
		}
		a.say("It replaces %s when you accept it. The difference (- before, + now):", update)
		return a.printDifference(*old, b)
	})
	cmd.Flags().StringVar(&author, "author", "", "the did:key of its author")
	cmd.Flags().StringVar(&update, "update", "", "the import of the site of which it is a newer version")
	draft.add(cmd)
	cmd.Flags().StringVar(&draft.realm, "realm", "", "the realm that it is fetched from (default: all that you are in)")
	cmd.RegisterFlagCompletionFunc("realm", completeRealms)
	cmd.RegisterFlagCompletionFunc("update", a.completeHosted)
	return cmd
}

func importCalled(ctx context.Context, s *session, name string) (*imports.Draft, error) {
	all, err := callOwner(ctx, s, acts.SharedAgentsAct, acts.None{})
	if err != nil {
		return nil, err
	}
	k := slices.IndexFunc(all.Imported, func(d imports.Draft) bool { return d.Name == name })
	if k < 0 {
		return nil, usagef("no import %.40q is on this site: agentsite agents updates lists those that can be updated", name)
	}
	return &all.Imported[k], nil
}

// findPublished fetches a bundle by its hash, or the newest version of that name.
func (a *app) findPublished(ctx context.Context, name, author, realm string) ([]byte, *bundle.Bundle, error) {
	if author != "" {
		if _, err := identity.Parse(author); err != nil || !strings.HasPrefix(author, "did:key:") {
			return nil, nil, usagef("--author takes a did:key, as agentsite agents search prints it, not %.80q", author)
		}
	}
	if bundle.IsFileID(name) {
		return readBundle(ctx, name, realm)
	}
	if err := peer.CheckWords([]string{name}); err != nil {
		return nil, nil, err
	}
	user, err := peer.User()
	if err != nil {
		return nil, nil, err
	}
	match := func(b *bundle.Bundle) bool { return b.Name == name && (author == "" || b.Author.String() == author) }
	found, err := a.searchHub(ctx, user, realm, []string{name}, match)
	if err != nil {
		return nil, nil, err
	}
	if len(found) == 0 {
		return nil, nil, fmt.Errorf("nobody publishes %s in your realms now: "+
			"agentsite agents search lists what there is", name)
	}
	for _, p := range found[1:] {
		if p.Author != found[0].Author {
			return nil, nil, usagef("several authors publish %s, and these are different agents: choose one with --author, of "+
				"%s and %s; agentsite agents search lists all",
				name, found[0].Author, p.Author)
		}
	}
	return found[0].File, found[0].Bundle, nil
}

// offered is a newer version that agents updates prints as JSON.
type offered struct {
	Import    string `json:"import"` // its name on the site
	Installed uint32 `json:"installed"`
	Version   uint32 `json:"version"`
	ID        string `json:"id"`
	Author    string `json:"author"`

	old   imports.Draft
	newer *bundle.Bundle
}

func (a *app) agentUpdatesCommand() *cobra.Command {
	var realm string
	cmd := &cobra.Command{
		Use: "updates", Short: "Show newer versions of the agents that came from others", Args: noArgs,
		Long: `Search your realms for newer versions of the imports of the site, and show what is different:
what each needs, wishes for and does. Only a higher version of the same name, signed by
the same key, is offered. Nothing is taken before you install and accept it:

  agentsite agents install sha256:… --update NAME
  agentsite agents accept NAME-new --may PERMISSION`,
		Example: "  agentsite agents updates",
	}
	cmd.RunE = a.asOwner(func(ctx context.Context, s *session, _ []string) error {
		imported, err := callOwner(ctx, s, acts.SharedAgentsAct, acts.None{})
		if err != nil {
			return err
		}
		if len(imported.Imported) == 0 && !a.json {
			return a.say("no agent of others is on this site")
		}
		offers, err := a.offersFor(ctx, imported.Imported, realm)
		if err != nil {
			return err
		}
		head := []string{"IMPORT", "VERSION", "OFFERED", "AUTHOR", "HASH"}
		err = printList(a, offers, "no newer version is published in your realms", head, func(o offered) []string {
			return []string{clean(o.Import), fmt.Sprint(o.Installed), fmt.Sprint(o.Version), o.Author, o.ID}
		})
		if err != nil || a.json {
			return err
		}
		for _, o := range offers {
			a.say("")
			a.say("Version %d of %s (- before, + now):", o.Version, o.Import)
			if err := a.printDifference(o.old, o.newer); err != nil {
				return err
			}
			a.say("Take it: %s agents install %s --update %s", a.again(), o.ID, safeWord(o.Import, "IMPORT"))
		}
		return nil
	})
	cmd.Flags().StringVar(&realm, "realm", "", "the realm (default: all that you are in)")
	cmd.RegisterFlagCompletionFunc("realm", completeRealms)
	return cmd
}

// offersFor searches the newest version of each import.
func (a *app) offersFor(ctx context.Context, imported []imports.Draft, realm string) (offers []offered, err error) {
	var words []string
	for _, d := range imported {
		if bundle.IsWord(d.Own) && !slices.Contains(words, d.Own) {
			words = append(words, d.Own)
		}
	}
	if len(words) == 0 {
		return nil, nil
	}
	user, err := peer.User()
	if err != nil {
		return nil, err
	}
	newer := func(d imports.Draft, b *bundle.Bundle) bool {
		return b.Name == d.Own && b.Kind == d.Kind && b.Author.String() == d.Author && b.Version > d.Version
	}
	found, err := a.searchHub(ctx, user, realm, words, func(b *bundle.Bundle) bool {
		return slices.ContainsFunc(imported, func(d imports.Draft) bool { return newer(d, b) })
	})
	for _, d := range imported {
		waits := slices.ContainsFunc(imported, func(other imports.Draft) bool { return other.Replaces == d.Name })
		k := slices.IndexFunc(found, func(p peer.Published) bool { return newer(d, p.Bundle) }) // the newest is first
		if k >= 0 && !waits {
			p := found[k]
			offers = append(offers, offered{d.Name, d.Version, p.Version, p.ID.String(), p.Author.String(), d, p.Bundle})
		}
	}
	return offers, err
}

// printDifference prints what a newer version needs, wishes for and does otherwise than an import.
func (a *app) printDifference(old imports.Draft, b *bundle.Bundle) error {
	before := describe(old.Needs, old.Asks, old.Says)
	after := describe(b.Needs, b.May, b.Definition)
	for _, line := range difference(before, after) {
		a.say("  %s", line)
	}
	return nil
}

// describe returns what an agent needs, wishes for and does, in lines.
func describe(needs []bundle.Need, wish, definition string) (lines []string) {
	for _, n := range needs {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("needs %s: %s %s", n.Name, n.Kind, n.Unit)))
	}
	if wish != "" {
		lines = append(lines, "wishes that it may: "+wish)
	}
	return append(lines, strings.Split(strings.TrimSuffix(definition, "\n"), "\n")...)
}
