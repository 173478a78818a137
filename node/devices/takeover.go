package devices

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agentsite/device"
	"agentsite/device/guard"
)

// guardEndTimeout limits a guard's wait for an earlier one, which drives its outputs to
// safe and ends within five seconds unless it hangs.
const guardEndTimeout = 6 * time.Second

// GuardFiles are the files that the processes of the site and the guard share.
type GuardFiles struct {
	Folder  string // the data folder, which the guard's process is started with
	Plan    string // the file that the guard reads its plan from
	PIDFile string // names the process that holds the lock where the disk takes no write; "" for none
	Latch   guard.Latch

	Write    func(path string, text []byte) error // replaces a file, atomically
	Read     func() ([]byte, error)               // returns the plan, nil for none; fails where somebody else could have written it
	OpenLock func() (*os.File, error)             // opens the file that the process which moves outputs locks
	TryLock  func(*os.File) error                 // locks it until it is closed, or fails at once
}

// stage writes a plan beside the one in use, install replaces that one.
func (f GuardFiles) stage(text []byte) error { return f.Write(f.Plan+".next", text) }

func (f GuardFiles) install() error { return os.Rename(f.Plan+".next", f.Plan) }

// TakeOver waits until no earlier guard drives the outputs, and writes the plan for the next one.
// If the plan changes, every output of the old plan is driven to safe first: the next guard knows
// only those of the new plan.
func (f GuardFiles) TakeOver(ctx context.Context, p Plan) error {
	unlock, err := f.lock(ctx, false)
	if err != nil {
		return err
	}
	unlock()
	old, err := f.Read()
	if err == nil && old != nil && bytes.Equal(old, p.text) {
		return nil // nothing to write, which a full disk could not take
	}
	if err := f.stage(p.text); err != nil {
		return err
	}
	if err == nil && old != nil {
		uninterrupted := context.WithoutCancel(ctx) // an interrupted start leaves no output away from safe either
		if said, err := f.command(uninterrupted, "safe").CombinedOutput(); err != nil {
			slog.Error("outputs of the previous configuration may not be safe", "err", err, "said", string(said))
		}
	}
	return f.install()
}

// lock takes the outputs for this process. It waits for a guard that is ending; with end, it asks
// it to end. It kills a guard that does not end in time, because a hung guard leaves its outputs
// where they are. It sends no signal to a process that does not have the lock file open.
func (f GuardFiles) lock(ctx context.Context, end bool) (unlock func(), err error) {
	lock, err := f.OpenLock()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			lock.Close()
		}
	}()
	begun, asked, killed := time.Now(), 0, false
	for f.TryLock(lock) != nil {
		pid := f.lockHolder(lock)
		switch waits := time.Since(begun); {
		case killed && waits > 2*guardEndTimeout:
			return nil, errors.New("the outputs are driven by another process, which cannot be ended; restart the board")
		case !killed && waits > guardEndTimeout:
			if pid <= 1 { // a guard signs its lock at once
				return nil, fmt.Errorf("the outputs are driven by another process, which %s does not name", lock.Name())
			}
			slog.Error("previous guard hangs; killed", "process", pid)
			signalHolder(pid, lock, os.Kill)
			killed = true
			continue
		case end && pid != asked && pid > 1:
			signalHolder(pid, lock, syscall.SIGTERM)
			asked = pid // a site may have started another since
		}
		if err := device.Sleep(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
	if err := f.signLock(lock); err != nil {
		slog.Warn("the guard's lock cannot be signed", "err", err) // a full disk must not keep outputs from safe
	}
	return func() { lock.Close() }, nil
}

// signLock writes this process's id into the lock file, or into PIDFile where that fails. Each
// note is as long as the last, so that a full disk has room for it.
func (f GuardFiles) signLock(lock *os.File) error {
	text := fmt.Appendf(nil, "%-10d\n", os.Getpid())
	_, err := lock.WriteAt(text, 0)
	switch {
	case f.PIDFile == "":
	case err == nil:
		os.Remove(f.PIDFile)
	default:
		err = errors.Join(os.MkdirAll(filepath.Dir(f.PIDFile), 0o750), os.WriteFile(f.PIDFile, text, 0o600))
	}
	return err
}

// lockHolder returns the id of the process that signed the lock, 0 for none.
func (f GuardFiles) lockHolder(lock *os.File) int {
	text, err := os.ReadFile(f.PIDFile)
	if err != nil {
		text, _ = io.ReadAll(io.NewSectionReader(lock, 0, 64))
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

// signalHolder signals a process that has the lock file open. The process is opened before it is
// checked, so that another process with the same id gets no signal.
func signalHolder(pid int, lock *os.File, s os.Signal) {
	p, err := os.FindProcess(pid)
	if err != nil {
		return
	}
	defer p.Release()
	if hasOpen(pid, lock) {
		p.Signal(s)
	}
}
