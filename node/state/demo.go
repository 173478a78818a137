package state

import (
	"os"
	"path/filepath"
)

// demoPrefix begins the names of the folders of demonstrations, among temporary files.
const demoPrefix = "agentsite-demo"

// NewDemo makes a data folder for a demonstration. The caller removes it.
func NewDemo() (Folder, error) {
	dir, err := os.MkdirTemp("", demoPrefix)
	return Folder(dir), err
}

// RunningDemo returns the folder of a demonstration that this user runs; "" for none.
func RunningDemo() Folder {
	all, _ := filepath.Glob(filepath.Join(os.TempDir(), demoPrefix+"*"))
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
