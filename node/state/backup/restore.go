package backup

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"agentsite/node/access"
	"agentsite/node/config"
	"agentsite/node/state"

	"github.com/go-json-experiment/json"
)

// Restore restores a backup in a folder without a key. What an earlier site left there, such as tasks
// under way, is moved to Summary.Aside. It asks for the passphrase once it knows
// that the folder is free, and verifies everything before it writes. It writes the key last:
// interrupted before that, there is no site, and the same call restores it.
//
// The site is as it was when the backup was made. Permissions that were revoked since are
// back. Calls since then are not counted, so that each rate starts as used up. An emergency
// stop that was latched still is, and an agent that was paused, too.
func Restore(o Options) (*Summary, error) {
	f := o.Folder
	if err := checkNoKey(f); err != nil {
		return nil, err
	}
	file, err := openBackup(o.File)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	passphrase, err := o.Passphrase()
	if err != nil {
		return nil, err
	}
	b, err := open(file, passphrase)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.File, err)
	}
	if (b.Of == ofOwner) != o.Owner {
		return nil, state.Mistakef("%s is the backup of the %s %s: --owner is for an owner's key, and only for that",
			o.File, b.Of, b.DID)
	}
	about, err := b.verify()
	if err != nil {
		return nil, state.Mistakef("%s: %w", o.File, err)
	}
	counts, err := access.RestoreCounts(b.Counts)
	if err != nil {
		return nil, err
	}
	if b.Config != "" {
		if about.Config, err = checkConfig(o.Config, b.Config); err != nil {
			return nil, err
		}
	}

	unlock, err := f.Lock()
	if err != nil {
		return nil, stopFirst(err)
	}
	defer unlock()
	if err := checkNoKey(f); err != nil { // the lock is held from here on
		return nil, err
	}
	if o.Owner {
		return about, writeFile(f, state.KeyFile, []byte(b.Key))
	}
	if err := writeConfig(about.Config, b.Config); err != nil {
		return nil, err
	}
	if about.Aside, err = moveAside(f, time.Now()); err != nil {
		return nil, err
	}
	if err := writeFile(f, state.AccessFile, b.Access); err != nil {
		return nil, err
	}
	if err := writeFile(f, state.CountsFile, counts); err != nil {
		return nil, err
	}
	if err := f.WritePaused(b.Paused); err != nil {
		return nil, f.Unusable(err)
	}
	if err := writeFile(f, state.SitesFile, b.Sites); err != nil {
		return nil, err
	}
	if err := writeFile(f, state.ImportsFile, b.Imports); err != nil {
		return nil, err
	}
	if err := writeFile(f, state.PublicFile, b.Public); err != nil {
		return nil, err
	}
	if err := writeFile(f, state.AcceptedFile, b.Accepted); err != nil {
		return nil, err
	}
	if b.Sequence > 0 {
		if err := f.WriteSequence(b.Sequence); err != nil {
			return nil, err
		}
	}
	if len(b.History) > 0 {
		if err := writeHistory(f, b.History); err != nil {
			return nil, err
		}
	}
	if err := keepLatched(f, b.NoEffect); err != nil {
		return nil, f.Unusable(err)
	}
	if b.Stopped {
		if err := keepStopped(f); err != nil {
			return nil, err
		}
	}
	return about, writeFile(f, state.KeyFile, []byte(b.Key))
}

// checkNoKey refuses a folder that has a key, or that somebody else could have filled.
func checkNoKey(f state.Folder) error {
	switch _, err := os.Lstat(f.Path(state.KeyFile)); {
	case err == nil:
		return state.Mistakef("there is a key already, %s, which is not replaced: "+
			"name another folder with --data, or move this one away", f.Path(state.KeyFile))
	case !errors.Is(err, fs.ErrNotExist):
		return f.Unusable(err)
	}
	return f.Check()
}

// openBackup opens a file that is not too large for a backup.
func openBackup(name string) (*os.File, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, state.Mistake{Err: err}
	}
	if info, err := file.Stat(); err == nil && info.Size() > maxBackup {
		file.Close()
		return nil, state.Mistakef("%s is too large for a backup", name)
	}
	return file, nil
}

// open reads a backup, whose text is never in memory as a whole.
func open(sealed io.Reader, passphrase string) (*content, error) {
	var b content
	err := unseal(io.LimitReader(sealed, maxBackup), passphrase, func(r io.Reader) error {
		err := json.UnmarshalRead(r, &b, json.RejectUnknownMembers(true))
		switch { // the version is the first member
		case b.Version < 1:
			return state.Mistakef("the passphrase is right, but this is no backup of a site")
		case b.Version < oldest:
			return state.Mistakef("it has version %d, which no released agentsite wrote", b.Version)
		case b.Version > version:
			return state.Mistakef("it has version %d, and needs a newer agentsite", b.Version)
		case err != nil:
			return state.Mistakef("the passphrase is right, but the backup cannot be read: %w", err)
		}
		return nil
	})
	return &b, err
}

// checkConfig returns the path for a configuration, and refuses to replace another one.
func checkConfig(path, text string) (file string, err error) {
	file = cmp.Or(path, config.DefaultFile)
	if _, err := os.Lstat(file); err == nil {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return "", state.Mistakef("%s is a link to nothing, where no configuration can be written: "+
				"make what it leads to, or use another file with --config", file)
		}
	}
	switch there, err := os.ReadFile(file); {
	case err == nil && string(there) != text:
		return "", state.Mistakef("%s exists already and differs: move it away, or use another file with --config", file)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", state.Mistake{Err: err}
	}
	return file, nil
}

// writeConfig writes a configuration after checkConfig, readable by its user only: it may have
// secrets.
func writeConfig(file, text string) error {
	if _, err := os.Lstat(file); file == "" || err == nil {
		return nil
	}
	if err := writeNew(file, false, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
		return fmt.Errorf("the configuration cannot be written: %w; use another file with --config", err)
	}
	return nil
}

// writeFile replaces a file of the folder, and removes it for nil.
func writeFile(f state.Folder, name string, b []byte) (err error) {
	if b == nil {
		_, err = remove(f, name)
	} else {
		err = state.WriteAtomic(f.Path(name), b, 0o600)
	}
	if err != nil {
		return f.Unusable(err)
	}
	return nil
}

// keepLatched has outputs wait for the owner's reset, beside those that do already.
func keepLatched(f state.Folder, outputs []string) error {
	if len(outputs) == 0 {
		return nil
	}
	l := f.Latch()
	before, err := l.Latched()
	if err != nil {
		return err
	}
	all := append(before, outputs...)
	slices.Sort(all)
	return l.Keep(slices.Compact(all))
}

// keepStopped latches the emergency stop: the next start is not the first, which arms the
// outputs.
func keepStopped(f state.Folder) error {
	if err := f.Sign("restored"); err != nil {
		return err
	}
	if l := f.Latch(); l.Armed() {
		return l.Stop()
	}
	return nil
}
