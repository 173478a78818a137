package state

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"agentsite/device/guard"
)

// Folder is the path of a site's data folder. Its methods may be called at any time and
// concurrently, but for those that say that the caller holds the lock.
type Folder string

// The files of a folder, for Folder.Path.
const (
	KeyFile       = "key"                 // the site's private key
	TokenFile     = "token"               // the bearer token for HTTP on this machine
	AccessFile    = "access"              // owners, grants and tokens
	CountsFile    = "counts"              // what calls have used up of rates
	JournalFolder = "journal"             // what was done
	HistoryFolder = "history"             // past readings
	TasksFolder   = "tasks"               // of the hosted agents
	ClaimFile     = "agentsite-claim.txt" // the address to claim the site by; present while nobody owns it
	PausedFile    = "paused"              // the hosted agents that are not to run
	SitesFile     = "sites.json"          // the sites that are known, with their grants: of a site, those that its agents ask
	ImportsFile   = "imports"             // agents that came as bundles
	SharedFile    = "shared"              // bundles that the site gives to its realm
	SpentFile     = "spent.json"          // what language models have used up
	AcceptedFile  = "accepted.json"       // the tools of other programs that an owner accepted
	PushFile      = "push.json"           // where callers by A2A want to be told of their tasks
	HooksFile     = "webhooks.json"       // where callers by MCP want to be told of events
	OutboxFile    = "outbox.json"         // notifications that are not told yet
	ExportFile    = "export.json"         // up to which time the history was sent to a store
	AnnouncedFile = "homeassistant"       // the name of what Home Assistant was told of
	PhonesFile    = "phones.json"         // the phones that are told, and the key by which push services know the site
	PublicFile    = "public.json"         // the public name's certificate and its account at the authority
	ThingsFile    = "things"              // the descriptions of others' things that are registered
	TrialFile     = "trial.json"          // the last trial of a configuration
	PlanFile      = "outputs.yaml"        // what the guard's process drives

	lockName     = "lock" // held by the running site, and signed by each that ran
	sequenceName = "sequence"
)

// ServiceFolder is the folder of the site that the package runs as a service.
const ServiceFolder Folder = "/var/lib/agentsite"

// DefaultFolder returns the service's folder where systemd names one, and the user's
// state folder otherwise.
func DefaultFolder() (Folder, error) {
	if dir := os.Getenv("STATE_DIRECTORY"); dir != "" {
		dir, err := filepath.Abs(dir)
		return Folder(dir), err
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return Folder(filepath.Join(dir, "agentsite")), nil
	}
	return homeFolder()
}

// FindFolder returns the folder that a command uses when none is named. It is the user's own while
// a site runs from it, otherwise the service's if a site ever ran from that.
func FindFolder() (Folder, error) {
	own, err := DefaultFolder()
	if err != nil {
		return own, err
	}
	return choose(own, ServiceFolder), nil
}

func choose(own, service Folder) Folder {
	if info, err := os.Stat(string(service)); err != nil || !info.IsDir() {
		return own
	}
	if own.Running() {
		return own
	}
	if _, err := os.Stat(service.Path(lockName)); errors.Is(err, fs.ErrNotExist) {
		return own // no site ever ran there
	}
	return service
}

// homeFolder returns the user's folder where none of the variables of DefaultFolder is set.
func homeFolder() (Folder, error) {
	if runtime.GOOS == "windows" {
		dir, err := os.UserConfigDir()
		return Folder(filepath.Join(dir, "agentsite")), err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no folder for the site's data: %w; set one with --data", err)
	}
	return Folder(filepath.Join(home, ".local", "state", "agentsite")), nil
}

// IsDefault reports whether other terminals and programs of this user use the folder by
// default.
func (f Folder) IsDefault() bool {
	if f == ServiceFolder {
		return true
	}
	here, err := DefaultFolder()
	there, err2 := homeFolder()
	return err == nil && err2 == nil && f == here && f == there
}

// Path returns the path of a file in the folder.
func (f Folder) Path(name string) string { return filepath.Join(string(f), name) }

// Running reports whether a site runs from the folder and this process may speak to it.
func (f Folder) Running() bool {
	conn, err := net.Dial("unix", f.SocketPath(OwnerSocket))
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// Latch returns the files of the emergency stop's latch. Its flag is in the runtime folder, so that
// it works while the data folder is removed or read-only. Without a runtime folder, it is in the
// data folder. If a folder is removed and made again while a site runs, a second site on it shares
// both files. A stop of either holds for the next start of both.
func (f Folder) Latch() guard.Latch {
	l := guard.Latch{File: f.Path("armed"), Flag: f.Path("stopped"), Effects: f.Path("no-effect")}
	if flag := f.RuntimePath("stopped"); flag != "" {
		l.Flag = flag
	}
	return l
}

// Sequence returns the number of the last record that the site announced, 0 where the file
// is missing or damaged.
func (f Folder) Sequence() uint64 {
	text, _ := f.Read(sequenceName)
	last, _ := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return last
}

// WriteSequence replaces the number that Sequence returns, durably.
func (f Folder) WriteSequence(n uint64) error {
	if err := WriteAtomic(f.Path(sequenceName), fmt.Appendln(nil, n), 0o600); err != nil {
		return f.Unusable(err)
	}
	return nil
}

// Unusable wraps an error of the folder's disk with advice. A Mistake has its own.
func (f Folder) Unusable(err error) error {
	if mistake := (Mistake{}); errors.As(err, &mistake) {
		return err
	}
	return fmt.Errorf("the data folder cannot be used: %w; use a writable one with --data", err)
}
