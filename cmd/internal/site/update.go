package site

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"agentsite/node/state"
	updates "agentsite/node/update"
)

const (
	// UpdateFolder and packageProgram are where the package puts them, and restartUnit what
	// it calls the service.
	UpdateFolder   = "/var/lib/agentsite-update"
	packageProgram = "/usr/lib/agentsite/agentsite"
	packageLink    = "/usr/bin/agentsite" // to the program in use
	restartUnit    = "agentsite.service"

	// proofTime is how long a program is up before it says that it is well. Before, the units
	// give it 65 s to come up, so that one that is not well is gone within 90.
	proofTime = 15 * time.Second
	// fetchPatience bounds a download, which is 30 MB.
	fetchPatience = 30 * time.Minute
	// trialPatience is until an update is proven or gone: stopping, 90 s, and starting again.
	trialPatience = 3 * time.Minute
)

// Release is which one this build is, and whose releases it takes for newer ones.
type Release struct {
	Version       string
	updates.Rules // with the sequence 0 in a build that is no release
}

// NewRelease reads what a build was given: a number, and keys as did:key with commas between.
func NewRelease(version, sequence, keys string) (Release, error) {
	rules, err := updates.NewRules(updates.Target(), sequence, keys)
	if err != nil {
		err = fmt.Errorf("this program was built with a wrong sequence or key of releases: %w", err)
	}
	return Release{version, rules}, err
}

// UpdateOptions are what update is told.
type UpdateOptions struct {
	Release Release
	Folder  string // instead of UpdateFolder, for tests
	From    string // a file, or an address that begins with https:// or http://
}

func (o UpdateOptions) programs() updates.Programs {
	p := updates.Programs{Dir: UpdateFolder, Package: packageProgram}
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
	// Plain HTTP too: what comes is signed, and whoever is in between learns its name only.
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.From, nil)
	if err != nil {
		return nil, state.Mistake{Err: err}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("the update is not reached: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		res.Body.Close()
		return nil, state.Mistakef("there is no update at %s: it answers %s", o.From, res.Status)
	}
	return res.Body, nil
}

// Installed reports whether agentsite's package is installed here, whose folder of programs
// updates go into.
func (o UpdateOptions) Installed() bool {
	_, err := os.Stat(o.programs().Dir)
	return err == nil
}

// take reads the update that the options name.
func (o UpdateOptions) take(ctx context.Context, with func(updates.Programs, io.Reader) (updates.Release, error)) (updates.Release, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchPatience)
	defer cancel()
	if !o.Installed() {
		return updates.Release{}, state.Mistakef("this program was not installed by agentsite's package, so it cannot update itself: put the newer one in its place")
	}
	p := o.programs()
	from, err := o.open(ctx)
	if err != nil {
		return updates.Release{}, err
	}
	defer from.Close()
	r, err := with(p, from)
	var refused updates.Refused
	switch {
	case errors.As(err, &refused):
		err = state.Mistakef("%s is not taken: %w", o.From, err)
	case errors.Is(err, fs.ErrPermission):
		err = fmt.Errorf("%w: run it as the service's user or the superuser, with sudo -u agentsite or sudo", err)
	}
	return r, err
}

// StageUpdate fetches and verifies an update and keeps it for the service's next start,
// which is when it is used.
func StageUpdate(ctx context.Context, o UpdateOptions) (updates.Release, error) {
	return o.take(ctx, func(p updates.Programs, r io.Reader) (updates.Release, error) { return p.Stage(r, o.Release.Rules) })
}

// CheckUpdate verifies who signed an update and whether it is for this board and newer, and
// keeps nothing. It does not read the program.
func CheckUpdate(ctx context.Context, o UpdateOptions) (updates.Release, error) {
	return o.take(ctx, func(p updates.Programs, r io.Reader) (updates.Release, error) {
		u, err := p.Check(r, o.Release.Rules)
		if err != nil {
			return updates.Release{}, err
		}
		return u.Release, nil
	})
}

// Updated is what is known of the updates of this board.
type Updated struct {
	updates.State
	Proven bool // the program in use has said that it is well
	Waits  bool // an update waits for the service's next start
}

// UpdateState reads it. Without the package there are none.
func UpdateState(o UpdateOptions) (Updated, error) {
	p := o.programs()
	s, err := p.State()
	return Updated{s, !s.Trial || p.Proven(s), p.Waits()}, err
}

// RestartService has the service manager start the service again, and blocks until the
// release has proven itself there. The error says how it ended instead.
func RestartService(ctx context.Context, o UpdateOptions, r updates.Release) error {
	if said, err := exec.CommandContext(ctx, "systemctl", "restart", "--no-block", restartUnit).CombinedOutput(); err != nil {
		return fmt.Errorf("%s waits, but the service cannot be restarted (%w): %s", r.Version, err, strings.TrimSpace(string(said)))
	}
	ctx, cancel := context.WithTimeout(ctx, trialPatience)
	defer cancel()
	const lookAt = "; journalctl -u agentsite -u agentsite-prepare says why"
	for tried := false; ; {
		now, err := UpdateState(o)
		switch used := now.InUse.Sequence == r.Sequence; {
		case err != nil:
			return err
		case used && now.Proven:
			return nil
		case tried && !used:
			return fmt.Errorf("%s was not well, and what ran before runs again"+lookAt, r.Version)
		default:
			tried = used
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s waits or is on trial: nobody has seen it run well yet"+lookAt, r.Version)
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// SettleUpdate decides which program the service runs, and says what it did. The package's
// program calls it, as the superuser, before the service starts.
func SettleUpdate(o UpdateOptions) ([]string, error) { return o.programs().Settle(o.Release.Sequence) }

// InstallUpdate puts the update that waits in use, and returns it; nil for none. The program
// in use calls it, as the superuser, after SettleUpdate.
func InstallUpdate(o UpdateOptions) (*updates.Release, error) {
	return o.programs().Install(o.Release.Rules)
}

// vouch says that this program is well, where it is an update, once it was up for a while
// and its outputs are driven.
func vouch(ctx context.Context, alive func(context.Context) error) {
	path, err := os.Executable()
	programs, sequence := updates.ProgramsOf(path)
	if err != nil || sequence == 0 {
		return
	}
	select {
	case <-ctx.Done():
		return
	case <-time.After(proofTime):
	}
	err = alive(ctx)
	if err == nil {
		err = programs.Prove(sequence)
	}
	if err != nil && ctx.Err() == nil {
		slog.Error("this version cannot say that it is well; the one before it is started the next time", "err", err)
	}
}

// called is the path of this program that stays right after an update.
func called() string {
	path, err := os.Executable()
	if err != nil {
		return "agentsite"
	}
	if _, sequence := updates.ProgramsOf(path); sequence > 0 || path == packageProgram {
		return packageLink
	}
	return path
}
