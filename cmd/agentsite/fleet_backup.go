package main

import (
	"context"
	"os"
	"path/filepath"
	"sync"

	"agentsite/agents/op"
	"agentsite/cmd/internal/fleet"
	"agentsite/cmd/internal/peer"
	"agentsite/node/identity"
	"agentsite/node/state/backup"
	ownerclient "agentsite/transport/owner/client"

	"github.com/spf13/cobra"
)

func (f *fleetFlags) backupCommand() *cobra.Command {
	var passphrase string
	var force bool
	cmd := &cobra.Command{
		Use: "backup FOLDER", Args: exactly("FOLDER"), Short: "Back up your sites, each to an encrypted file",
		Long: `Back up your sites to FOLDER/NAME.age, one file for each: its key, owners, permissions and
configuration, without its history. All have the same passphrase, which the command asks for
twice, or reads from --passphrase-file. "agentsite restore" restores one on a new board.

Each site encrypts its backup for your key, and this computer then encrypts it with the
passphrase. So the keys of your sites are here for that moment, and then in the files:
keep them, and the passphrase, as safe as your own key. Each site writes down that you
made a backup.`,
		Example: "  agentsite fleet backup ~/backups\n  agentsite fleet backup ~/backups --force --passphrase-file ~/secret",
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.command(func(ctx context.Context, r *fleetRun, args []string) error {
				ask := sync.OnceValues(func() (string, error) { return r.newPassphrase(ctx, passphrase) })
				return r.backUp(ctx, backup.Options{Force: force, Passphrase: ask}, args[0])
			})(cmd, args)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	cmd.Flags().StringVar(&passphrase, "passphrase-file", "", "the file with the passphrase (default: ask)")
	cmd.Flags().BoolVar(&force, "force", false, "replace files that exist")
	return cmd
}

// backUp makes a file for each site that answers. The passphrase is asked for once, before any site is.
func (r *fleetRun) backUp(ctx context.Context, o backup.Options, folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return usagef("%w", err)
	}
	key, err := r.user.Key()
	if err != nil {
		return err
	}
	said, err := o.Passphrase()
	if err == nil {
		err = backup.CheckPassphrase(said)
	}
	if err != nil {
		return err
	}
	export := func(ctx context.Context, c *peer.Connection, _ peer.Contact) (backup.Exported, error) {
		return ownerclient.Call(ctx, c.Owner, backup.ExportAct, op.None{})
	}
	results, err := callFleet(ctx, r, fleet.Options{}, export)
	if err != nil {
		return err
	}
	written := make([]fleet.Result[backedUpResult], len(results))
	for i, of := range results { // one after the other: each takes the memory of a passphrase
		one := fleet.Result[backedUpResult]{Site: of.Site, Err: of.Err}
		if of.Err == nil {
			o.File = filepath.Join(folder, of.Site.Name+".age")
			one.Value.File = o.File
			one.Value.Summary, one.Err = storeBackup(o, key, of)
		}
		written[i] = one
	}
	cells := func(b backedUpResult) [][]string {
		return [][]string{
			{"done", b.File, counted(b.Owners, "owner") + ", " + counted(b.Grants, "grant") + ", " + counted(b.Tokens, "token")},
		}
	}
	if err := showFleet(r, written, "", []string{"SITE", "STATE", "FILE", "WITH"}, cells); err != nil {
		return err
	}
	return fleetOutcome(written, nil)
}

func storeBackup(o backup.Options, key identity.Key, of fleet.Result[backup.Exported]) (*backup.Summary, error) {
	site, err := identity.Parse(of.Site.DID)
	if err != nil {
		return nil, err
	}
	return backup.Store(o, key, site, of.Value)
}
