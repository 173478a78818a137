package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Latch is the memory of the emergency stop: the absence of a file. Stopping
// removes it, which works on a full disk. Where there is nothing to remove, or the
// disk is read-only, a flag elsewhere stands in: a folder that was taken away would
// else be made anew, and armed, by the next start. Who makes the file on first start
// says what first is.
type Latch struct {
	File string // present while armed
	Flag string // present after a stop that did not remove File; "" for none
}

// Armed reports whether moves are allowed.
func (l Latch) Armed() bool {
	if _, err := os.Stat(l.Flag); l.Flag != "" && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	_, err := os.Stat(l.File)
	return err == nil
}

// Stop disarms. Its error says that a restart would forget the stop.
func (l Latch) Stop() error {
	err := os.Remove(l.File)
	if err == nil {
		persist(filepath.Dir(l.File))
		return nil
	}
	flagErr := l.raise()
	if flagErr == nil {
		persist(filepath.Dir(l.Flag))
		return nil
	}
	return fmt.Errorf("outputs are stopped, but a restart would forget it: look after the data folder, then stop again: %w",
		errors.Join(err, flagErr))
}

func (l Latch) raise() error {
	if l.Flag == "" {
		return errors.New("there is no place for a flag")
	}
	if err := os.MkdirAll(filepath.Dir(l.Flag), 0o750); err != nil {
		return err
	}
	return os.WriteFile(l.Flag, []byte("Present while outputs are stopped. Removed by agentsite reset.\n"), 0o600)
}

// Arm is the first start. A stop that raised the flag still holds. What counts is that the
// file is there: a full disk has no room for its text, a read-only one has it already.
func (l Latch) Arm() error {
	err := os.WriteFile(l.File, []byte("Present while outputs may move. Removed by the emergency stop.\n"), 0o600)
	if _, there := os.Stat(l.File); there == nil {
		return nil
	}
	return err
}

// Reset arms and ends every stop. Where it fails, the stop stays.
func (l Latch) Reset() error {
	if err := l.Arm(); err != nil {
		return err
	}
	if err := os.Remove(l.Flag); l.Flag != "" && err != nil && !errors.Is(err, fs.ErrNotExist) {
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
