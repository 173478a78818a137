package ops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/node/state"
	"agentsite/node/update"
)

const (
	restartUnit = "agentsite.service" // as the package calls the service
	// downloadTimeout bounds a download, which is 30 MB.
	downloadTimeout = 30 * time.Minute
	// trialTimeout bounds the wait until an update is proven or replaced: stopping, 90 s, and
	// starting again.
	trialTimeout = 3 * time.Minute
)

// release identifies this build and the releases that it takes for newer ones.
type release struct {
	Version      string
	update.Rules        // with the sequence 0 in a build that is no release
	Base         string // the base URL of the releases; "" in a build for none
}

// NewRelease parses the values that a build was given: a number, and keys as did:key with
// commas between.
func NewRelease(version, sequence, keys string) (release, error) {
	rules, err := update.NewRules(update.Target(), sequence, keys)
	if err != nil {
		err = fmt.Errorf("this program was built with a wrong sequence or key of releases: %w", err)
	}
	return release{Version: version, Rules: rules}, err
}

// UpdateOptions are the options of the functions that update this program.
type UpdateOptions struct {
	Release release
	Folder  string // instead of update.Folder, for tests
	From    string // a file, or an address that begins with https:// or http://; "" for the channel

	// Of the channel; "" means as the superuser chose, and else as the program was built.
	Channel string // the base URL of the releases
	Name    string // stable or beta
	Version string // of a release in it; "" means the newest
	// Progress is called during a download from the channel.
	Progress func(done, size int64)

	CheckOnly bool // nothing is kept, and so the caller needs no permission
}

func (o UpdateOptions) programs() update.Programs {
	p := update.Programs{Dir: update.Folder, Package: update.PackageProgram}
	if o.Folder != "" {
		p.Dir = o.Folder
	}
	return p
}

// open opens the update that the options name.
func (o UpdateOptions) open(ctx context.Context) (io.ReadCloser, error) {
	if !strings.HasPrefix(o.From, "https://") && !strings.HasPrefix(o.From, "http://") {
		f, err := os.Open(o.From)
		if err != nil {
			return nil, state.Mistake{Err: err}
		}
		return f, nil
	}
	return download(ctx, o.From)
}

// Installed reports whether agentsite's package is installed here. Updates go into its folder
// of programs.
func (o UpdateOptions) Installed() bool {
	_, err := os.Stat(o.programs().Dir)
	return err == nil
}

// take opens the update that the options name and passes it to with.
func (o UpdateOptions) take(ctx context.Context, with func(update.Programs, io.Reader) (update.Release, error)) (update.Release, error) {
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	if !o.Installed() {
		return update.Release{}, errNotPackaged
	}
	p := o.programs()
	from, err := o.open(ctx)
	if err != nil {
		return update.Release{}, err
	}
	defer from.Close()
	r, err := with(p, from)
	return r, explainUpdate(o.From, err)
}

var errNotPackaged = state.Mistakef("this program was not installed from agentsite's package and cannot update " +
	"itself: replace it by a newer one")

// explainUpdate adds to an error of the update at from what the user can do about it.
func explainUpdate(from string, err error) error {
	var refused update.Refused
	switch {
	case errors.As(err, &refused):
		return state.Mistakef("%s is refused: %w", from, err)
	case isPermission(err):
		return fmt.Errorf("%w; run this as the service's user or the superuser, with sudo -u agentsite or sudo", err)
	}
	return err
}

func isPermission(err error) bool { return errors.Is(err, fs.ErrPermission) }

// StageUpdate fetches and verifies an update and keeps it for the service's next start. It
// blocks for the download. A running site may call it: its user stages into the inbox.
func StageUpdate(ctx context.Context, o UpdateOptions) (update.Release, error) {
	if o.From == "" {
		offer, err := FindUpdate(ctx, o)
		if err != nil {
			return update.Release{}, err
		}
		return StageOffer(ctx, o, offer)
	}
	return o.take(ctx, func(p update.Programs, r io.Reader) (update.Release, error) { return p.Stage(r, o.Release.Rules) })
}

// CheckUpdate verifies an update's signature, board and age, and keeps nothing. It does not
// read the program. Of a channel it reads no update: FindUpdate says more.
func CheckUpdate(ctx context.Context, o UpdateOptions) (update.Release, error) {
	if o.From == "" {
		offer, err := FindUpdate(ctx, o)
		if err == nil && offer.Old != nil {
			err = explainUpdate(offer.URL, offer.Old)
		}
		return update.Release{Version: offer.Version, Sequence: offer.Sequence, Target: o.Release.Target}, err
	}
	return o.take(ctx, func(p update.Programs, r io.Reader) (update.Release, error) {
		u, err := p.Check(r, o.Release.Rules)
		if err != nil {
			return update.Release{}, err
		}
		return u.Release, nil
	})
}

// updateStatus is the state of this board's updates.
type updateStatus struct {
	update.State
	Proven bool // the program in use has proven itself
	Waits  bool // an update waits for the service's next start
}

// ReadUpdateStatus reads the state of this board's updates. Without the package it is the
// zero one.
func ReadUpdateStatus(o UpdateOptions) (updateStatus, error) {
	p := o.programs()
	s, err := p.State()
	return updateStatus{s, !s.Trial || p.Proven(s), p.Waits()}, err
}

// RestartService makes the service manager restart the service, and blocks until the release
// has proven itself there, at most three minutes. The zero Release stands for the package's program.
// The error says how it ended instead.
func RestartService(ctx context.Context, o UpdateOptions, r update.Release) error {
	if said, err := exec.CommandContext(ctx, "systemctl", "restart", "--no-block", restartUnit).CombinedOutput(); err != nil {
		return fmt.Errorf("%s is ready, but the service cannot be restarted (%w): %s", r.Version, err, strings.TrimSpace(string(said)))
	}
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	const hint = "; journalctl -u agentsite -u agentsite-prepare shows why"
	if r.Sequence == 0 { // the package's program, which needs no proof
		for exec.CommandContext(ctx, "systemctl", "--quiet", "is-active", restartUnit).Run() != nil || !packageRuns(o) {
			if device.Sleep(ctx, 300*time.Millisecond) != nil {
				return errors.New("the package's program has not started well yet" + hint)
			}
		}
		return nil
	}
	for tried := false; ; {
		now, err := ReadUpdateStatus(o)
		switch used := now.InUse.Sequence == r.Sequence; {
		case err != nil:
			return err
		case used && now.Proven:
			return nil
		case tried && !used:
			return fmt.Errorf("%s failed, and the old version runs again"+hint, r.Version)
		default:
			tried = used
		}
		if device.Sleep(ctx, 300*time.Millisecond) != nil {
			return fmt.Errorf("%s is ready or on trial, and has not run well yet"+hint, r.Version)
		}
	}
}

func packageRuns(o UpdateOptions) bool {
	s, err := ReadUpdateStatus(o)
	return err == nil && s.InUse.Sequence == 0
}

// SettleUpdate decides which program the service runs, and returns its actions, a line each. The
// package's program calls it, as the superuser, before the service starts.
func SettleUpdate(o UpdateOptions) ([]string, error) { return o.programs().Settle(o.Release.Sequence) }

// InstallUpdate goes back to the version before, where the superuser requested that, or else puts the
// waiting update in use. It returns what it did, "" for nothing. The program in use calls it, as the
// superuser, after SettleUpdate.
func InstallUpdate(o UpdateOptions) (did string, err error) {
	p := o.programs()
	switch back, err := p.GoBack(); {
	case err != nil:
		return "", err
	case back != nil && back.Sequence == 0:
		return "the package's program is in use again", nil
	case back != nil:
		return back.Version + " is in use again and on trial", nil
	}
	r, err := p.Install(o.Release.Rules)
	if r == nil {
		return "", err
	}
	return r.Version + " is installed and on trial", err
}

// RequestBack has the service's next start use the version before, and returns it: the zero Release
// for the package's program. Only the superuser may.
func RequestBack(o UpdateOptions) (update.Release, error) {
	if !o.Installed() {
		return update.Release{}, errNotPackaged
	}
	to, err := o.programs().Back()
	if refused := (update.Refused{}); errors.As(err, &refused) {
		return update.Release{}, state.Mistake{Err: err}
	}
	if isPermission(err) {
		err = fmt.Errorf("%w; only the superuser may go back: use sudo", err)
	}
	return update.Release{Version: to.Version, Sequence: to.Sequence}, err
}
