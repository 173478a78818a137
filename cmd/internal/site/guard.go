package site

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/device/guard"
	"agentsite/device/guard/proc"
	"agentsite/node/config"
	"agentsite/node/state"
)

// guardPatience is how long a guard waits for the one before it, which goes to safe
// and ends within five seconds unless it hangs.
const guardPatience = 6 * time.Second

// guardMemory is from where on a guard collects whatever it has to: it stays locked in
// memory, and is to be small beside all that runs on a board. The limit counts what the
// runtime has for itself too. Too near that, the guard collects all the time: of a site of
// thirty devices a move takes it 5.4 ms of CPU with a limit of 4 MiB, 5.9 with 6, 0.6 with 8
// and 0.5 with 12, for 3.8, 3.8, 4.1 and 4.8 MB of anonymous memory (BenchmarkGuardMoves).
// 12 leaves room for more devices.
const guardMemory = 12 << 20

// Guard is the process that drives the folder's outputs, for the site at the other
// end of conn. Each of the signals is an emergency stop. It blocks until conn or ctx
// ends, and returns when the outputs are safe, or with those that are not known to be.
func Guard(ctx context.Context, f state.Folder, conn io.ReadWriteCloser, signals <-chan os.Signal) error {
	debug.SetGCPercent(25) // the heap of so small a process would grow to 4 MB before it is first collected
	debug.SetMemoryLimit(guardMemory)
	warning := ""
	if err := proc.Realtime(); err != nil {
		warning = err.Error()
	}
	unlock, err := lockGuard(ctx, f, false)
	if err != nil {
		return err
	}
	defer unlock()
	drivers := Drivers(board.New())
	cfg, err := readPlan(f, drivers)
	if err != nil {
		return err
	}
	var dog *proc.Watchdog
	var refused error
	if cfg.Watchdog != "" {
		dog, refused = proc.OpenWatchdog(cfg.Watchdog)
	}
	var feeding sync.WaitGroup
	err = drive(ctx, cfg, f.Latch(), func(ctx context.Context, d *driving) error {
		if refused != nil { // nothing moves without what its owner wants behind it
			return refused
		}
		debug.FreeOSMemory() // what reading the plan took
		go stopOn(ctx, signals, d.guard.Stop)
		if dog != nil {
			feeding.Go(func() { dog.Feed(ctx, d.guard.Alive) })
		}
		return d.serve(ctx, conn, drivers, warning)
	})
	feeding.Wait()
	if dog != nil {
		err = errors.Join(err, dog.Close(err == nil))
	}
	return err
}

// Safe drives every output of the folder's site to safe, once whoever drives them has
// ended, and says how many there are. It returns those that are not known to be safe.
func Safe(ctx context.Context, f state.Folder) (outputs int, err error) {
	unlock, err := lockGuard(ctx, f, true)
	if err != nil {
		return 0, err
	}
	defer unlock()
	cfg, err := readPlan(f, Drivers(board.New()))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return outputs, drive(ctx, cfg, f.Latch(), func(_ context.Context, d *driving) error {
		outputs = len(d.guard.Status())
		return nil
	})
}

// driving is a guard and the devices of its plan.
type driving struct {
	guard *guard.Guard
	cfg   *config.Site
	wires []*wired
}

// drive drives the outputs of a plan while serve runs, and to safe before and after.
func drive(ctx context.Context, cfg *config.Site, latch guard.Latch, serve func(context.Context, *driving) error) error {
	wires, err := wireGuarded(cfg, nil)
	if err != nil {
		return err
	}
	d := &driving{cfg: cfg, wires: wires}
	defer func() {
		if err := closeDevices(d.wires); err != nil {
			slog.Error("a device did not close well; look whether its outputs are safe", "err", err)
		}
	}()
	d.guard, err = guard.New(actuated(wires), latch)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	driven := make(chan error, 1)
	go func() { driven <- d.guard.Run(ctx) }()
	err = serve(ctx, d)
	end()
	return errors.Join(err, <-driven)
}

// serve serves the site at the other end of conn. Other plans are read with the drivers.
func (d *driving) serve(ctx context.Context, conn io.ReadWriteCloser, drivers []driver.Driver, warning string) error {
	devices, stops := d.devices()
	return proc.Serve(ctx, conn, d.guard, proc.Equipment{
		Devices: devices, Buttons: stops, Warning: warning,
		Follow: func(ctx context.Context, text []byte) (map[string]device.Device, error) {
			cfg, err := config.Parse("the plan", text, drivers)
			if err != nil {
				return nil, err
			}
			return d.follow(ctx, cfg)
		},
	})
}

// follow changes the plan. A device whose driver is told the same stays open. With an error
// other than UnknownOutcome this process is to end: only that lets go of a device whose
// driver hangs.
func (d *driving) follow(ctx context.Context, cfg *config.Site) (map[string]device.Device, error) {
	next, err := wireGuarded(cfg, d.wires)
	if err != nil {
		return nil, err
	}
	late := d.guard.Change(ctx, actuated(next))
	if late != nil && device.AsFault(late).Kind != device.UnknownOutcome {
		return nil, late
	}
	gone := slices.DeleteFunc(slices.Clone(d.wires), func(w *wired) bool {
		return slices.ContainsFunc(next, func(n *wired) bool { return n.device == w.device })
	})
	switch err := closeDevices(gone); {
	case errors.Is(err, errDeaf):
		late = device.Faultf(device.Offline, "%w", errors.Join(err, late))
	case err != nil:
		late = device.Faultf(device.UnknownOutcome, "%w", errors.Join(err, late))
	}
	d.cfg, d.wires = cfg, next
	devices, _ := d.devices()
	debug.FreeOSMemory() // what reading the plan took
	return devices, late
}

// devices are those that the site reads, by name, and the emergency stops.
func (d *driving) devices() (map[string]device.Device, []proc.Button) {
	all := make(map[string]device.Device)
	for _, w := range d.wires {
		all[w.Name] = w.device
	}
	return all, buttons(d.cfg, all)
}

func actuated(wires []*wired) (all []guard.Actuated) {
	for _, w := range wires {
		if len(w.policies) > 0 {
			all = append(all, guard.Actuated{Actuator: w.device.(device.Actuator), Policies: w.policies})
		}
	}
	return all
}

// readPlan reads the plan that the site has left.
func readPlan(f state.Folder, drivers []driver.Driver) (*config.Site, error) {
	return config.Load(f.Path(state.PlanFile), drivers)
}

// stagePlan writes a plan beside the one that is followed, install puts it in its place.
func stagePlan(f state.Folder, text []byte) error {
	if err := state.WriteAtomic(f.Path(state.PlanFile)+".next", text, 0o600); err != nil {
		return f.Unusable(err)
	}
	return nil
}

func installPlan(f state.Folder) error {
	return os.Rename(f.Path(state.PlanFile)+".next", f.Path(state.PlanFile))
}

// takeOverGuard waits until no guard of before drives the outputs, and leaves the plan for
// the next one. Where that is another plan, every output of the old one is driven to
// safe first: nobody will know of those that are not in the new one.
func takeOverGuard(ctx context.Context, f state.Folder, text []byte) error {
	unlock, err := lockGuard(ctx, f, false)
	if err != nil {
		return err
	}
	unlock()
	old, err := os.ReadFile(f.Path(state.PlanFile))
	if err == nil && bytes.Equal(old, text) {
		return nil // nothing to write, which a full disk could not take
	}
	if err := stagePlan(f, text); err != nil {
		return err
	}
	if err == nil {
		driving := context.WithoutCancel(ctx) // a site that is to end leaves nothing away from safe
		if said, err := ownCommand(driving, f, "safe").CombinedOutput(); err != nil {
			slog.Error("outputs of the configuration of before may not be safe", "err", err, "said", string(said))
		}
	}
	return installPlan(f)
}

// lockGuard takes the outputs for this process. It waits for a guard that is ending, or
// asks it to where end says so, and kills one that should have ended and has not: a guard
// that hangs leaves its outputs where they are.
func lockGuard(ctx context.Context, f state.Folder, end bool) (unlock func(), err error) {
	lock, err := f.OpenLockFile("guard.lock")
	if err != nil {
		return nil, f.Unusable(err)
	}
	defer func() {
		if err != nil {
			lock.Close()
		}
	}()
	begun, asked, killed := time.Now(), 0, false
	for state.TryLock(lock) != nil {
		pid := guardHolder(f, lock.Name())
		switch waits := time.Since(begun); {
		case killed && waits > 2*guardPatience:
			return nil, errors.New("the outputs are driven by another process, which cannot be ended; restart the board")
		case !killed && waits > guardPatience:
			if pid <= 1 { // nobody holds a lock that long without having signed it
				return nil, fmt.Errorf("the outputs are driven by another process, which %s does not name", lock.Name())
			}
			slog.Error("a guard of before does not end and is killed", "process", pid)
			signalTo(pid, os.Kill)
			killed = true
			continue
		case end && pid != asked && pid > 1:
			signalTo(pid, syscall.SIGTERM)
			asked = pid // a site may have started another since
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	if err := signGuardLock(f, lock); err != nil {
		slog.Warn("the guard's lock cannot be signed", "err", err) // a full disk must not keep outputs from safe
	}
	return func() { lock.Close() }, nil
}

// signGuardLock notes whose the lock is: in it, or in the runtime folder where the disk
// takes nothing. A note is as long as any other, so that a full disk has room for it.
func signGuardLock(f state.Folder, lock *os.File) error {
	text := fmt.Appendf(nil, "%-10d\n", os.Getpid())
	beside := f.RuntimePath("guard")
	_, err := lock.WriteAt(text, 0)
	switch {
	case beside == "":
	case err == nil:
		os.Remove(beside)
	default:
		err = errors.Join(os.MkdirAll(filepath.Dir(beside), 0o750), os.WriteFile(beside, text, 0o600))
	}
	return err
}

// guardHolder is the process that has signed the guard's lock, 0 where none is named.
func guardHolder(f state.Folder, lock string) int {
	text, err := os.ReadFile(f.RuntimePath("guard"))
	if err != nil {
		text, _ = os.ReadFile(lock)
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

func signalTo(pid int, s os.Signal) {
	if p, err := os.FindProcess(pid); err == nil {
		p.Signal(s)
	}
}
