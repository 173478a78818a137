package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"agentsite/cmd/internal/peer"
	"agentsite/node/config"
	"agentsite/node/state"
	"agentsite/node/state/backup"

	"github.com/spf13/cobra"
)

func (a *app) backupCommand() *cobra.Command {
	var o backup.Options
	var passphrase string
	cmd := &cobra.Command{
		Use: "backup FILE", GroupID: groupOwner, Args: exactly("FILE"),
		Short: "Back up the site to one encrypted file",
		Long: `Write the site's key, owners, permissions and configuration to one file, encrypted with a
passphrase. The site may be running. The journal and the local token are not included, and the
history only with --history.

The command asks for the passphrase twice, or reads it from --passphrase-file. Enter alone
creates one and shows it once. Without the passphrase the file is useless; with it,
"age -d FILE" decrypts it, too.

With --owner, back up your own key instead, with which you own sites.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Passphrase = func() (string, error) { return a.newPassphrase(cmd.Context(), passphrase) }
			return a.runBackup(cmd, o, args[0], a.siteFolder, backup.Create)
		},
		ValidArgsFunction: oneFile,
	}
	a.backupFlags(cmd, &o, &passphrase)
	cmd.Flags().BoolVar(&o.Force, "force", false, "replace an existing file")
	cmd.Flags().BoolVar(&o.History, "history", false, "include the history, up to 128 MB")
	return cmd
}

func (a *app) restoreCommand() *cobra.Command {
	var o backup.Options
	var passphrase string
	cmd := &cobra.Command{
		Use: "restore FILE", GroupID: groupOwner, Args: exactly("FILE"),
		Short: "Restore a site from a backup",
		Long: `Restore a site to a data folder that has no key. It is the same site as before: its key,
owners and tokens stay valid. Everything is checked before anything is written, and no
configuration is replaced. What an earlier site left in the folder is moved aside.

Never run the old board again beside it: both would be the same site. Permissions that
were revoked after the backup are valid again: check agentsite grants, and revoke them.
Rate limits begin as used up.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Passphrase = func() (string, error) {
				return a.passphrase(cmd.Context(), passphrase, "Passphrase of the backup: ")
			}
			return a.runBackup(cmd, o, args[0], a.folder, backup.Restore)
		},
		ValidArgsFunction: oneFile,
	}
	a.backupFlags(cmd, &o, &passphrase)
	return cmd
}

func (a *app) backupFlags(cmd *cobra.Command, o *backup.Options, passphrase *string) {
	cmd.Flags().StringVar(&o.Config, "config", "", "the configuration (default: "+config.DefaultFile+")")
	cmd.Flags().BoolVar(&o.Owner, "owner", false, "your own key instead of a site")
	cmd.Flags().StringVar(passphrase, "passphrase-file", "", "the file with the passphrase (default: ask)")
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

// runBackup creates or restores a backup and prints its content.
func (a *app) runBackup(cmd *cobra.Command, o backup.Options, file string, folder func() (state.Folder, error), do func(backup.Options) (*backup.Summary, error)) (err error) {
	if err := a.requireLocal(words(cmd)); err != nil {
		return err
	}
	if o.Owner && o.Config != "" {
		return usagef("an owner's key has no configuration: leave out --config or --owner")
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
	show, end := a.progress()
	defer end()
	ask := o.Passphrase
	o.Passphrase = func() (string, error) { // its prompt comes first
		said, err := ask()
		show("making a key of the passphrase, which is slow by design")
		return said, err
	}
	b, err := do(o)
	if end(); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(backedUpResult{file, b})
	}
	done := "backed up to " + file
	if cmd.Name() == "restore" {
		done = "restored from the backup of " + local(b.Made)
	}
	if b.Of == "owner" {
		return a.say("owner's key %s %s", b.DID, done)
	}
	config := "its configuration, " + b.Config
	if b.Config == "" {
		config = "no configuration (--config names one)"
	}
	err = a.say("site %s %s, with %s, %s, %s and %s", b.DID, done,
		counted(b.Owners, "owner"), counted(b.Tokens, "token"), counted(b.Grants, "grant"), config)
	if err == nil && len(b.Aside) > 0 {
		err = a.say("What an earlier site left in this folder, such as its tasks and its journal, is in %s now.",
			strings.Join(b.Aside, " and "))
	}
	return err
}

// newPassphrase asks for the passphrase of a new backup, or creates one.
func (a *app) newPassphrase(ctx context.Context, file string) (string, error) {
	said, err := a.passphrase(ctx, file, "Passphrase for the backup (Enter creates one): ")
	switch {
	case err != nil || file != "":
		return said, err
	case said == "":
		made := backup.NewPassphrase()
		fmt.Fprintf(a.errs, "agentsite: write this passphrase down; it is not shown again, and nothing else decrypts the backup:\n%s\n", made)
		return made, nil
	}
	if err := backup.CheckPassphrase(said); err != nil {
		return "", err
	}
	again, err := a.prompt(ctx, "Repeat the passphrase: ", true)
	if err == nil && again != said {
		return "", usagef("the two passphrases differ: nothing is written")
	}
	return said, err
}

// passphrase reads a passphrase from the file, or asks for it at the terminal.
func (a *app) passphrase(ctx context.Context, file, question string) (string, error) {
	if file == "" {
		if _, ok := a.terminal(); !ok {
			return "", usagef("there is no terminal to ask for the passphrase: put it into a file that only you can read, and use --passphrase-file")
		}
		return a.prompt(ctx, question, true)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", usagef("--passphrase-file: %w", err)
	}
	line := strings.TrimRight(string(text), "\r\n")
	if line == "" || strings.ContainsAny(line, "\r\n") {
		return "", usagef("%s does not contain a passphrase of one line", file)
	}
	return line, nil
}
