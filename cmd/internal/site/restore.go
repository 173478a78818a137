package site

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"agentsite/node/access"
	"agentsite/node/config"
	"agentsite/node/state"

	"github.com/go-json-experiment/json"
)

// Restore has a folder without a key hold the site of a backup. It asks for the passphrase
// once it knows that the folder is free, and checks all before it writes anything. The key
// comes last: cut off before that, there is no site, and the same again makes one.
//
// The site is as it was when the backup was made. Permissions that were revoked since are
// back. What was counted since nobody knows, so that each rate begins as used up. An
// emergency stop that was latched is.
func Restore(o BackupOptions) (*BackedUp, error) {
	f := o.Folder
	if o.Owner {
		p, err := User()
		if err != nil {
			return nil, err
		}
		f = p.Folder
	}
	if err := checkNoKey(f); err != nil {
		return nil, err
	}
	sealed, err := readBackup(o.File)
	if err != nil {
		return nil, err
	}
	passphrase, err := o.Passphrase()
	if err != nil {
		return nil, err
	}
	b, err := unsealBackup(sealed, passphrase)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.File, err)
	}
	if (b.Of == ofOwner) != o.Owner {
		return nil, state.Mistakef("%s is the backup of the %s %s: --owner is for an owner's key, and only for that", o.File, b.Of, b.DID)
	}
	about, err := b.check()
	if err != nil {
		return nil, state.Mistakef("%s: %w", o.File, err)
	}
	counts, err := access.Restored(b.Counts)
	if err != nil {
		return nil, err
	}
	if b.Config != "" {
		if about.Config, err = configTakes(o.Config, b.Config); err != nil {
			return nil, err
		}
	}

	unlock, err := f.Lock()
	if err != nil {
		return nil, stopFirst(err)
	}
	defer unlock()
	if err := checkNoKey(f); err != nil { // nobody else makes one from here on
		return nil, err
	}
	if o.Owner {
		return about, put(f, state.KeyFile, []byte(b.Key))
	}
	if err := writeConfig(about.Config, b.Config); err != nil {
		return nil, err
	}
	if err := put(f, state.AccessFile, b.Access); err != nil {
		return nil, err
	}
	if err := put(f, state.CountsFile, counts); err != nil {
		return nil, err
	}
	if b.Sequence > 0 {
		if err := f.WriteSequence(b.Sequence); err != nil {
			return nil, f.Unusable(err)
		}
	}
	if b.Stopped {
		if err := stayStopped(f); err != nil {
			return nil, err
		}
	}
	return about, put(f, state.KeyFile, []byte(b.Key))
}

// checkNoKey refuses a folder that has a key, or is another user's.
func checkNoKey(f state.Folder) error {
	switch _, err := os.Lstat(f.Path(state.KeyFile)); {
	case err == nil:
		return state.Mistakef("there is a key already, %s, and it is not replaced: name another folder with --data, or move this one away", f.Path(state.KeyFile))
	case !errors.Is(err, fs.ErrNotExist):
		return f.Unusable(err)
	}
	if info, err := os.Stat(string(f)); err == nil {
		if owner, ours := state.Owner(info); !ours {
			return state.Mistakef("the folder %s belongs to user %d: run this as that user, who could not read what yours writes", f, owner)
		}
	}
	return nil
}

func readBackup(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, state.Mistake{Err: err}
	}
	defer file.Close()
	sealed, err := io.ReadAll(io.LimitReader(file, maxBackup+1))
	if err == nil && len(sealed) > maxBackup {
		err = state.Mistakef("%s is no backup: none is so large", name)
	}
	return sealed, err
}

func unsealBackup(sealed []byte, passphrase string) (*backup, error) {
	text, err := unseal(sealed, passphrase)
	if err != nil {
		return nil, err
	}
	var any struct {
		Version int `json:"agentsite_backup"`
	}
	if err := json.Unmarshal(text, &any); err != nil || any.Version < 1 {
		return nil, state.Mistakef("the passphrase opens it, but it is no backup of a site")
	}
	if any.Version > backupVersion {
		return nil, state.Mistakef("it is of version %d, and needs a newer agentsite", any.Version)
	}
	var b backup
	if err := json.Unmarshal(text, &b, json.RejectUnknownMembers(true)); err != nil {
		return nil, state.Mistakef("the passphrase opens it, but it cannot be read: %w", err)
	}
	return &b, nil
}

// configTakes returns where a configuration goes, and refuses where another one is.
func configTakes(path, text string) (file string, err error) {
	file = cmp.Or(path, config.DefaultFile)
	switch there, err := os.ReadFile(file); {
	case err == nil && string(there) != text:
		return "", state.Mistakef("%s is there already and says something else: move it away, or name another file with --config", file)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", state.Mistake{Err: err}
	}
	return file, nil
}

// writeConfig writes what configTakes let pass. It may have secrets in it.
func writeConfig(file, text string) error {
	if _, err := os.Lstat(file); file == "" || err == nil {
		return nil
	}
	if err := writeNew(file, []byte(text), 0o600, false); err != nil {
		return fmt.Errorf("the configuration cannot be written: %w; name another file with --config", err)
	}
	return nil
}

// put keeps a file in the folder, or none where the backup has none.
func put(f state.Folder, name string, b []byte) (err error) {
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

// stayStopped has the folder's next start be none that arms the outputs.
func stayStopped(f state.Folder) error {
	if err := f.Sign("restored"); err != nil {
		return err
	}
	if l := f.Latch(); l.Armed() {
		return l.Stop()
	}
	return nil
}
