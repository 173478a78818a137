package state

import (
	"fmt"
	"strings"

	"agentsite/device"
)

// maxPaused bounds the file, in bytes.
const maxPaused = 1 << 16

// Paused returns the names of the hosted agents that an owner paused. A file that cannot be read,
// or is not a list of names, is an error, because a paused agent must not run.
func (f Folder) Paused() ([]string, error) {
	text, err := f.ReadAtMost(PausedFile, maxPaused)
	if err != nil {
		return nil, f.Unusable(err)
	}
	names := strings.Fields(string(text))
	for _, name := range names {
		if err := device.CheckName(name); err != nil {
			return nil, fmt.Errorf("%s does not list the paused agents: %w; pause or resume one of them, which writes it anew", f.Path(PausedFile), err)
		}
	}
	return names, nil
}

// WritePaused replaces the list of Paused, durably.
func (f Folder) WritePaused(names []string) error {
	return WriteAtomic(f.Path(PausedFile), []byte(strings.Join(names, "\n")+"\n"), 0o600)
}
