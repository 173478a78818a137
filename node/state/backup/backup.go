package backup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/bundle"
	"agentsite/node/config"
	"agentsite/node/identity"
	"agentsite/node/state"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Options are the parameters of Create and Restore.
type Options struct {
	File       string                 // the backup
	Force      bool                   // Create replaces a file that exists
	Folder     state.Folder           // of the site, or with Owner of the user's own key
	Config     string                 // a file; "" for agentsite.yaml, where there is one
	Owner      bool                   // the folder holds the key of an owner, and no site
	History    bool                   // Create includes past readings
	Passphrase func() (string, error) // asks for it, once everything else is checked
}

// Summary describes a backup, without its secrets.
type Summary struct {
	Of     string    `json:"of"` // site or owner
	DID    string    `json:"did"`
	Made   time.Time `json:"made"`
	Owners int       `json:"owners"`
	Grants int       `json:"grants"`
	Tokens int       `json:"tokens"`
	Config string    `json:"config,omitzero"` // the file's name; "" for none
	Aside  []string  `json:"aside,omitzero"`  // the folders to which Restore has moved what earlier sites left
}

const (
	version   = 8
	oldest    = 2 // lower versions were written where a backup had less to say; nothing in them differs
	ofSite    = "site"
	ofOwner   = "owner"
	maxBackup = 192 << 20
	// maxHistory is twice the default size of a history. Sealed, it takes a third more.
	maxHistory = 128 << 20
	maxSites   = 1 << 20
)

// content is the sealed JSON: everything of a site except its journal and its tasks, because
// restored tasks would run at an unexpected time.
type content struct {
	Version int       `json:"agentsite_backup"`
	Of      string    `json:"of"`
	DID     string    `json:"did"`
	Made    time.Time `json:"made"` // by the clock of the board
	Key     string    `json:"key"`
	Config  string    `json:"config,omitzero"`
	Access  []byte    `json:"access,omitzero"`
	Counts  []byte    `json:"counts,omitzero"`
	Stopped bool      `json:"stopped,omitzero"` // the emergency stop was latched
	Paused  []string  `json:"paused,omitzero"`  // the hosted agents that are not to run
	// NoEffect has the outputs that wait for the owner's reset because their effect failed.
	NoEffect []string `json:"no_effect,omitzero"`

	Sites   []byte `json:"sites,omitzero"`   // the grants of other sites
	Imports []byte `json:"imports,omitzero"` // the agents that came as bundles

	Public   []byte `json:"public,omitzero"`   // the certificate of the public name, of which an authority makes few
	Accepted []byte `json:"accepted,omitzero"` // the tools of other programs that an owner accepted

	Sequence uint64            `json:"sequence,omitzero"` // of the last record that the site announced
	History  map[string][]byte `json:"history,omitzero"`  // its files by name
}

// Create writes a site into one file, sealed by a passphrase, which it asks for once everything
// else is checked. The site may run meanwhile. It never leaves an incomplete file.
func Create(o Options) (*Summary, error) {
	if err := checkFree(o.File, o.Force); err != nil {
		return nil, err
	}
	b, err := collect(o)
	if err != nil {
		return nil, err
	}
	about, err := b.verify()
	if err != nil {
		return nil, fmt.Errorf("the site is damaged, so no backup was made: %w", err)
	}
	if b.Config != "" {
		about.Config, _, _ = config.ReadFile(o.Config)
	}
	passphrase, err := o.Passphrase()
	if err == nil {
		err = CheckPassphrase(passphrase)
	}
	if err != nil {
		return nil, err
	}
	return about, writeNew(o.File, o.Force, func(w io.Writer) error { return seal(w, passphrase, workFactor, b.write) })
}

// collect reads the site. Each file is consistent, because a running site replaces files and
// never changes them. Counts are read last: they may include calls by permissions that are
// missing, and never lack calls by those that are there.
func collect(o Options) (*content, error) {
	f := o.Folder
	b := &content{Version: version, Of: ofSite, Made: time.Now().UTC().Truncate(time.Second)}
	if o.Owner {
		b.Of = ofOwner
	}
	key, err := f.ReadKey()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, state.Mistakef("there is no key in %s, and so nothing to back up: name a site's folder with --data", f)
	}
	if err != nil {
		return nil, err
	}
	b.Key, b.DID = string(key.PEM()), key.ID().String()
	if o.Owner {
		return b, nil
	}
	file, text, err := config.ReadFile(o.Config)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(text) {
		return nil, state.Mistakef("%s is not UTF-8 text: run agentsite check", file)
	}
	b.Config = string(text)
	if b.Access, err = f.Read(state.AccessFile); err != nil {
		return nil, f.Unusable(err)
	}
	if b.Counts, err = f.Read(state.CountsFile); err != nil {
		return nil, f.Unusable(err)
	}
	b.Stopped = f.HasRun() && !f.Latch().Armed()
	if b.NoEffect, err = f.Latch().Latched(); err != nil {
		return nil, f.Unusable(err)
	}
	b.Sequence = f.Sequence()
	if b.Paused, err = f.Paused(); err != nil {
		return nil, err
	}
	if o.History {
		if b.History, err = readHistory(f); err != nil {
			return nil, err
		}
	}
	if b.Sites, err = f.ReadAtMost(state.SitesFile, maxSites); err != nil {
		return nil, f.Unusable(err)
	}
	if b.Imports, err = f.ReadAtMost(state.ImportsFile, bundle.MaxImports); err != nil {
		return nil, f.Unusable(err)
	}
	if b.Accepted, err = f.Accepted(); err != nil {
		return nil, err
	}
	if b.Public, err = f.Public(); err != nil {
		return nil, f.Unusable(err)
	}
	return b, nil
}

// readHistory reads the files of the history. A running site appends to them, and readers skip an
// incomplete block.
func readHistory(f state.Folder) (map[string][]byte, error) {
	files, err := os.ReadDir(f.Path(state.HistoryFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, f.Unusable(err)
	}
	all, total := make(map[string][]byte), 0
	for _, file := range files {
		if !file.Type().IsRegular() { // lost+found, on a file system of its own
			continue
		}
		b, err := os.ReadFile(filepath.Join(f.Path(state.HistoryFolder), file.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // too old, and removed meanwhile
		}
		if err != nil {
			return nil, f.Unusable(err)
		}
		if total += len(b); total > maxHistory {
			return nil, state.Mistakef("the history has more than %d MB, which a backup cannot have: "+
				"leave out --history, or copy %s while the site is stopped", maxHistory>>20, f.Path(state.HistoryFolder))
		}
		all[file.Name()] = b
	}
	return all, nil
}

// writeHistory writes the files that readHistory returned.
func writeHistory(f state.Folder, files map[string][]byte) error {
	folder := f.Path(state.HistoryFolder)
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return f.Unusable(err)
	}
	for name, b := range files {
		if err := state.WriteAtomic(filepath.Join(folder, name), b, 0o600); err != nil {
			return f.Unusable(err)
		}
	}
	return nil
}

// write writes the JSON to seal, in lines, for people who decrypt it with another program.
func (b *content) write(w io.Writer) error { return json.MarshalWrite(w, b, jsontext.Multiline(true)) }

// verify parses all of a backup as the site will.
func (b *content) verify() (*Summary, error) {
	key, err := identity.ParsePEM([]byte(b.Key))
	if err != nil {
		return nil, fmt.Errorf("the key: %w", err)
	}
	if key.ID().String() != b.DID || b.Of != ofSite && b.Of != ofOwner {
		return nil, errors.New("its key is not that of its did")
	}
	for name := range b.History {
		if name == "." || name == ".." || strings.ContainsAny(name, `/\`) {
			return nil, fmt.Errorf("%q is not the name of a file of the history", name)
		}
	}
	for _, output := range b.NoEffect {
		name, point, _ := device.SplitAddress(output)
		if err := errors.Join(device.CheckName(name), device.CheckName(point)); err != nil {
			return nil, fmt.Errorf("the outputs without an effect: %w", err)
		}
	}
	for _, name := range b.Paused {
		if err := device.CheckName(name); err != nil {
			return nil, fmt.Errorf("the paused agents: %w", err)
		}
	}
	if _, err := bundle.DecodeImports(b.Imports); err != nil {
		return nil, err
	}
	book, err := access.NewStore(access.Options{Site: key.ID(), Access: b.Access, Counts: b.Counts})
	if err != nil {
		return nil, err
	}
	return &Summary{
		Of: b.Of, DID: b.DID, Made: b.Made,
		Owners: len(book.Owners()), Grants: len(book.Grants()), Tokens: len(book.Tokens()),
	}, nil
}

// checkFree refuses a file that exists, unless force allows to replace it.
func checkFree(file string, force bool) error {
	_, err := os.Lstat(file)
	switch {
	case err == nil && !force:
		return state.Mistakef("%s exists already: name another file, or use --force to replace it", file)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return state.Mistake{Err: err}
	}
	return nil
}

// writeNew writes a file that only its user can read, atomically, in a folder that others use
// too, without touching another file in it.
func writeNew(file string, force bool, write func(io.Writer) error) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".agentsite-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	err = write(tmp)
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := checkFree(file, force); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), file); err != nil {
		return err
	}
	state.SyncFolder(filepath.Dir(file))
	return nil
}
