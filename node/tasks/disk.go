package tasks

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"agentsite/agents/task"
	"agentsite/node/state"
)

// disk is the folder of the tasks' files. Tests simulate a disk that fails.
type disk interface {
	List() ([]listed, error)
	Read(name string) ([]byte, error) // at most a little more than maxFile
	Create(name string) (file, error) // of a new file
	Open(name string) (file, error)   // to write at its end
	Rename(from, to string) error     // durably
	Remove(name string) error
	Sync() error // makes the names durable
}

type file interface {
	Write([]byte) (int, error) // at the end
	Truncate(size int64) error
	Sync() error
	Close() error
}

// listed is a file in the folder.
type listed struct {
	name string
	size int64
}

// folder is a disk in a folder of the file system.
type folder string

func (f folder) path(name string) string { return filepath.Join(string(f), name) }

func (f folder) List() (all []listed, err error) {
	entries, err := os.ReadDir(string(f))
	if errors.Is(err, fs.ErrNotExist) { // the first task makes it
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			all = append(all, listed{e.Name(), info.Size()})
		}
	}
	return all, nil
}

func (f folder) Read(name string) ([]byte, error) {
	b, err := state.ReadUntrusted(f.path(name), 2*maxFile)
	if b == nil && err == nil {
		err = fs.ErrNotExist
	}
	return b, err
}

func (f folder) Create(name string) (file, error) {
	if err := os.Mkdir(string(f), 0o700); err == nil {
		if err := state.SyncFolder(filepath.Dir(string(f))); err != nil {
			return nil, err
		}
	}
	return opened(os.OpenFile(f.path(name), os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600))
}

func (f folder) Open(name string) (file, error) {
	return opened(os.OpenFile(f.path(name), os.O_WRONLY|os.O_APPEND, 0o600))
}

func opened(o *os.File, err error) (file, error) {
	if err != nil {
		return nil, err // and no file that holds nil
	}
	return o, nil
}

func (f folder) Rename(from, to string) error {
	return errors.Join(os.Rename(f.path(from), f.path(to)), f.Sync())
}

func (f folder) Remove(name string) error { return os.Remove(f.path(name)) }
func (f folder) Sync() error              { return state.SyncFolder(string(f)) }

// The file of a live task is called ID.task. The file of an ended task is called
// SECONDS-ACCOUNT-ASKER-ID.STATE, with the time of its end and digests of the account and the
// asker; an f behind the seconds says that its agent was removed since. So old files can be removed without reading any.
const liveSuffix = ".task"

// ended is the name of an ended task's file.
type ended struct {
	at             int64 // s since 1970
	sure           bool  // which was known
	former         bool  // its agent was removed since: one of that name is another
	account, asker string
	id             string
	state          string // of the task, or damaged
}

const damaged = "damaged"

func (e ended) String() string {
	at := strconv.FormatInt(e.at, 10)
	if !e.sure {
		at += "u"
	}
	if e.former {
		at += "f"
	}
	return at + "-" + e.account + "-" + e.asker + "-" + e.id + "." + e.state
}

var (
	idPattern    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Z2-7]{26}$`) })
	endedPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([0-9]{1,12})(u?)(f?)-([0-9a-f]{8})-([0-9a-f]{8})-([A-Z2-7]{26})\.([a-z]{6,9})$`)
	})
)

func isID(id string) bool { return idPattern().MatchString(id) }

// parseName parses the name of a file: the ID of a live task, or an ended one.
func parseName(name string) (live string, e ended, ok bool) {
	if id, cut := strings.CutSuffix(name, liveSuffix); cut && isID(id) {
		return id, e, true
	}
	m := endedPattern().FindStringSubmatch(name)
	if m == nil || m[7] != damaged && !task.State(m[7]).Ended() {
		return "", e, false
	}
	at, err := strconv.ParseInt(m[1], 10, 64)
	return "", ended{at, m[2] == "", m[3] != "", m[4], m[5], m[6], m[7]}, err == nil
}
