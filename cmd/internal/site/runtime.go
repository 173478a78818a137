package site

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"agentsite/transport/stdio"
)

// OwnerSocket is what the command line speaks through, AgentSocket what models'
// clients do.
func (f Folder) OwnerSocket() string { return f.socket(ownerSocketName) }
func (f Folder) AgentSocket() string { return f.socket(agentSocketName) }

const (
	ownerSocketName = "site.sock"
	agentSocketName = "agents.sock"
)

// socket is where the site listens: in the runtime folder where the disk of the data
// folder is read-only, else in the data folder.
func (f Folder) socket(name string) string {
	for _, dir := range append(runtimeFolders(), "/run/agentsite") {
		path := f.pathIn(dir, name)
		if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSocket {
			return path
		}
	}
	return f.path(name)
}

// listen opens one of the folder's sockets.
func (f Folder) listen(name string) (net.Listener, error) {
	beside := f.runtimePath(name)
	ln, err := stdio.Listen(f.path(name))
	switch {
	case beside == "":
	case err == nil:
		os.Remove(beside) // of a site that was killed when the disk was read-only
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOSPC):
		if err := os.MkdirAll(filepath.Dir(beside), 0o750); err != nil {
			return nil, err
		}
		return stdio.Listen(beside)
	}
	return ln, err
}

// runtimePath is where a file lasts until the machine restarts, "" for nowhere.
func (f Folder) runtimePath(name string) string {
	if all := runtimeFolders(); all != nil {
		return f.pathIn(all[0], name)
	}
	return ""
}

// pathIn is the path of a file of this data folder in a runtime folder.
func (f Folder) pathIn(dir, name string) string {
	h := fnv.New64a()
	h.Write([]byte(f))
	return filepath.Join(dir, fmt.Sprintf("agentsite-%x.%s", h.Sum64(), name))
}

// runtimeFolders are where files last until the machine restarts; a site uses the first.
func runtimeFolders() (all []string) {
	for _, name := range []string{"RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"} {
		if dir := os.Getenv(name); filepath.IsAbs(dir) {
			all = append(all, dir)
		}
	}
	if os.Geteuid() == 0 {
		all = append(all, "/run/agentsite")
	}
	return all
}
