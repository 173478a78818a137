package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"agentsite/cmd/internal/ops"
	"agentsite/cmd/internal/site"
	"agentsite/device"
	"agentsite/node/acts"
	"agentsite/node/config"
	"agentsite/node/state"
	"agentsite/transport/mcp/client"
)

// configuration reads and replaces the text to which a part is added: of a running site, or in a file alone.
type configuration interface {
	read(ctx context.Context) (acts.Configuration, error)
	check(ctx context.Context, text string) (acts.Checked, error)
	scan(ctx context.Context) (acts.Scanned, error)
	// replace returns the digest of the new text.
	replace(ctx context.Context, now acts.Configuration, c acts.NewConfiguration) (string, error)
	next() string // what is to do once it is replaced, for the end of a sentence
	root() string // of the board: "" is this machine's
}

// configured returns the configuration of the site that the flags name or that runs here, and else the file,
// with what ends its use. This user writes a file that is named, and agentsite.yaml where the demonstration runs.
func (a *app) configured(ctx context.Context, file, root string) (configuration, func(), error) {
	nothing := func() {}
	folder, err := a.siteFolder()
	if err != nil {
		return nil, nothing, err
	}
	if file != "" {
		return &fileAlone{app: a, name: file, folder: folder, board: root}, nothing, a.requireLocal("--config")
	}
	service := folder == state.ServiceFolder // whose site may run although this user may not ask it
	if a.namedSite() == "" && a.peer == "" && !service && !folder.Running() {
		return &fileAlone{app: a, folder: folder, board: root}, nothing, nil
	}
	s, err := a.dial()
	if err != nil {
		if service {
			a.note("--config FILE writes a file without the site")
		}
		return nil, nothing, err
	}
	if a.site != "" || a.peer != "" {
		return siteInUse{s, elsewhere}, func() { s.Close() }, nil
	}
	health, err := callOwner(ctx, s, acts.HealthAct, acts.None{})
	if err == nil && health.Configuration == "" {
		s.Close()
		a.note("a demonstration runs here, which has no configuration: the part is for the file %s", config.DefaultFile)
		return &fileAlone{app: a, folder: folder, board: root}, nothing, nil
	}
	if err != nil {
		s.Close()
	}
	return siteInUse{s, root}, func() { s.Close() }, err
}

// elsewhere is the root of a board that is not this machine's.
const elsewhere = "/none"

// siteInUse is the configuration of a running site.
type siteInUse struct {
	*session
	board string
}

func (s siteInUse) read(ctx context.Context) (acts.Configuration, error) {
	c, err := callOwner(ctx, s.session, acts.ConfigurationAct, acts.None{})
	if s.board == elsewhere { // lines that begin with the file's name are this program's
		c.File = cmp.Or(s.app.site, s.app.peer) + ":" + config.DefaultFile
	}
	return c, err
}

func (s siteInUse) check(ctx context.Context, text string) (acts.Checked, error) {
	return callOwner(ctx, s.session, acts.CheckAct, acts.NewConfiguration{Text: text})
}

func (s siteInUse) scan(ctx context.Context) (acts.Scanned, error) {
	return callOwner(ctx, s.session, acts.ScanAct, acts.None{})
}

func (s siteInUse) replace(ctx context.Context, _ acts.Configuration, c acts.NewConfiguration) (string, error) {
	is, err := callOwner(ctx, s.session, acts.ConfigureAct, c)
	return is.Digest, err
}

func (siteInUse) next() string { return ", and the site uses it" }

func (s siteInUse) root() string { return s.board }

// fileAlone is a file that this user writes.
type fileAlone struct {
	*app
	name   string // "" is agentsite.yaml, which is made where it is not there
	folder state.Folder
	board  string
	before []byte // nil where there is no file
	used   bool   // a site uses the new text
}

func (f *fileAlone) read(context.Context) (acts.Configuration, error) {
	name := cmp.Or(f.name, config.DefaultFile)
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() { // to read a pipe would block
		return acts.Configuration{}, usagef("%s is no file that can be changed", name)
	}
	file, text, err := config.ReadFile(f.name)
	if err != nil {
		return acts.Configuration{}, err
	}
	if f.before = text; len(text) == 0 {
		text = config.NewFile(ops.SiteName())
	}
	return acts.Configuration{File: file, Text: string(text)}, nil
}

func (f *fileAlone) check(_ context.Context, text string) (out acts.Checked, _ error) {
	file, _, err := config.ReadFile(f.name)
	if err != nil {
		return out, err
	}
	cfg, err := site.CheckText(file, []byte(text))
	if out.Mistakes = acts.MistakesOf(err); err == nil {
		for _, doubt := range site.Doubts(cfg, f.name) {
			out.Warnings = append(out.Warnings, doubt.Error())
		}
		out.Warnings = append(out.Warnings, ops.OffHeader(cfg)...)
	}
	return out, nil
}

func (f *fileAlone) scan(ctx context.Context) (acts.Scanned, error) {
	o := ops.ScanOptions{Config: f.name, Drivers: site.AllDrivers(), Folder: f.folder, Root: f.board}
	found, err := ops.Scan(ctx, o)
	if err != nil {
		return acts.Scanned{}, err
	}
	return found.Answer(), nil
}

// replace has the site reload that runs here with the file, and puts the text before back where it does not take
// the new one, or is not as well as the caller wants.
func (f *fileAlone) replace(ctx context.Context, now acts.Configuration, c acts.NewConfiguration) (string, error) {
	if err := ops.WriteConfig(now.File, f.before, []byte(c.Text)); err != nil {
		return "", err
	}
	digest := acts.Digest([]byte(c.Text))
	ctx = context.WithoutCancel(ctx) // the file and the site agree in the end
	s := f.siteWith(ctx, now.File)
	if s == nil {
		return digest, nil
	}
	defer s.Close()
	_, err := callOwner(ctx, s, acts.ReloadAct, acts.None{})
	if f.used = err == nil || kindOf(err) == device.Offline && !c.Well; f.used {
		return digest, err
	}
	if back := ops.WriteConfig(now.File, []byte(c.Text), f.before); back != nil {
		return "", fmt.Errorf("%w; and the text before could not be put back: %w", err, back)
	}
	if _, again := callOwner(ctx, s, acts.ReloadAct, acts.None{}); again != nil && kindOf(again) != device.Offline {
		return "", fmt.Errorf("%w; the text before is in the file again, but not in use: %w", err, again)
	}
	return "", fmt.Errorf("%w; the site uses the configuration before again", err)
}

// siteWith returns the site that runs here with a file; nil for none.
func (f *fileAlone) siteWith(ctx context.Context, file string) *session {
	if !f.folder.Running() {
		return nil
	}
	s, err := f.dial()
	if err != nil {
		return nil
	}
	health, err := callOwner(ctx, s, acts.HealthAct, acts.None{})
	is, err1 := os.Stat(file)
	its, err2 := os.Stat(health.Configuration)
	if err != nil || err1 != nil || err2 != nil || !os.SameFile(is, its) {
		s.Close()
		return nil
	}
	return s
}

// kindOf returns the kind of the fault that a site answers with; "" for any other error.
func kindOf(err error) device.FaultKind {
	var refused *client.RequestError
	if errors.As(err, &refused) {
		return device.FaultKind(refused.Kind)
	}
	return ""
}

func (f *fileAlone) next() string {
	switch {
	case f.used:
		return ", and the site uses it"
	case f.name == "":
		return "; agentsite run uses it"
	}
	return ""
}

func (f *fileAlone) root() string { return f.board }
