package main

import (
	"errors"
	"os"

	"agentsite/cmd/internal/ops"

	"github.com/spf13/cobra"
)

// sequence and releaseKeys are set when a release is built, beside version. They are its number
// among all releases, and the two keys, did:key:…,did:key:…, either of which signs the next
// releases.
var sequence, releaseKeys string

type updateFlags struct{ check, later, settle, install bool }

type updateResult struct {
	Version string `json:"version"`
	State   string `json:"state"` // newer, waits or in_use
}

func (a *app) updateCommand() *cobra.Command {
	var o ops.UpdateOptions
	var f updateFlags
	cmd := &cobra.Command{
		Use: "update [FILE|ADDRESS]", GroupID: groupSite,
		Short: "Install a newer version; it rolls back by itself if it fails",
		Long: `Install an update from a file or an address. The command verifies that the update is
signed, for this board, and newer than all installed versions. As the superuser it then
restarts the service; otherwise the update is installed at the next start. If the new
version does not run well for 15 s, the old one is back within 90 s. During the restart
outputs go to their safe values.

Updates are never installed automatically. Run the command as the superuser, or as the
service's user with sudo -u agentsite.

With --check, only verify the update, or without one show the installed version.`,
		Example: "  sudo agentsite update https://example.org/agentsite-linux-arm64.update\n  agentsite update --check",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && (f.check || f.settle || f.install) {
				return nil
			}
			return exactly("FILE or ADDRESS")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := a.requireLocal("update"); err != nil {
				return err
			}
			if f.check && f.later {
				return usagef("--check installs nothing: leave out --later or --check")
			}
			if o.Release, err = ops.NewRelease(version, sequence, releaseKeys); err != nil {
				return err
			}
			if len(args) > 0 {
				o.From = args[0]
			}
			switch {
			case f.settle:
				return a.settleUpdate(o)
			case f.install:
				return a.installUpdate(o)
			case f.check && o.From == "":
				return a.showUpdates(o)
			case f.check:
				r, err := ops.CheckUpdate(cmd.Context(), o)
				if err != nil {
					return err
				}
				return a.print(updateResult{r.Version, "newer"}, "%s is valid: newer than the installed version, and for this board", r.Version)
			}
			r, err := ops.StageUpdate(cmd.Context(), o)
			if err != nil {
				return err
			}
			if f.later || os.Geteuid() != 0 {
				return a.print(updateResult{r.Version, "waits"}, "%s is ready: sudo systemctl restart agentsite installs it", r.Version)
			}
			if err := ops.RestartService(cmd.Context(), o, r); err != nil {
				return err
			}
			return a.print(updateResult{r.Version, "in_use"}, "%s is running", r.Version)
		},
		ValidArgsFunction: oneFile,
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.check, "check", false, "verify only")
	flags.BoolVar(&f.later, "later", false, "do not restart the service")
	flags.BoolVar(&f.settle, "settle", false, "")
	flags.BoolVar(&f.install, "install", false, "")
	flags.StringVar(&o.Folder, "folder", "", "")
	for _, name := range []string{"settle", "install", "folder"} { // for the unit, and tests
		flags.MarkHidden(name)
	}
	return cmd
}

// settleUpdate is run by the package's program before the service starts.
func (a *app) settleUpdate(o ops.UpdateOptions) error {
	did, err := ops.SettleUpdate(o)
	for _, line := range did {
		err = errors.Join(err, a.say("%s", line))
	}
	return err
}

// installUpdate is run by the current program after settleUpdate.
func (a *app) installUpdate(o ops.UpdateOptions) error {
	r, err := ops.InstallUpdate(o)
	if err != nil || r == nil {
		return err
	}
	return a.say("%s is installed and on trial", r.Version)
}

type updatesResult struct {
	Version string `json:"version"`          // of this program
	Before  string `json:"before,omitzero"`  // the version before, the fallback
	Failed  string `json:"failed,omitzero"`  // the last version that failed
	Proven  bool   `json:"proven"`           // the version has run well
	Waits   bool   `json:"waits"`            // an update is installed at the service's next start
	Keys    int    `json:"keys"`             // the number of release keys that are trusted
	Package bool   `json:"package,omitzero"` // the program in use is the package's
}

// showUpdates prints the installed version.
func (a *app) showUpdates(o ops.UpdateOptions) error {
	if !o.Installed() {
		return a.print(updatesResult{Version: version, Keys: len(o.Release.Keys)}, "this is %s, not installed from agentsite's package: replace the program to update it", version)
	}
	s, err := ops.ReadUpdateStatus(o)
	if err != nil {
		return err
	}
	out := updatesResult{version, s.Before.Version, s.Failed.Version, s.Proven, s.Waits, len(o.Release.Keys), s.InUse.Sequence == 0}
	if a.json {
		return a.printJSON(out)
	}
	switch {
	case out.Package:
		err = a.say("the service runs the package's program; this is %s", out.Version)
	case out.Proven:
		err = a.say("the service runs %s, an update", s.InUse.Version)
	default:
		err = a.say("the service runs %s, an update that is still on trial", s.InUse.Version)
	}
	if out.Failed != "" {
		err = errors.Join(err, a.say("%s failed and was rolled back", out.Failed))
	}
	if out.Waits {
		err = errors.Join(err, a.say("an update is ready: sudo systemctl restart agentsite installs it"))
	}
	if out.Keys == 0 {
		err = errors.Join(err, errors.New("this build has no release keys and accepts no updates"))
	}
	return err
}
