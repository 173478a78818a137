package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/node/acts"
	"agentsite/node/bundle"
	"agentsite/node/imports"

	"github.com/spf13/cobra"
)

func (a *app) publishAgentCommand() *cobra.Command {
	var number uint32
	var tags []string
	var dry bool
	cmd := &cobra.Command{
		Use: "publish [NAME|FILE]", Short: "Have others of the site's realm find an agent by its words", Args: optional(
			"NAME|FILE",
		),
		Long: `Publish a rule or a routine of the site, signed with your key, with a version. Others of the
site's realm search and install it. In the realm "public" that is everybody.

NAME is an agent of the configuration, or an import that runs here: that keeps the key of
its author. FILE is a bundle. It is found by its name, the parts of that, its kind, its
tags and those of --tag. What leaves is its definition, with needs in place of your points, and its wish for
a permission. The command prints that; with --dry-run it prints it first. A newer version
replaces the one before. Without NAME the command lists what the site publishes.`,
		Example: "  agentsite agents publish frost --dry-run\n  agentsite agents publish frost --tag heating\n" +
			"  agentsite agents publish",
	}
	cmd.ValidArgsFunction = a.completeHosted
	cmd.RunE = a.asOwner(func(ctx context.Context, s *session, args []string) error {
		shared, err := callOwner(ctx, s, acts.SharedAgentsAct, acts.None{})
		if err != nil {
			return err
		}
		if len(args) == 0 {
			return a.printPublished(shared.Shared)
		}
		p, b, err := a.publication(ctx, s, args[0], number, tags, bundlesOf{shared.Shared, shared.Imported})
		if err != nil {
			return err
		}
		p.Publish = true
		if !dry {
			done, err := callOwner(ctx, s, acts.ShareAgentAct, p)
			if err != nil {
				return err
			}
			if b == nil {
				return a.print(done, "%s is published by its author's key. Others install it: agentsite agents install %s",
					done.Name, safeWord(done.ID, "HASH"))
			}
		}
		if b == nil {
			return a.print(p, "%s would be published as it came, by its author's key", p.Name)
		}
		id := bundle.IDOf(p.Bundle).String()
		if a.json {
			return a.printJSON(imports.SharedBundle{
				ID: id, Name: b.Name, Kind: b.Kind, Author: b.Author.String(), Version: b.Version,
				Published: !dry, Words: b.Words(),
			})
		}
		if dry {
			a.say("Nothing is published. This would be, as version %d of the %s %s, by %s:", b.Version, b.Kind, b.Name, b.Author)
		} else {
			a.say("%s is published, version %d of this %s, by %s:", b.Name, b.Version, b.Kind, b.Author)
		}
		if err := a.printNeeds(b.Needs, nil); err != nil {
			return err
		}
		if err := a.printDefinition(b.Definition, b.May); err != nil {
			return err
		}
		a.say("It is found by: %s", strings.Join(b.Words(), " "))
		if lost := lostWords(shared.Shared, b); len(lost) > 0 {
			a.note(
				"no longer by %s, as the version before: publish it again with --tag for each to keep", strings.Join(lost, " "),
			)
		}
		if dry {
			return nil
		}
		return a.say("Others install it: agentsite agents install %s", id)
	})
	cmd.Flags().Uint32Var(&number, "version", 0, "the version, higher than before (default: the next one)")
	cmd.Flags().StringArrayVar(&tags, "tag", nil, "a word by which it is found, too, such as irrigation; several times "+
		"for several words")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "publish nothing, and show what would be")
	return cmd
}

// lostWords returns the words of the version before that b is not found by.
func lostWords(all []imports.SharedBundle, b *bundle.Bundle) (lost []string) {
	for _, before := range all {
		if !before.Published || before.Name != b.Name || before.Author != b.Author.String() {
			continue
		}
		for _, word := range before.Words {
			if bundle.IsWord(word) && !slices.Contains(b.Words(), word) {
				lost = append(lost, word)
			}
		}
	}
	return lost
}

func (a *app) printPublished(all []imports.SharedBundle) error {
	all = slices.DeleteFunc(all, func(b imports.SharedBundle) bool { return !b.Published })
	head := []string{"NAME", "VERSION", "KIND", "AUTHOR", "WORDS", "HASH"}
	return printList(a, all, "this site publishes no agent", head, func(b imports.SharedBundle) []string {
		return []string{b.Name, fmt.Sprint(b.Version), b.Kind, b.Author, strings.Join(b.Words, " "), b.ID}
	})
}

// bundlesOf are the bundles of a site.
type bundlesOf struct {
	shared   []imports.SharedBundle
	imported []imports.Draft
}

// publication returns what is published under a name or from a file, with its bundle; that is nil for an
// import, which the site has.
func (a *app) publication(
	ctx context.Context, s *session, name string, number uint32, tags []string, all bundlesOf,
) (p imports.Sharing, b *bundle.Bundle, err error) {
	asItIs := number == 0 && len(tags) == 0
	if strings.ContainsAny(name, "./:") { // no name of an agent has them
		if !asItIs {
			return p, nil, usagef("%s is signed already: leave out --version and --tag", name)
		}
		p.Bundle, b, err = readBundle(ctx, name, "")
		return p, b, err
	}
	for _, d := range all.imported {
		if d.Name == name && strings.HasPrefix(d.Author, "did:key:") {
			if !asItIs {
				return p, nil, usagef("%s is signed by its author already: leave out --version and --tag", name)
			}
			return imports.Sharing{Name: name}, nil, nil
		}
	}
	c, err := callOwner(ctx, s, acts.ExportAgentAct, acts.Name{Name: name})
	if err != nil {
		return p, nil, err
	}
	if c.Name != name {
		return p, nil, fmt.Errorf("the site sent another agent than %s, and nothing was signed", name)
	}
	key, err := peer.OwnerKey()
	if err != nil {
		return p, nil, err
	}
	if c.Version = number; number == 0 {
		for _, other := range all.shared {
			if other.Name == name && other.Author == key.ID().String() {
				c.Version = max(c.Version, other.Version)
			}
		}
		c.Version++
	}
	for _, tag := range tags {
		if !slices.Contains(c.Tags, tag) {
			c.Tags = append(c.Tags, tag)
		}
	}
	c.Created = time.Now().Unix()
	if p.Bundle, err = bundle.Seal(key, c); err != nil {
		return p, nil, fmt.Errorf("%s cannot be published: %w", name, err)
	}
	b, err = bundle.Open(p.Bundle)
	return p, b, err
}

func (a *app) unpublishAgentCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "unpublish NAME|sha256:…", Short: "End the publishing of an agent", Args: exactly("NAME|sha256:…"),
		Long: `End the publishing of an agent, by its name or its hash. Nobody finds or fetches it here from
then on. What others have installed stays theirs.`,
		Example: "  agentsite agents unpublish frost",
	}
	cmd.RunE = a.asOwner(func(ctx context.Context, s *session, args []string) error {
		all, err := callOwner(ctx, s, acts.SharedAgentsAct, acts.None{})
		if err != nil {
			return err
		}
		var ended []string
		for _, b := range all.Shared {
			if !b.Published || b.Name != args[0] && b.ID != args[0] {
				continue
			}
			if _, err := callOwner(ctx, s, acts.UnshareAgentAct, acts.Name{Name: b.ID}); err != nil {
				return err
			}
			ended = append(ended, b.ID)
		}
		if len(ended) == 0 {
			return usagef("this site does not publish %.80q: agentsite agents publish lists what it does", args[0])
		}
		return a.print(struct {
			Unpublished []string `json:"unpublished"`
		}{ended}, "%s is published no more", args[0])
	})
	return cmd
}
