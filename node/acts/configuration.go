package acts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/device"
	"agentsite/node/config"
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
}

// Checked answers CheckAct.
type Checked struct {
	Mistakes []Mistake `json:"mistakes"` // none: the site would take it
	Warnings []string  `json:"warnings,omitzero"`
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
	text, err := os.ReadFile(s.Configuration)
	if err != nil {
		return c, device.Faultf(device.Unavailable, "%w", err)
	}
	return Configuration{s.Configuration, string(text), digestOf(text)}, nil
}

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func (s *Site) check(_ context.Context, _ agents.Principal, c NewConfiguration) (Checked, error) {
	warnings, err := s.Check([]byte(c.Text))
	out := Checked{Mistakes: mistakesOf(err)}
	for _, w := range warnings {
		out.Warnings = append(out.Warnings, w.Error())
	}
	return out, nil
}

// mistakesOf returns the mistakes that an error joins.
func mistakesOf(err error) []Mistake {
	all := []Mistake{}
	switch joined := err.(type) {
	case nil:
	case interface{ Unwrap() []error }:
		for _, e := range joined.Unwrap() {
			all = append(all, mistakesOf(e)...)
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
	s.configuring.Lock()
	defer s.configuring.Unlock()
	old, err := s.configuration()
	switch {
	case err != nil:
		return old, err
	case c.Digest != old.Digest:
		return old, device.Faultf(device.Invalid,
			"digest: it is not that of the configuration as it is now, which somebody may have changed: ask for it again")
	}
	if _, err := s.Check([]byte(c.Text)); err != nil {
		return old, mistake(err)
	}
	err = s.Node.Own(who, "configure", digestOf([]byte(c.Text)), func() error { return s.replace(ctx, old, c.Text) })
	if err != nil {
		return old, err
	}
	return s.configuration()
}

// replace writes a text, has it read, and puts the old one back where the site does not take it.
func (s *Site) replace(ctx context.Context, old Configuration, text string) error {
	file, err := filepath.EvalSymlinks(old.File)
	if err != nil {
		return device.Faultf(device.Unavailable, "%w", err)
	}
	info, err := os.Stat(file)
	if err == nil {
		err = state.WriteAtomic(file+".before", []byte(old.Text), info.Mode().Perm())
	}
	if err == nil {
		err = state.WriteAtomic(file, []byte(text), info.Mode().Perm())
	}
	if err != nil {
		return device.Faultf(device.Unavailable,
			"the site cannot write its configuration (%w): write it on its machine, and run agentsite reload there", err)
	}
	// Whether the caller goes on waiting or not, the file and the site agree in the end.
	err = s.Reload(context.WithoutCancel(ctx))
	if err == nil || device.AsFault(err).Kind == device.Offline { // the new one is in use
		return err
	}
	back := state.WriteAtomic(file, []byte(old.Text), info.Mode().Perm())
	if wrong, ok := errors.AsType[*config.Error](err); ok {
		err = mistake(wrong)
	}
	if back != nil {
		return device.Faultf(device.Internal,
			"%w; and the text before could not be written again (%w): it is in %s", err, back, file+".before")
	}
	return fmt.Errorf("%w; the configuration is as it was", err)
}
