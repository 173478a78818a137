package site

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"agentsite/node/state"
)

// Erase removes from the folder, from which no site runs, who owns the site, what anybody
// may do there and did, and with key also who it is. sure is asked before, while the
// folder is held. It returns the files that are gone, in that order, also with an error;
// then the same again removes the rest.
//
// What else stays: the latch of the emergency stop, and the plan by which outputs are
// driven to safe.
func Erase(f state.Folder, key bool, sure func() error) (erased []string, err error) {
	if _, err := os.Stat(string(f)); err != nil {
		return nil, state.Mistakef("there is no site to erase: %w; name its folder with --data", err)
	}
	unlock, err := f.Lock()
	if err != nil {
		return nil, stopFirst(err)
	}
	defer unlock()
	if err := sure(); err != nil {
		return nil, err
	}
	// Wherever this is cut off: while a file is left that lets somebody in, the owners are,
	// who are in one file with all grants and other tokens; and what was counted outlives
	// what it was counted for.
	names := []string{state.TokenFile, state.AccessFile, state.CountsFile, state.JournalFolder}
	if key {
		names = append(names, state.KeyFile)
	}
	for _, name := range names {
		gone, err := remove(f, name)
		if err != nil {
			return erased, fmt.Errorf("not all is erased: %w; mend that, and run it again", err)
		}
		if gone {
			erased = append(erased, name)
		}
	}
	return erased, nil
}

// stopFirst says how to, where another has the folder.
func stopFirst(err error) error {
	var busy state.InUse
	if errors.As(err, &busy) {
		return fmt.Errorf("%s is in use by %s: stop it first, with Ctrl-C where it runs, or with sudo systemctl stop agentsite", busy.Folder, busy.By)
	}
	return err
}

// remove removes a file or a folder, for good, and what a kill left of one that was to
// take its place. It reports whether there was one.
func remove(f state.Folder, name string) (gone bool, err error) {
	_, err = os.Lstat(f.Path(name))
	gone = !errors.Is(err, fs.ErrNotExist)
	err = errors.Join(os.RemoveAll(f.Path(name)), os.RemoveAll(f.Path(name+".new")))
	state.SyncFolder(string(f))
	return gone, err
}
