package guard

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Latch stores the emergency stop as the absence of a file. Stopping removes the file, which
// works on a full disk. If the file does not exist, or the disk is read-only, Stop creates a flag
// elsewhere. Otherwise the next start would create a missing folder again, armed. The caller of Arm
// decides what a first start is.
type Latch struct {
	File    string // present while armed
	Flag    string // present after a stop that did not remove File; "" for none
	Effects string // the outputs that wait for a reset because their effect failed, one in a line; "" for none
}

// Armed reports whether no stop is latched.
func (l Latch) Armed() bool {
	if _, err := os.Stat(l.Flag); l.Flag != "" && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	_, err := os.Stat(l.File)
	return err == nil
}

// Stop latches the stop. After an error a restart would lose it.
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

// Arm creates the file at the first start. A stop with the flag stays latched. Only the
// file's existence counts: a full disk may not store its text, and a read-only one has it.
func (l Latch) Arm() error {
	err := os.WriteFile(l.File, []byte("Present while outputs may move. Removed by the emergency stop.\n"), 0o600)
	if _, there := os.Stat(l.File); there == nil {
		return nil
	}
	return err
}

// Reset ends every stop, and forgets the outputs of Latched. If it fails, the stop stays.
func (l Latch) Reset() error {
	if err := l.Keep(nil); err != nil {
		return err
	}
	if err := l.Arm(); err != nil {
		return err
	}
	if err := os.Remove(l.Flag); l.Flag != "" && err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// maxLatched bounds the file of Effects.
const maxLatched = 64 << 10

// Latched returns the outputs that wait for a reset because their effect failed.
func (l Latch) Latched() ([]string, error) {
	if l.Effects == "" {
		return nil, nil
	}
	f, err := os.Open(l.Effects)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxLatched))
	return strings.Fields(string(text)), err
}

// Keep replaces what Latched returns.
func (l Latch) Keep(outputs []string) error {
	if l.Effects == "" {
		return nil
	}
	if len(outputs) == 0 {
		if _, err := os.Lstat(l.Effects); errors.Is(err, fs.ErrNotExist) {
			return nil // a disk that cannot be written forbids to remove it, too
		}
		if err := os.Remove(l.Effects); err != nil {
			return err
		}
	} else {
		next := l.Effects + ".next"
		f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		_, err = f.WriteString(strings.Join(outputs, "\n") + "\n")
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return err
		}
		if err := os.Rename(next, l.Effects); err != nil {
			return err
		}
	}
	persist(filepath.Dir(l.Effects))
	return nil
}

// persist syncs a folder, so that its change survives a power failure. The stop itself does
// not depend on it.
func persist(folder string) {
	if d, err := os.Open(folder); err == nil {
		d.Sync()
		d.Close()
	}
}
