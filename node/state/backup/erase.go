package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentsite/node/state"
)

// Erase removes the owners, permissions, tokens, journal, history and tasks from the folder, and with key
// also the site's key. No site may run from it. confirm is called before, while the folder
// is locked. Erase returns the names of the files that it removed, in that order, also with
// an error; the same call then removes the rest.
//
// The latches of the emergency stop and of outputs without an effect stay, and so does the plan by which outputs are
// driven to safe.
func Erase(f state.Folder, key bool, confirm func() error) (erased []string, err error) {
	if _, err := os.Stat(string(f)); err != nil {
		return nil, state.Mistakef("there is no site to erase: %w; name its folder with --data", err)
	}
	unlock, err := f.Lock()
	if err != nil {
		return nil, stopFirst(err)
	}
	defer unlock()
	if err := confirm(); err != nil {
		return nil, err
	}
	names := siteFiles()
	aside, err := asideFolders(f)
	if err != nil {
		return nil, err
	}
	for _, path := range aside {
		names = append(names, filepath.Base(path))
	}
	if key {
		names = append(names, state.KeyFile)
	}
	for _, name := range names {
		gone, err := remove(f, name)
		if err != nil {
			return erased, fmt.Errorf("not everything is erased: %w; fix that, and run it again", err)
		}
		if gone {
			erased = append(erased, name)
		}
	}
	return erased, nil
}

// siteFiles returns the files and folders with what a site is and remembers, except its key. The order
// is safe against an interruption. The owners, in one file with all grants and other tokens, outlive the
// local token, and counts outlive the permissions that they belong to.
func siteFiles() []string {
	return []string{state.TokenFile, state.AccessFile, state.CountsFile, state.JournalFolder, state.HistoryFolder, state.TasksFolder, state.PausedFile, state.SitesFile, state.ImportsFile, state.SharedFile, state.AcceptedFile, state.SpentFile, state.PushFile, state.HooksFile, state.OutboxFile, state.PhonesFile, state.AnnouncedFile, state.ExportFile, state.PublicFile, state.ThingsFile, state.TrialFile}
}

// asidePrefix begins the name of a folder to which restore has moved what an earlier site left.
const asidePrefix = "earlier-"

// asideFolders returns the paths of the folders to which restore has moved what earlier sites left.
func asideFolders(f state.Folder) (all []string, err error) {
	entries, err := os.ReadDir(string(f))
	if err != nil {
		return nil, f.Unusable(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), asidePrefix) {
			all = append(all, f.Path(e.Name()))
		}
	}
	return all, nil
}

// moveAside moves what an earlier site left in the folder to a new folder in it. It returns that folder,
// and all of before: a restore that was interrupted has left one.
func moveAside(f state.Folder, now time.Time) (all []string, err error) {
	folder := ""
	for _, name := range append(siteFiles(), state.ClaimFile) {
		if _, err := os.Lstat(f.Path(name)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if folder == "" {
			if folder, err = os.MkdirTemp(string(f), asidePrefix+now.UTC().Format("20060102-150405")+"-*"); err != nil {
				return nil, f.Unusable(err)
			}
		}
		if err := os.Rename(f.Path(name), filepath.Join(folder, name)); err != nil {
			return nil, f.Unusable(err)
		}
	}
	if folder != "" {
		state.SyncFolder(folder)
		state.SyncFolder(string(f))
	}
	return asideFolders(f)
}

// stopFirst adds to state.InUse how to end the site that holds the folder.
func stopFirst(err error) error {
	var busy state.InUse
	if errors.As(err, &busy) {
		return fmt.Errorf("%s is in use by %s: stop it first, with Ctrl-C where it runs, or with sudo systemctl stop agentsite", busy.Folder, busy.By)
	}
	return err
}

// remove removes a file or a folder durably, with the remains of an interrupted replacement. It
// reports whether there was one.
func remove(f state.Folder, name string) (gone bool, err error) {
	_, err = os.Lstat(f.Path(name))
	gone = !errors.Is(err, fs.ErrNotExist)
	err = errors.Join(os.RemoveAll(f.Path(name)), os.RemoveAll(f.Path(name+".new")))
	state.SyncFolder(string(f))
	return gone, err
}
