package main

import (
	"context"

	"agentsite/cmd/internal/ops"
	"agentsite/cmd/internal/site"
	"agentsite/node/acts"
	"agentsite/node/config"
	"agentsite/node/state"
)

// configuration is what a part is added to: that of a running site, or a file alone.
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
// with what ends its use. A named file is changed alone. So is agentsite.yaml where the demonstration runs.
func (a *app) configured(ctx context.Context, file, root string) (configuration, func(), error) {
	nothing := func() {}
	if file != "" {
		return &fileAlone{name: file, board: root}, nothing, a.requireLocal("--config")
	}
	folder, err := a.siteFolder()
	if err != nil {
		return nil, nothing, err
	}
	if a.namedSite() == "" && a.peer == "" && !folder.Running() {
		return &fileAlone{folder: folder, board: root}, nothing, nil
	}
	s, err := a.dial()
	if err != nil {
		return nil, nothing, err
	}
	if a.site != "" || a.peer != "" {
		return siteInUse{s, elsewhere}, func() { s.Close() }, nil
	}
	health, err := callOwner(ctx, s, acts.HealthAct, acts.None{})
	if err == nil && health.Configuration == "" {
		s.Close()
		a.note("a demonstration runs here, which has no configuration: the part is for the file %s", config.DefaultFile)
		return &fileAlone{folder: folder, board: root}, nothing, nil
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
	return callOwner(ctx, s.session, acts.ConfigurationAct, acts.None{})
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

// fileAlone is a file that no running site is asked about.
type fileAlone struct {
	name   string // "" is agentsite.yaml, which is made where it is not there
	folder state.Folder
	board  string
	before []byte // nil where there is no file
}

func (f *fileAlone) read(context.Context) (acts.Configuration, error) {
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
		for _, doubt := range site.Doubts(cfg) {
			out.Warnings = append(out.Warnings, doubt.Error())
		}
		out.Warnings = append(out.Warnings, ops.OffHeader(cfg)...)
	}
	return out, nil
}

func (f *fileAlone) scan(ctx context.Context) (acts.Scanned, error) {
	found, err := ops.Scan(ctx, ops.ScanOptions{Config: f.name, Drivers: site.AllDrivers(), Folder: f.folder, Root: f.board})
	if err != nil {
		return acts.Scanned{}, err
	}
	return found.Answer(), nil
}

func (f *fileAlone) replace(_ context.Context, now acts.Configuration, c acts.NewConfiguration) (string, error) {
	if err := ops.WriteConfig(now.File, f.before, []byte(c.Text)); err != nil {
		return "", err
	}
	return acts.Digest([]byte(c.Text)), nil
}

func (f *fileAlone) next() string {
	if f.name != "" {
		return "; a site that runs with it uses it after agentsite reload"
	}
	return "; agentsite run uses it"
}

func (f *fileAlone) root() string { return f.board }
