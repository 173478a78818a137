package ops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
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

// Release identifies this build and the releases that it takes for newer ones.
type Release struct {
	Version      string
	update.Rules // with the sequence 0 in a build that is no release
}

// NewRelease parses the values that a build was given: a number, and keys as did:key with
// commas between.
func NewRelease(version, sequence, keys string) (Release, error) {
	rules, err := update.NewRules(update.Target(), sequence, keys)
	if err != nil {
		err = fmt.Errorf("this program was built with a wrong sequence or key of releases: %w", err)
	}
	return Release{version, rules}, err
}

// UpdateOptions are the options of the functions that update this program.
type UpdateOptions struct {
	Release Release
	Folder  string // instead of update.Folder, for tests
	From    string // a file, or an address that begins with https:// or http://
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
	// Plain HTTP too: the update is signed, and an eavesdropper learns only its name.
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.From, nil)
	if err != nil {
		return nil, state.Mistake{Err: err}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("the update cannot be downloaded: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		res.Body.Close()
		return nil, state.Mistakef("there is no update at %s: the server answers %s", o.From, res.Status)
	}
	return res.Body, nil
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
		return update.Release{}, state.Mistakef("this program was not installed from agentsite's package and cannot update itself: replace it by a newer one")
	}
	p := o.programs()
	from, err := o.open(ctx)
	if err != nil {
		return update.Release{}, err
	}
	defer from.Close()
	r, err := with(p, from)
	var refused update.Refused
	switch {
	case errors.As(err, &refused):
		err = state.Mistakef("%s is refused: %w", o.From, err)
	case errors.Is(err, fs.ErrPermission):
		err = fmt.Errorf("%w; run this as the service's user or the superuser, with sudo -u agentsite or sudo", err)
	}
	return r, err
}

// StageUpdate fetches and verifies an update and keeps it for the service's next start. It
// blocks for the download.
func StageUpdate(ctx context.Context, o UpdateOptions) (update.Release, error) {
	return o.take(ctx, func(p update.Programs, r io.Reader) (update.Release, error) { return p.Stage(r, o.Release.Rules) })
}

// CheckUpdate verifies an update's signature, board and age, and keeps nothing. It does not
// read the program.
func CheckUpdate(ctx context.Context, o UpdateOptions) (update.Release, error) {
	return o.take(ctx, func(p update.Programs, r io.Reader) (update.Release, error) {
		u, err := p.Check(r, o.Release.Rules)
		if err != nil {
			return update.Release{}, err
		}
		return u.Release, nil
	})
}

// UpdateStatus is the state of this board's updates.
type UpdateStatus struct {
	update.State
	Proven bool // the program in use has proven itself
	Waits  bool // an update waits for the service's next start
}

// ReadUpdateStatus reads the state of this board's updates. Without the package it is the
// zero one.
func ReadUpdateStatus(o UpdateOptions) (UpdateStatus, error) {
	p := o.programs()
	s, err := p.State()
	return UpdateStatus{s, !s.Trial || p.Proven(s), p.Waits()}, err
}

// RestartService makes the service manager restart the service, and blocks until the release
// has proven itself there, at most three minutes. The error says how it ended instead.
func RestartService(ctx context.Context, o UpdateOptions, r update.Release) error {
	if said, err := exec.CommandContext(ctx, "systemctl", "restart", "--no-block", restartUnit).CombinedOutput(); err != nil {
		return fmt.Errorf("%s is ready, but the service cannot be restarted (%w): %s", r.Version, err, strings.TrimSpace(string(said)))
	}
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	const hint = "; journalctl -u agentsite -u agentsite-prepare shows why"
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

// SettleUpdate decides which program the service runs, and returns its actions, a line each. The
// package's program calls it, as the superuser, before the service starts.
func SettleUpdate(o UpdateOptions) ([]string, error) { return o.programs().Settle(o.Release.Sequence) }

// InstallUpdate puts the waiting update in use and returns it; nil when none waits. The
// program in use calls it, as the superuser, after SettleUpdate.
func InstallUpdate(o UpdateOptions) (*update.Release, error) {
	return o.programs().Install(o.Release.Rules)
}
