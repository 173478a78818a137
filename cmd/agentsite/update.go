package main

import (
	"errors"
	"fmt"
	"os"

	"agentsite/cmd/internal/ops"

	"github.com/spf13/cobra"
)

// sequence and releaseKeys are set when a release is built, beside version: its number among
// all releases, and the two keys, did:key:…,did:key:…, either of which signs the next ones.
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
		Short: "Put a newer version of this program in use, which goes again if it is not well",
		Long: `Fetch an update, verify who signed it, that it is for this board and newer than all that
was here, and keep it for the service's next start. As the superuser the service is
restarted at once. The new version is used from then on if it comes up and is well for
15 s; otherwise, within 90 s, the one before it is back. Outputs go to their safe values
in between, as at every restart.

Nothing is ever fetched or installed unless this command is run. Without the superuser's
rights it needs those of the service's user: sudo -u agentsite.

With --check nothing is kept: it says whether the update would be taken, or without one
what runs here.`,
		Example: "  sudo agentsite update https://example.org/agentsite-linux-arm64.update\n  agentsite update --check",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && (f.check || f.settle || f.install) {
				return nil
			}
			return exactly("FILE or ADDRESS")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := a.local("update"); err != nil {
				return err
			}
			if f.check && f.later {
				return usagef("--check installs nothing that could be left for later: leave out one of the two")
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
				return a.updated(updateResult{r.Version, "newer"}, r.Version+" is newer than what runs here, and for this board")
			}
			r, err := ops.StageUpdate(cmd.Context(), o)
			if err != nil {
				return err
			}
			if f.later || os.Geteuid() != 0 {
				return a.updated(updateResult{r.Version, "waits"}, r.Version+" waits: sudo systemctl restart agentsite starts it")
			}
			if err := ops.RestartService(cmd.Context(), o, r); err != nil {
				return err
			}
			return a.updated(updateResult{r.Version, "in_use"}, r.Version+" is in use")
		},
		ValidArgsFunction: oneFile,
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.check, "check", false, "say what would be done, and do nothing")
	flags.BoolVar(&f.later, "later", false, "leave the restart to you")
	flags.BoolVar(&f.settle, "settle", false, "")
	flags.BoolVar(&f.install, "install", false, "")
	flags.StringVar(&o.Folder, "folder", "", "")
	for _, name := range []string{"settle", "install", "folder"} { // for the unit, and tests
		flags.MarkHidden(name)
	}
	return cmd
}

func (a *app) updated(r updateResult, sentence string) error {
	if a.json {
		return a.printJSON(r)
	}
	return a.say("%s", sentence)
}

// settleUpdate is what the package's program does before the service starts.
func (a *app) settleUpdate(o ops.UpdateOptions) error {
	did, err := ops.SettleUpdate(o)
	for _, line := range did {
		err = errors.Join(err, a.say("%s", line))
	}
	return err
}

// installUpdate is what the program in use does then.
func (a *app) installUpdate(o ops.UpdateOptions) error {
	r, err := ops.InstallUpdate(o)
	if err != nil || r == nil {
		return err
	}
	return a.say("%s is installed and on trial", r.Version)
}

type updatesResult struct {
	Version string `json:"version"`          // of this program
	Before  string `json:"before,omitzero"`  // what is started where it is damaged
	Failed  string `json:"failed,omitzero"`  // the last that was not well
	Proven  bool   `json:"proven"`           // it has said that it is well
	Waits   bool   `json:"waits"`            // an update waits for the service's next start
	Keys    int    `json:"keys"`             // whose releases this program takes
	Package bool   `json:"package,omitzero"` // the program in use is the package's
}

// showUpdates says what runs here.
func (a *app) showUpdates(o ops.UpdateOptions) error {
	if !o.Installed() {
		if a.json {
			return a.printJSON(updatesResult{Version: version, Keys: len(o.Release.Keys)})
		}
		return a.say("this is %s, which was not installed by agentsite's package: to update it, put a newer program in its place", version)
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
		err = a.say("the service runs %s, an update that has yet to show that it is well", s.InUse.Version)
	}
	if out.Failed != "" {
		err = errors.Join(err, a.say("%s did not prove itself, and was taken away again", out.Failed))
	}
	if out.Waits {
		err = errors.Join(err, a.say("an update waits: sudo systemctl restart agentsite starts it"))
	}
	if out.Keys == 0 {
		err = errors.Join(err, fmt.Errorf("this build has no keys of releases in it and takes no updates"))
	}
	return err
}
