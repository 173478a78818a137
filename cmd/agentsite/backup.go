package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"agentsite/cmd/internal/peer"
	"agentsite/node/config"
	"agentsite/node/state/backup"

	"github.com/spf13/cobra"
)

func (a *app) backupCommand() *cobra.Command {
	var o backup.Options
	var passphrase string
	cmd := &cobra.Command{
		Use: "backup FILE", GroupID: groupSite, Args: exactly("FILE"),
		Short: "Write all that the site is into one encrypted file: cards die",
		Long: `Write the site's key, owners, permissions and configuration into one file, which only a
passphrase opens. The site may run meanwhile. The journal, past readings and the token
that run made are not in it.

The passphrase is asked for, twice, or read from --passphrase-file. Enter alone has one
made and shown this once. Nobody can open the file without it. "age -d FILE" opens it
with it, too.

With --owner it is your own key, with which you own sites, and nothing else.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.backedUp("backup", o, args[0], func(o backup.Options) (*backup.Summary, error) {
				o.Passphrase = func() (string, error) { return a.newPassphrase(cmd.Context(), passphrase) }
				return backup.Create(o)
			})
		},
		ValidArgsFunction: oneFile,
	}
	a.backupFlags(cmd, &o, &passphrase)
	cmd.Flags().BoolVar(&o.Force, "force", false, "replace the file where it is there already")
	return cmd
}

func (a *app) restoreCommand() *cobra.Command {
	var o backup.Options
	var passphrase string
	cmd := &cobra.Command{
		Use: "restore FILE", GroupID: groupSite, Args: exactly("FILE"),
		Short: "Make the site of a backup here",
		Long: `Make the site of a backup in a data folder that has no key. It is the same site: those who
know it know it by its key, and its owners and tokens count as before. All is checked
before anything is written, and no configuration is replaced.

Let the old board never run again beside it: both would be the same site. Permissions
that were revoked after the backup are back: look at agentsite grants, and revoke them
again. Rates begin as used up, because nobody knows what was counted.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.backedUp("restore", o, args[0], func(o backup.Options) (*backup.Summary, error) {
				o.Passphrase = func() (string, error) { return a.passphrase(cmd.Context(), passphrase, "Passphrase of the backup: ") }
				return backup.Restore(o)
			})
		},
		ValidArgsFunction: oneFile,
	}
	a.backupFlags(cmd, &o, &passphrase)
	return cmd
}

func (a *app) backupFlags(cmd *cobra.Command, o *backup.Options, passphrase *string) {
	cmd.Flags().StringVar(&o.Config, "config", "", "the configuration (default: "+config.DefaultFile+")")
	cmd.Flags().BoolVar(&o.Owner, "owner", false, "your own key as an owner, instead of a site")
	cmd.Flags().StringVar(passphrase, "passphrase-file", "", "the file with the passphrase, instead of being asked")
	cmd.MarkFlagFilename("config", "yaml", "yml")
}

// oneFile completes the name of a file.
func oneFile(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}

type backedUpResult struct {
	File string `json:"file"`
	*backup.Summary
}

// backedUp makes a backup or restores one, and says what is in it.
func (a *app) backedUp(what string, o backup.Options, file string, do func(backup.Options) (*backup.Summary, error)) (err error) {
	if err := a.local(what); err != nil {
		return err
	}
	if o.Owner && o.Config != "" {
		return usagef("an owner's key has no configuration: leave out --config or --owner")
	}
	folder := a.siteFolder
	if what != "backup" { // what is restored goes where it is said
		folder = a.folder
	}
	if o.Folder, err = folder(); err != nil {
		return err
	}
	if o.Owner {
		user, err := peer.User()
		if err != nil {
			return err
		}
		o.Folder = user.Folder
	}
	o.File = file
	b, err := do(o)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(backedUpResult{file, b})
	}
	done := "is in " + file
	if what == "restore" {
		done = "of " + local(b.Made) + " is here again"
	}
	if b.Of == "owner" {
		return a.say("the owner's key %s %s", b.DID, done)
	}
	config := "its configuration, " + b.Config
	if b.Config == "" {
		config = "no configuration (--config names one)"
	}
	return a.say("the site %s %s, with %s, %s, %s and %s", b.DID, done,
		counted(b.Owners, "owner"), counted(b.Tokens, "token"), counted(b.Grants, "grant"), config)
}

// newPassphrase is the one for a backup that is being made.
func (a *app) newPassphrase(ctx context.Context, file string) (string, error) {
	said, err := a.passphrase(ctx, file, "Passphrase for the backup (Enter alone has one made): ")
	switch {
	case err != nil || file != "":
		return said, err
	case said == "":
		made := backup.NewPassphrase()
		fmt.Fprintf(a.errs, "agentsite: write this passphrase down; it is shown this once, and nothing else opens the backup:\n%s\n", made)
		return made, nil
	}
	if err := backup.CheckPassphrase(said); err != nil {
		return "", err
	}
	again, err := a.prompt(ctx, "The same once more: ", true)
	if err == nil && again != said {
		return "", usagef("these were two different passphrases: nothing is written")
	}
	return said, err
}

// passphrase is the one in the file, or else the one that the person at the terminal types.
func (a *app) passphrase(ctx context.Context, file, question string) (string, error) {
	if file == "" {
		if _, ok := a.terminal(); !ok {
			return "", usagef("there is no terminal to ask for the passphrase on: put it into a file that only you can read, and name that with --passphrase-file")
		}
		return a.prompt(ctx, question, true)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", usagef("--passphrase-file: %w", err)
	}
	line := strings.TrimRight(string(text), "\r\n")
	if line == "" || strings.ContainsAny(line, "\r\n") {
		return "", usagef("%s holds no passphrase, which is one line", file)
	}
	return line, nil
}
