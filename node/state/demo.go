package state

import (
	"os"
	"path/filepath"
)

// demoPrefix and simulationPrefix begin the names of the folders of demonstrations and simulations, among temporary
// files.
const (
	demoPrefix       = "agentsite-demo"
	simulationPrefix = "agentsite-simulation"
)

// NewDemo makes a data folder for a demonstration. The caller removes it.
func NewDemo() (Folder, error) { return newTemporary(demoPrefix) }

// NewSimulation makes a data folder for a simulation. The caller removes it.
func NewSimulation() (Folder, error) { return newTemporary(simulationPrefix) }

func newTemporary(prefix string) (Folder, error) {
	dir, err := os.MkdirTemp("", prefix)
	return Folder(dir), err
}

// RunningDemo returns the folder of a demonstration that this user runs; "" for none.
func RunningDemo() Folder { return runningFrom(demoPrefix) }

// RunningSimulation returns the folder of a simulation that this user runs; "" for none.
func RunningSimulation() Folder { return runningFrom(simulationPrefix) }

func runningFrom(prefix string) Folder {
	all, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	for _, dir := range all {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() {
			continue
		}
		if _, ours := Owner(info); ours && Folder(dir).Running() {
			return Folder(dir)
		}
	}
	return ""
}

// Command returns the beginning of a shell command that uses the site of the folder.
func (f Folder) Command() string { return "agentsite --data " + ShellQuote(string(f)) }
