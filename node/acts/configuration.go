package acts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unicode/utf8"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/device"
	"agentsite/node/config"
	"agentsite/node/rollback"
	"agentsite/node/state"
)

// The operations on the configuration's file.
const (
	ConfigurationAct op.Name[None, Configuration]             = "owner/configuration" // answers its text
	CheckAct         op.Name[NewConfiguration, Checked]       = "owner/check"         // checks a text, and changes nothing
	ConfigureAct     op.Name[NewConfiguration, Configuration] = "owner/configure"     // replaces the text and reads it
)

// Configuration is the configuration's file as it is.
type Configuration struct {
	File   string `json:"file"` // its absolute path
	Text   string `json:"text"`
	Digest string `json:"digest"` // SHA-256 of the text, in hexadecimal
}

// NewConfiguration is the request of CheckAct and ConfigureAct.
type NewConfiguration struct {
	Text string `json:"text"`
	// Digest, of ConfigureAct, is that of the text which this one replaces.
	Digest string `json:"digest,omitzero"`
	// Well, of ConfigureAct, puts the text before back also where a device is missing, or an output does
	// not follow, after the change.
	Well bool `json:"well,omitzero"`
	// Trial, of ConfigureAct, is the length of the trial in seconds. At its end the text before is put back, unless an
	// owner has confirmed the new one and the site is well.
	Trial float64 `json:"trial_seconds,omitzero"`
	// Restart permits a change that needs a restart of the site. ConfigureAct makes it on trial only.
	Restart bool `json:"restart,omitzero"`
}

// Checked answers CheckAct.
type Checked struct {
	Mistakes []Mistake `json:"mistakes"` // none: the site would take it
	Warnings []string  `json:"warnings,omitzero"`
	Restart  string    `json:"restart,omitzero"` // what needs a restart
}

// Mistake is one mistake in a configuration, with its remedy.
type Mistake struct {
	Line   int    `json:"line,omitzero"` // from 1; 0 for the file as a whole
	Column int    `json:"column,omitzero"`
	Says   string `json:"says"`
}

func (s *Site) aboutConfiguration() []op.Row {
	return []op.Row{
		op.ForOwners(ConfigurationAct, agents.Reads, "config", "Answer the text of the configuration.",
			func(context.Context, agents.Principal, None) (Configuration, error) { return s.configuration() }),
		op.ForOwners(CheckAct, agents.Reads, "config check", "Check a configuration without using it.", s.check),
		op.ForOwners(ConfigureAct, agents.Acts, "config replace",
			"Replace the configuration; one that the site does not take is rolled back.", s.configure),
	}
}

func (s *Site) configuration() (c Configuration, err error) {
	if s.Configuration == "" {
		return c, device.Faultf(device.Invalid,
			"the demonstration has no file: write %s and start with it", config.DefaultFile)
	}
	info, err := os.Stat(s.Configuration)
	if err == nil && !info.Mode().IsRegular() { // to read a pipe would block
		err = fmt.Errorf("%s is no file that stays: start the site with one", s.Configuration)
	}
	var text []byte
	if err == nil {
		_, text, err = config.ReadFile(s.Configuration)
	}
	if err == nil && (len(text) > config.MaxBytes || !utf8.Valid(text)) {
		err = fmt.Errorf("%s is no text of at most %d bytes", s.Configuration, config.MaxBytes)
	}
	if err != nil {
		return c, device.Faultf(device.Unavailable, "%w", err)
	}
	return Configuration{s.Configuration, string(text), Digest(text)}, nil
}

// Digest returns the digest of a configuration.
func Digest(text []byte) string { return rollback.Digest(text) }

func (s *Site) check(ctx context.Context, _ agents.Principal, c NewConfiguration) (Checked, error) {
	warnings, err := s.Check(ctx, []byte(c.Text))
	if unchecked(err) {
		return Checked{}, err
	}
	out := Checked{}
	if errors.Is(err, config.ErrRestart) {
		out.Restart = device.AsFault(err).Error()
		if c.Restart {
			err = nil
		}
	}
	out.Mistakes = MistakesOf(err)
	for _, w := range warnings {
		out.Warnings = append(out.Warnings, w.Error())
	}
	return out, nil
}

// unchecked reports whether a check failed for another reason than a mistake: the site ends, or the
// caller has left.
func unchecked(err error) bool {
	f, ok := errors.AsType[*device.Fault](err)
	return ok && f.Kind == device.Unavailable || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)
}

// MistakesOf returns the mistakes that an error joins.
func MistakesOf(err error) []Mistake {
	all := []Mistake{}
	switch joined := err.(type) {
	case nil:
	case interface{ Unwrap() []error }:
		for _, e := range joined.Unwrap() {
			all = append(all, MistakesOf(e)...)
		}
	case *config.Error:
		all = append(all, Mistake{joined.Line, joined.Column, joined.Err.Error()})
	default:
		all = append(all, Mistake{Says: err.Error()})
	}
	return all
}

// configure replaces the configuration's text and reads it. A text with mistakes, or one that needs a
// restart, changes nothing: the file is then as it was. The text before is kept beside the file, with
// .before at its name.
func (s *Site) configure(ctx context.Context, who agents.Principal, c NewConfiguration) (Configuration, error) {
	s.Configuring.Lock()
	defer s.Configuring.Unlock()
	_, err := s.Check(ctx, []byte(c.Text))
	restart := errors.Is(err, config.ErrRestart)
	switch {
	case restart && c.Restart:
	case unchecked(err):
		return Configuration{}, err
	case err != nil:
		return Configuration{}, mistake(err)
	}
	switch tried := c.Trial != 0; {
	case tried && s.Trials == nil || !tried && c.Restart:
		return Configuration{}, device.Faultf(device.Invalid, "trial_seconds: a restart is made on trial, and by a site "+
			"with a file")
	case s.Trials != nil && s.Trials.Running():
		return Configuration{}, rollback.ErrRuns
	}
	c.Restart = restart
	old, err := s.configuration() // after the check, which takes its time
	switch {
	case err != nil:
		return old, err
	case c.Digest != old.Digest:
		return old, errDigest
	}
	err = s.Node.Own(who, "configure", Digest([]byte(c.Text)), func() error { return s.replace(ctx, who, old, c) })
	if err != nil {
		return old, err
	}
	return s.configuration()
}

var errDigest = device.Faultf(device.Invalid,
	"digest: it is not that of the configuration as it is now, which somebody may have changed: ask for it again")

// replace writes a text, has it read, and puts the old one back where the site does not take it, or is not as
// well as the caller wants.
func (s *Site) replace(ctx context.Context, who agents.Principal, old Configuration, c NewConfiguration) (err error) {
	file, err := filepath.EvalSymlinks(old.File)
	if err == nil && c.Trial != 0 {
		begun := rollback.Trial{
			File: file, Digest: Digest([]byte(c.Text)), Before: old.Text, Who: who.ID, Seconds: c.Trial, Restart: c.Restart,
		}
		if err := s.Trials.Begin(begun, s.Problems(ctx)); err != nil {
			return err
		}
		c.Well = true
		defer func() {
			switch {
			case err != nil:
				s.Trials.Abandon(firstLine(err))
			case c.Restart:
				s.Trials.Restart()
			default:
				s.Trials.InUse()
			}
		}()
	}
	if err == nil {
		err = s.Rewrite(file, []byte(old.Text), []byte(c.Text))
	}
	switch {
	case errors.Is(err, state.ErrChanged):
		return errDigest
	case err != nil && device.AsFault(err).Kind == device.Denied:
		return err
	case err != nil:
		return device.Faultf(device.Unavailable,
			"the site cannot write its configuration (%w): write it on its machine, and run agentsite reload there", err)
	}
	if c.Restart {
		return nil // the text is read by the next start
	}
	// Whether the caller goes on waiting or not, the file and the site agree in the end.
	ctx = context.WithoutCancel(ctx)
	err = s.Reload(ctx)
	inUse := err == nil || device.AsFault(err).Kind == device.Offline
	if err == nil || inUse && !c.Well {
		return err
	}
	if wrong, ok := errors.AsType[*config.Error](err); ok {
		err = device.Faultf(device.Invalid, "%s", firstLine(wrong))
	}
	back := state.Restore(file, []byte(c.Text), []byte(old.Text))
	if back != nil {
		back = s.Rewrite(file, []byte(c.Text), []byte(old.Text))
	}
	switch {
	case errors.Is(back, state.ErrChanged):
		return fmt.Errorf("%w; somebody wrote the configuration meanwhile, which stays as that", err)
	case back != nil:
		return device.Faultf(device.Unavailable,
			"%w; and the text before could not be put back (%w): it is in %s", err, back, file+state.Before)
	}
	if !inUse {
		return fmt.Errorf("%w; the configuration is as it was", err)
	}
	if why := errors.Unwrap(device.AsFault(err)); why != nil {
		err = why
	}
	if again := s.Reload(ctx); again != nil && device.AsFault(again).Kind != device.Offline {
		return device.Faultf(device.Unavailable,
			"%w; the text before is in the file again, but not in use (%w): reload", err, again)
	}
	return device.Faultf(device.Offline, "%w; the site uses the configuration before again", err)
}
