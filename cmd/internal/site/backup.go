package site

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/node/state"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// BackupOptions are what Backup and Restore are told.
type BackupOptions struct {
	File       string // the backup
	Force      bool   // it may replace another
	Folder     state.Folder
	Config     string // a file; "" for agentsite.yaml, where there is one
	Owner      bool   // the key of this machine's user as an owner, and no site
	Passphrase func() (string, error)
}

// BackedUp is what a backup holds, as far as it may be told.
type BackedUp struct {
	Of     string    `json:"of"` // site or owner
	DID    string    `json:"did"`
	Made   time.Time `json:"made"`
	Owners int       `json:"owners"`
	Grants int       `json:"grants"`
	Tokens int       `json:"tokens"`
	Config string    `json:"config,omitzero"` // the file's name; "" for none
}

const (
	backupVersion = 2 // 1 had no sequence
	ofSite        = "site"
	ofOwner       = "owner"
	maxBackup     = 16 << 20
)

// backup is what is sealed, as JSON: all that a site is, but for what it remembers.
type backup struct {
	Version int       `json:"agentsite_backup"`
	Of      string    `json:"of"`
	DID     string    `json:"did"`
	Made    time.Time `json:"made"` // by the clock of the board
	Key     string    `json:"key"`
	Config  string    `json:"config,omitzero"`
	Access  []byte    `json:"access,omitzero"`
	Counts  []byte    `json:"counts,omitzero"`
	Stopped bool      `json:"stopped,omitzero"` // the emergency stop was latched

	Sequence uint64 `json:"sequence,omitzero"` // of what the site announced last
}

// Backup writes all that a site is into one file, sealed by a passphrase, which it asks
// for once all else is well. The site may run meanwhile. It never leaves half a file.
func Backup(o BackupOptions) (*BackedUp, error) {
	if err := free(o.File, o.Force); err != nil {
		return nil, err
	}
	b, err := gather(o)
	if err != nil {
		return nil, err
	}
	about, err := b.check()
	if err != nil {
		return nil, fmt.Errorf("this would be a backup of what is damaged: %w", err)
	}
	if b.Config != "" {
		about.Config, _, _ = readText(o.Config)
	}
	passphrase, err := o.Passphrase()
	if err == nil {
		err = CheckPassphrase(passphrase)
	}
	if err != nil {
		return nil, err
	}
	text, err := b.text()
	if err != nil {
		return nil, err
	}
	sealed, err := seal(text, passphrase, backupWork)
	if err != nil {
		return nil, err
	}
	return about, writeNew(o.File, sealed, 0o600, o.Force)
}

// gather reads what is to be kept. Each file is a whole one, since those are replaced and
// never changed. Counts are read last: they may know of more calls than the permissions
// do, and never of fewer.
func gather(o BackupOptions) (*backup, error) {
	f := o.Folder
	b := &backup{Version: backupVersion, Of: ofSite, Made: time.Now().UTC().Truncate(time.Second)}
	if o.Owner {
		p, err := User()
		if err != nil {
			return nil, err
		}
		f = p.Folder
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
	file, text, err := readText(o.Config)
	if err != nil {
		return nil, state.Mistake{Err: err}
	}
	if !utf8.Valid(text) {
		return nil, state.Mistakef("%s is no text in UTF-8: agentsite check says more", file)
	}
	b.Config = string(text)
	if b.Access, err = f.Read(state.AccessFile); err != nil {
		return nil, f.Unusable(err)
	}
	if b.Counts, err = f.Read(state.CountsFile); err != nil {
		return nil, f.Unusable(err)
	}
	b.Stopped = f.HasRun() && !f.Latch().Armed()
	b.Sequence = f.Sequence()
	return b, nil
}

// text is what is sealed. Whoever opens it with another program can read it.
func (b *backup) text() ([]byte, error) { return json.Marshal(b, jsontext.Multiline(true)) }

// check reads all of a backup as the site will.
func (b *backup) check() (*BackedUp, error) {
	key, err := identity.ParsePEM([]byte(b.Key))
	if err != nil {
		return nil, fmt.Errorf("the key: %w", err)
	}
	if key.ID().String() != b.DID || b.Of != ofSite && b.Of != ofOwner {
		return nil, errors.New("its parts do not belong together")
	}
	book, err := access.NewBook(access.Options{Site: key.ID(), Book: b.Access, Meter: b.Counts})
	if err != nil {
		return nil, err
	}
	return &BackedUp{Of: b.Of, DID: b.DID, Made: b.Made, Owners: len(book.Owners()), Grants: len(book.Grants()), Tokens: len(book.Tokens())}, nil
}

// free refuses a file that is there already.
func free(file string, force bool) error {
	_, err := os.Lstat(file)
	switch {
	case err == nil && !force:
		return state.Mistakef("%s is there already: name another file, or say --force to replace it", file)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return state.Mistake{Err: err}
	}
	return nil
}

// writeNew writes a file in somebody else's folder: the whole of it or nothing, and
// nothing beside it that could be another's.
func writeNew(file string, b []byte, mode fs.FileMode, force bool) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".agentsite-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(b)
	if mode != 0o600 { // it has that, and a stick may know no modes
		err = errors.Join(err, tmp.Chmod(mode))
	}
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := free(file, force); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), file); err != nil {
		return err
	}
	state.SyncFolder(filepath.Dir(file))
	return nil
}
