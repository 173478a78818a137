package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/node/acts"
	"agentsite/node/bundle"
	"agentsite/node/identity"
	"agentsite/node/imports"

	"github.com/spf13/cobra"
)

func (a *app) publishAgentCommand() *cobra.Command {
	var number uint32
	var tags []string
	var dry bool
	cmd := &cobra.Command{
		Use: "publish [NAME|FILE]", Short: "Have others of the site's realm find an agent by its words", Args: optional("NAME|FILE"),
		Long: `Publish a rule or a routine of the site, signed with your key, with a version. Others of the
site's realm search and install it. In the realm "public" that is everybody.

NAME is an agent of the configuration, or an import that runs here: that keeps the key of
its author. FILE is a bundle. It is found by its name, the parts of that, its kind, its
tags and those of --tag. What leaves is its definition, with needs in place of your points, and its wish for
a permission. The command prints that; with --dry-run it prints it first. A newer version
replaces the one before. Without NAME the command lists what the site publishes.`,
		Example: "  agentsite agents publish frost --dry-run\n  agentsite agents publish frost --tag heating\n  agentsite agents publish",
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
		p, b, err := a.publication(ctx, s, args[0], number, tags, shared.Shared)
		if err != nil {
			return err
		}
		if !dry {
			done, err := callOwner(ctx, s, acts.PublishAgentAct, p)
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
				ID: id, Name: b.Name, Kind: b.Kind, Author: b.Author.String(), Version: b.Version, Published: !dry, Words: b.Words(),
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
		if dry {
			return nil
		}
		return a.say("Others install it: agentsite agents install %s", id)
	})
	cmd.Flags().Uint32Var(&number, "version", 0, "the version, higher than before (default: the next one)")
	cmd.Flags().StringArrayVar(&tags, "tag", nil, "a word by which it is found, too, such as irrigation; several times for several words")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "publish nothing, and show what would be")
	return cmd
}

func (a *app) printPublished(all []imports.SharedBundle) error {
	all = slices.DeleteFunc(all, func(b imports.SharedBundle) bool { return !b.Published })
	head := []string{"NAME", "VERSION", "KIND", "AUTHOR", "WORDS", "HASH"}
	return printList(a, all, "this site publishes no agent", head, func(b imports.SharedBundle) []string {
		return []string{b.Name, fmt.Sprint(b.Version), b.Kind, b.Author, strings.Join(b.Words, " "), b.ID}
	})
}

// publication returns what is published under a name or from a file, with its bundle; that is nil for an
// import, which the site has.
func (a *app) publication(
	ctx context.Context, s *session, name string, number uint32, tags []string, shared []imports.SharedBundle,
) (p imports.Publication, b *bundle.Bundle, err error) {
	asItIs := number == 0 && len(tags) == 0
	if strings.ContainsAny(name, "./:") { // no name of an agent has them
		if !asItIs {
			return p, nil, usagef("%s is signed already: leave out --version and --tag", name)
		}
		p.Bundle, b, err = readBundle(ctx, name, "")
		return p, b, err
	}
	imported, err := callOwner(ctx, s, acts.ImportedAgentsAct, acts.None{})
	if err != nil {
		return p, nil, err
	}
	for _, d := range imported.Imported {
		if d.Name == name && strings.HasPrefix(d.Author, "did:key:") {
			if !asItIs {
				return p, nil, usagef("%s is signed by its author already: leave out --version and --tag", name)
			}
			return imports.Publication{Name: name}, nil, nil
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
		for _, other := range shared {
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
				a.note("what is found need not be good: compare AUTHOR with what its author tells you; then install it by its HASH: agentsite agents install HASH")
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

// searchHub searches the realm of that name, for "" all of the user's, and remarks on those that fail.
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
	if lookups != nil {
		a.note("%v", lookups)
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
	all, err := callOwner(ctx, s, acts.ImportedAgentsAct, acts.None{})
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
		return nil, nil, fmt.Errorf("nobody publishes %s in your realms now: agentsite agents search lists what there is", name)
	}
	for _, p := range found[1:] {
		if p.Author != found[0].Author {
			return nil, nil, usagef("several authors publish %s, and these are different agents: choose one with --author, of %s and %s; agentsite agents search lists all",
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
		imported, err := callOwner(ctx, s, acts.ImportedAgentsAct, acts.None{})
		if err != nil {
			return err
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

// difference returns the lines that only one of two texts has, with - or + before them, in order.
func difference(before, after []string) (lines []string) {
	const most = 1000 // lines that are compared; a longer text is shown whole
	if len(before) > most || len(after) > most {
		for _, l := range after {
			lines = append(lines, "+ "+l)
		}
		return lines
	}
	common := make([][]int16, len(before)+1) // of the texts from i and from j on
	for i := range common {
		common[i] = make([]int16, len(after)+1)
	}
	for i := len(before) - 1; i >= 0; i-- {
		for j := len(after) - 1; j >= 0; j-- {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); before[i] == after[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	i, j := 0, 0
	for i < len(before) || j < len(after) {
		switch {
		case i < len(before) && j < len(after) && before[i] == after[j]:
			i, j = i+1, j+1
		case j == len(after) || i < len(before) && common[i+1][j] >= common[i][j+1]:
			lines, i = append(lines, "- "+before[i]), i+1
		default:
			lines, j = append(lines, "+ "+after[j]), j+1
		}
	}
	return lines
}
