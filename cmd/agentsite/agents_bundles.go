package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/node/acts"
	"agentsite/node/bundle"
	"agentsite/node/imports"
	"agentsite/node/state"

	"github.com/spf13/cobra"
)

func (a *app) exportAgentCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "export NAME", Short: "Write an agent of the site into a file for others, signed with your key", Args: exactly("NAME"),
		Long: `Write the definition of a rule or a routine of the site into one file, signed with your
key. Its points become needs, such as a temperature in Cel, and its permission becomes a
wish. The file has the definition as it is written, without comments.`,
		Example:           "  agentsite agents export frost\n  agentsite agents export frost -o winter.bundle",
		ValidArgsFunction: a.completeHosted,
	}
	cmd.RunE = a.asOwner(func(ctx context.Context, s *session, args []string) error {
		c, err := callOwner(ctx, s, acts.ExportAgentAct, acts.Name{Name: args[0]})
		if err != nil {
			return err
		}
		if c.Name != args[0] {
			return fmt.Errorf("the site sent another agent than %s, and nothing was signed", args[0])
		}
		key, err := peer.OwnerKey()
		if err != nil {
			return err
		}
		c.Created = time.Now().Unix()
		text, err := bundle.Seal(key, c)
		if err != nil {
			return fmt.Errorf("%s cannot be a bundle: %w", args[0], err)
		}
		if file == "" {
			file = c.Name + ".bundle"
		}
		if err := writeFresh(file, text); err != nil {
			return err
		}
		b, err := bundle.Open(text)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(exported{file, b.Author.String(), b.Needs, b.May, b.Kind, b.Definition})
		}
		a.say("%s is written, signed by %s. You signed this %s:", file, b.Author, b.Kind)
		if err := a.printNeeds(b.Needs, nil); err != nil {
			return err
		}
		return a.printDefinition(b.Definition, b.May)
	})
	cmd.Flags().StringVarP(&file, "out", "o", "", "the file; without it NAME.bundle here")
	return cmd
}

type exported struct {
	File   string        `json:"file"`
	Author string        `json:"author"`
	Needs  []bundle.Need `json:"needs"`
	Wish   string        `json:"wish,omitzero"`
	Kind   string        `json:"kind"`
	Says   string        `json:"definition"`
}

// writeFresh writes a file that is not there yet.
func writeFresh(file string, text []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return usagef("%s exists already: name another file with -o", file)
	}
	if err != nil {
		return state.Mistake{Err: err}
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("%s could not be written: %w", file, err), os.Remove(file))
	}
	return nil
}

func (a *app) importAgentCommand() *cobra.Command {
	var draft draftFlags
	cmd := &cobra.Command{
		Use: "import FILE|sha256:…", Short: "Bring an agent to the site, as a draft that does nothing", Args: exactly("FILE|sha256:…"),
		Long: `Verify a bundle, bind what it needs to points of the site, and keep it there as a draft. A
draft does nothing and may nothing. Try it on the past, then accept it:

  agentsite agents try NAME
  agentsite agents accept NAME --may 'set house/heater max 5m'

A need that only one point of the site can be is bound to that point. For others name the
point with --bind.

"sha256:" and 64 digits is a bundle that a site of your realms shares. It is fetched from
there, and what comes has this hash. Only members of the realm can fetch it.`,
		Example: "  agentsite agents import frost.bundle\n  agentsite agents import frost.bundle --as attic --bind relay=attic/heater\n  agentsite agents import sha256:9f86d081… --realm garden",
	}
	cmd.ValidArgsFunction = completeBundle
	cmd.RunE = a.asOwner(func(ctx context.Context, s *session, args []string) error {
		text, b, err := readBundle(ctx, args[0], draft.realm)
		if err != nil {
			return err
		}
		return a.keepDraft(ctx, s, text, b, draft, "")
	})
	draft.add(cmd)
	cmd.Flags().StringVar(&draft.realm, "realm", "", "the realm that sha256:… is fetched from (default: all that you "+
		"are in)")
	cmd.RegisterFlagCompletionFunc("realm", completeRealms)
	return cmd
}

// draftFlags say how a bundle becomes a draft.
type draftFlags struct {
	as, realm string
	binds     []string
	again     bool
}

func (f *draftFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.as, "as", "", "its name here; without it the bundle's own")
	cmd.Flags().StringArrayVar(
		&f.binds, "bind", nil, "NEED=POINT: the point that a need is; several times for several needs",
	)
	cmd.Flags().BoolVar(&f.again, "again", false, "also a bundle that was removed from the site")
}

// keepDraft has the site keep a verified bundle as a draft, and prints that. replaces names the import of
// which it is a newer version.
func (a *app) keepDraft(
	ctx context.Context, s *session, text []byte, b *bundle.Bundle, f draftFlags, replaces string,
) error {
	q := imports.Request{Bundle: text, As: f.as, Again: f.again, Replaces: replaces}
	for _, b := range f.binds {
		need, point, ok := strings.Cut(b, "=")
		if !ok {
			return usagef("--bind takes NEED=POINT, such as relay=house/heater, not %q", b)
		}
		q.Bind = append(q.Bind, bundle.Binding{Need: need, Point: point})
	}
	d, err := callOwner(ctx, s, acts.ImportAgentAct, q)
	if err != nil {
		return err
	}
	// Show the values that were verified here, not those of the site.
	if replaces == "" {
		d.Name = cmp.Or(f.as, b.Name)
	}
	d.Author, d.Needs, d.Says, d.Excess = b.Author.String(), b.Needs, b.Definition, b.Excess()
	d.Own, d.Version, d.Asks, d.Replaces = b.Name, b.Version, b.May, replaces
	if a.json {
		return a.printJSON(d)
	}
	return a.printDraft(d)
}

// printDraft prints the facts about a draft that an owner needs before its acceptance.
func (a *app) printDraft(d imports.Draft) error {
	a.say("%s is a draft now, by %s. It does nothing.", d.Name, d.Author)
	if err := a.printNeeds(d.Needs, d.Bound); err != nil {
		return err
	}
	a.say("Its definition, whose texts people and models are told:")
	if err := a.printDefinition(d.Says, d.Wish); err != nil {
		return err
	}
	for _, part := range d.Excess {
		a.say("Careful: the wish \"%s\" is about more than it needs.", part)
	}
	return a.say("Try it: %s agents try %s. Then accept it with the permission that you choose: %s agents accept %s "+
		"--may PERMISSION", a.again(), safeWord(d.Name, "NAME"), a.again(), safeWord(d.Name, "NAME"))
}

// printDefinition prints the definition of an agent, indented as no other line is, and the permission
// that it asks for.
func (a *app) printDefinition(definition, wish string) error {
	for line := range strings.Lines(definition) {
		a.say("  %s", strings.TrimSuffix(line, "\n"))
	}
	if wish == "" {
		return nil
	}
	return a.say("Its author wishes that it may: %s", wish)
}

func (a *app) printNeeds(needs []bundle.Need, bound []bundle.Binding) error {
	var rows [][]string
	for i, n := range needs {
		row := []string{clean(n.Name), clean(string(n.Kind)), clean(n.Unit), clean(n.For)}
		if bound != nil && i < len(bound) {
			row = append(row, clean(bound[i].Point))
		}
		rows = append(rows, row)
	}
	head := []string{"NEEDS", "KIND", "UNIT", "FOR"}
	if bound != nil {
		head = append(head, "IS HERE")
	}
	return table(a.out, head, rows)
}

func (a *app) tryAgentCommand() *cobra.Command {
	cmd, _ := a.tryCommand(&cobra.Command{
		Use: "try NAME", Short: "Show what a draft or a rule would have done in the past", Args: exactly("NAME"),
		Long: `Run the draft of a rule over the stored readings, with the limits of the outputs, as agentsite rules
try does with the rules of the site. Nothing is moved.`,
		Example:           "  agentsite agents try frost --since 7d",
		ValidArgsFunction: a.completeHosted,
	})
	return cmd
}

func (a *app) acceptAgentCommand() *cobra.Command {
	var may string
	cmd := &cobra.Command{
		Use: "accept NAME", Short: "Have a draft run, with the permission that you write", Args: exactly("NAME"),
		Long:              permissionHelp + "\n\nThe draft runs from then on like an agent of the configuration, over restarts too. What its\nauthor wished for counts for nothing. It may read the points that its needs are.",
		Example:           "  agentsite agents accept frost --may 'set house/heater max 5m'",
		ValidArgsFunction: a.completeHosted,
	}
	cmd.RunE = a.asOwner(func(ctx context.Context, s *session, args []string) error {
		d, err := callOwner(ctx, s, acts.AcceptAgentAct, imports.Acceptance{Name: args[0], May: may})
		if err != nil {
			return err
		}
		s.warnOfUnmatched(ctx, may)
		return a.print(d, "%s runs, and may: %s", d.Name, d.May)
	})
	cmd.Flags().StringVar(&may, "may", "", "what it may do, as in a grant")
	return cmd
}

func (a *app) removeAgentCommand() *cobra.Command {
	return a.changeHostedCommand("remove", "agent", "Remove a draft, or end and remove an agent that came as a bundle", "removed", acts.RemoveAgentAct, a.completeHosted)
}
