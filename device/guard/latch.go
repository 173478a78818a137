package guard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Latch is the memory of the emergency stop: the absence of a file. Stopping
// removes it, which works on a full disk; where the disk is read-only a flag
// elsewhere stands in. So a folder that lost the file means stopped; who makes the
// file on first start says what first is.
type Latch struct {
	File string // present while armed
	Flag string // present after a stop that could not remove File; "" for none
}

// Armed reports whether moves are allowed.
func (l Latch) Armed() bool {
	if _, err := os.Stat(l.Flag); l.Flag != "" && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	_, err := os.Stat(l.File)
	return err == nil
}

// Stop disarms.
func (l Latch) Stop() error {
	err := os.Remove(l.File)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		persist(filepath.Dir(l.File))
		return nil
	}
	if l.Flag != "" && os.MkdirAll(filepath.Dir(l.Flag), 0o700) == nil &&
		os.WriteFile(l.Flag, []byte("stopped\n"), 0o600) == nil {
		return nil
	}
	return errors.Join(errors.New("outputs are stopped, but a restart would forget it"), err)
}

// Reset arms. Where it fails, the stop stays.
func (l Latch) Reset() error {
	if err := os.WriteFile(l.File, []byte("Present while outputs may move. Removed by the emergency stop.\n"), 0o600); err != nil {
		return err
	}
	if l.Flag == "" {
		return nil
	}
	if err := os.Remove(l.Flag); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// persist has a folder's change survive a power cut, as far as the disk lets it: the
// stop itself does not depend on it.
func persist(folder string) {
	if d, err := os.Open(folder); err == nil {
		d.Sync()
		d.Close()
	}
}
