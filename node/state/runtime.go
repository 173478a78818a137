package state

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
)

// The sockets of a running site, for Folder.SocketPath.
const (
	OwnerSocket = "site.sock"   // for the command line
	AgentSocket = "agents.sock" // for MCP clients
)

// SocketPath returns where the site listens: in the runtime folder where the disk of the
// data folder is read-only, else in the data folder.
func (f Folder) SocketPath(name string) string {
	for _, dir := range append(runtimeFolders(), "/run/agentsite", superuserRuntime) {
		path := f.pathIn(dir, name)
		if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSocket {
			return path
		}
	}
	return f.Path(name)
}

// RuntimePath returns the path of a file that lasts until the machine restarts, "" where
// there is no runtime folder of this user's. The folder may have to be created.
func (f Folder) RuntimePath(name string) string {
	for _, dir := range runtimeFolders() {
		info, err := os.Lstat(dir)
		if err != nil {
			return f.pathIn(dir, name)
		}
		if _, ours := Owner(info); ours && info.IsDir() { // sudo may keep the variable of another user
			return f.pathIn(dir, name)
		}
	}
	return ""
}

// superuserRuntime is not the folder of the service, whose user could put links there.
const superuserRuntime = "/run/agentsite-root"

// pathIn returns the path of a file of this data folder in a runtime folder.
func (f Folder) pathIn(dir, name string) string {
	h := fnv.New64a()
	h.Write([]byte(f))
	return filepath.Join(dir, fmt.Sprintf("agentsite-%x.%s", h.Sum64(), name))
}

// runtimeFolders returns the folders whose files last until the machine restarts; a site
// writes to the first that is its user's.
func runtimeFolders() (all []string) {
	for _, name := range []string{"RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"} {
		if dir := os.Getenv(name); filepath.IsAbs(dir) {
			all = append(all, dir)
		}
	}
	if os.Geteuid() == 0 {
		all = append(all, superuserRuntime)
	}
	return all
}
