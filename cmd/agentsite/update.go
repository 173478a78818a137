package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"agentsite/cmd/internal/ops"
	"agentsite/node/update"

	"github.com/spf13/cobra"
)

// sequence, releaseKeys and releases are set when a release is built, beside version. They are its
// number among all releases, the two keys, did:key:…,did:key:…, either of which signs the next
// releases, and the base URL of the channels and updates.
var sequence, releaseKeys, releases string

// exitNewer is the exit code of update --check where the channel has a newer version.
const exitNewer = 10

type updateFlags struct{ check, later, back, settle, install bool }

type updateResult struct {
	Version string `json:"version"` // "" for the package's program
	State   string `json:"state"`   // newer, newest, waits or in_use
	Channel string `json:"channel,omitzero"`
	Size    int64  `json:"size,omitzero"` // of the download, in bytes
}

func (a *app) updateCommand() *cobra.Command {
	var o ops.UpdateOptions
	var f updateFlags
	cmd := &cobra.Command{
		Use: "update [FILE|ADDRESS]", GroupID: groupOwner,
		Short: "Install a newer version; it rolls back by itself if it fails",
		Long: `Install the newest version of the channel, or an update from a file or an address. The
command verifies that the update is signed, for this board, and newer than all installed
versions. As the superuser it then restarts the service; otherwise the update is installed
at the next start. If the new version does not run well for 15 s, the old one is back
within 90 s. During the restart outputs go to their safe values.

Updates are never installed automatically. Run the command as the superuser, or as the
service's user with sudo -u agentsite.

The channel is stable, or beta for versions that are tried out. The superuser's choice with
--channel or --releases stays. With --back, the superuser goes back to the version before.

With --check, install nothing: show the installed version, and verify the update or ask the
channel. The exit code is 10 if the channel has a newer version.`,
		Example: `  sudo agentsite update
  agentsite update --check
  sudo agentsite update --channel beta
  sudo agentsite update --back
  sudo agentsite update https://example.org/agentsite-linux-arm64.update`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
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
			ofChannel := o.Channel != "" || o.Name != "" || o.Version != ""
			if ofChannel && len(args) > 0 {
				return usagef(
					"--channel, --releases and --version choose from a channel: leave them or the %s out", "FILE or ADDRESS",
				)
			}
			if f.back && (f.check || ofChannel || len(args) > 0) {
				return usagef("--back goes to the version before: leave out --check, the channel and the FILE or ADDRESS")
			}
			if o.Release, err = ops.NewRelease(version, sequence, releaseKeys); err != nil {
				return err
			}
			o.Release.Base = releases
			if len(args) > 0 {
				o.From = args[0]
			}
			show, done := a.progress()
			defer done()
			switch {
			case f.settle:
				return a.settleUpdate(o)
			case f.install:
				return a.installUpdate(o)
			case f.back:
				return a.goBack(cmd.Context(), o, f.later)
			case f.check && o.From == "":
				return a.checkChannel(cmd.Context(), o)
			case f.check:
				show("reading and verifying the update")
				r, err := ops.CheckUpdate(cmd.Context(), o)
				if done(); err != nil {
					return err
				}
				return a.print(updateResult{Version: r.Version, State: "newer"}, "%s is valid: newer than the installed version, "+
					"and for this board", r.Version)
			case o.From == "":
				return a.updateFromChannel(cmd.Context(), o, f.later)
			}
			show("reading and verifying the update")
			r, err := ops.StageUpdate(cmd.Context(), o)
			if err != nil {
				return err
			}
			done()
			return a.useUpdate(cmd.Context(), o, r, f.later)
		},
		ValidArgsFunction: oneFile,
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.check, "check", false, "verify only")
	flags.BoolVar(&f.later, "later", false, "do not restart the service")
	flags.BoolVar(&f.back, "back", false, "go back to the version before")
	flags.StringVar(&o.Name, "channel", "", "the `NAME` of the channel: stable or beta")
	flags.StringVar(&o.Channel, "releases", "", "the base `URL` of the releases")
	flags.StringVar(&o.Version, "version", "", "this `VERSION` of the channel, and not its newest")
	flags.BoolVar(&f.settle, "settle", false, "")
	flags.BoolVar(&f.install, "install", false, "")
	flags.StringVar(&o.Folder, "folder", "", "")
	for _, name := range []string{"settle", "install", "folder"} { // for the unit, and tests
		flags.MarkHidden(name)
	}
	return cmd
}

// updateFromChannel installs what the channel offers, and remembers the superuser's choice of it.
func (a *app) updateFromChannel(ctx context.Context, o ops.UpdateOptions, later bool) error {
	offer, err := ops.FindUpdate(ctx, o)
	if err != nil {
		return err
	}
	if os.Geteuid() == 0 && (o.Name != "" || o.Channel != "") {
		if err := ops.FollowChannel(o, offer); err != nil {
			return err
		}
	}
	if offer.Old != nil && o.Version == "" {
		return a.print(updateResult{Version: version, State: "newest", Channel: offer.Channel},
			"nothing newer than %s is in the channel %s", version, offer.Channel)
	}
	if offer.Old == nil && !a.json {
		if err := a.say(
			"%s is new in the channel %s: %s", offer.Version, offer.Channel, byteSize(float64(offer.Size)),
		); err != nil {
			return err
		}
	}
	show, end := a.progress()
	percent := int64(-1)
	o.Progress = func(done, size int64) {
		if now := 100 * done / max(1, size); now != percent {
			percent = now
			show("%s: %d %%", offer.Version, percent)
		}
	}
	r, err := ops.StageOffer(ctx, o, offer)
	end()
	if err != nil {
		return err
	}
	return a.useUpdate(ctx, o, r, later)
}

// useUpdate restarts the service with a staged update, or says how to.
func (a *app) useUpdate(ctx context.Context, o ops.UpdateOptions, r update.Release, later bool) error {
	if later || os.Geteuid() != 0 {
		return a.print(updateResult{Version: r.Version, State: "waits"}, "%s is ready: "+
			"sudo systemctl restart agentsite installs it", r.Version)
	}
	restart := func() error { return ops.RestartService(ctx, o, r) }
	if err := a.during("restarting the service with "+r.Version+", which has to run well for 15 s", restart); err != nil {
		return err
	}
	return a.print(updateResult{Version: r.Version, State: "in_use"}, "%s is running", r.Version)
}

// goBack returns to the version before.
func (a *app) goBack(ctx context.Context, o ops.UpdateOptions, later bool) error {
	to, err := ops.RequestBack(o)
	if err != nil {
		return err
	}
	name := cmp.Or(to.Version, "the package's program")
	if later {
		return a.print(updateResult{Version: to.Version, State: "waits"}, "the next start goes back to %s: "+
			"sudo systemctl restart agentsite", name)
	}
	restart := func() error { return ops.RestartService(ctx, o, to) }
	if err := a.during("restarting the service with "+name+", which has to run well for 15 s", restart); err != nil {
		return err
	}
	return a.print(updateResult{Version: to.Version, State: "in_use"}, "%s is running again", name)
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
	did, err := ops.InstallUpdate(o)
	if err != nil || did == "" {
		return err
	}
	return a.say("%s", did)
}

type updatesResult struct {
	Version string `json:"version"`          // of this program
	Before  string `json:"before,omitzero"`  // the version before, the fallback
	Failed  string `json:"failed,omitzero"`  // the last version that failed
	Proven  bool   `json:"proven"`           // the version has run well
	Waits   bool   `json:"waits"`            // an update is installed at the service's next start
	Keys    int    `json:"keys"`             // the number of release keys that are trusted
	Package bool   `json:"package,omitzero"` // the program in use is the package's
	Channel string `json:"channel,omitzero"` // the channel that was asked
	Newest  string `json:"newest,omitzero"`  // the version that it offers
	Newer   bool   `json:"newer,omitzero"`   // newest would be installed
	Size    int64  `json:"size,omitzero"`    // of its download, in bytes
}

// checkChannel prints the installed version, and what the channel offers, if there is one.
func (a *app) checkChannel(ctx context.Context, o ops.UpdateOptions) error {
	if !o.Installed() {
		return a.print(updatesResult{Version: version, Keys: len(o.Release.Keys)}, "this is %s, not installed from agentsite's package: replace the program to update it", version)
	}
	s, err := ops.ReadUpdateStatus(o)
	if err != nil {
		return err
	}
	out := updatesResult{Version: version, Before: s.Before.Version, Failed: s.Failed.Version,
		Proven: s.Proven, Waits: s.Waits,
		Keys: len(o.Release.Keys), Package: s.InUse.Sequence == 0}
	if !a.json {
		if err := a.showUpdates(out, s.InUse.Version); err != nil {
			return err
		}
	}
	o.CheckOnly = true
	offer, asked := ops.FindUpdate(ctx, o)
	if errors.Is(asked, ops.ErrNoChannel) {
		asked = nil
	}
	if asked == nil && offer.Channel != "" {
		out.Channel, out.Newest, out.Newer, out.Size = offer.Channel, offer.Version, offer.Old == nil, offer.Size
	}
	switch {
	case a.json:
		err = a.printJSON(out)
	case out.Newer:
		err = a.say("%s is new in the channel %s: %s", out.Newest, out.Channel, byteSize(float64(out.Size)))
	case out.Channel != "":
		err = a.say("nothing newer is in the channel %s", out.Channel)
	}
	if err = errors.Join(err, asked); err == nil && out.Newer {
		return coded{exitNewer, fmt.Errorf("sudo agentsite update installs %s", out.Newest)}
	}
	return err
}

// showUpdates prints the installed version. used is the version of the update in use.
func (a *app) showUpdates(out updatesResult, used string) (err error) {
	switch {
	case out.Package:
		err = a.say("the service runs the package's program; this is %s", out.Version)
	case out.Proven:
		err = a.say("the service runs %s, an update", used)
	default:
		err = a.say("the service runs %s, an update that is still on trial", used)
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
