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
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"agentsite/device"
	"agentsite/device/guard"
	"agentsite/device/guard/proc"
	"agentsite/node/config"
)

// guardPatience is how long a guard waits for the one before it, which goes to safe
// and ends within five seconds unless it hangs.
const guardPatience = 6 * time.Second

// guardMemory is from where on a guard collects whatever it has to: it stays locked in
// memory, and is to be small beside all that runs on a board.
const guardMemory = 4 << 20

// Guard is the process that drives the folder's outputs, for the site at the other
// end of conn. Each of the signals is an emergency stop. It blocks until conn or ctx
// ends, and returns when the outputs are safe, or with those that are not known to be.
func Guard(ctx context.Context, f Folder, conn io.ReadWriteCloser, signals <-chan os.Signal) error {
	debug.SetGCPercent(25) // the heap of so small a process would grow to 4 MB before it is first collected
	debug.SetMemoryLimit(guardMemory)
	warning := ""
	if err := proc.Realtime(); err != nil {
		warning = err.Error()
	}
	unlock, err := f.guardLock(ctx, false)
	if err != nil {
		return err
	}
	defer unlock()
	cfg, err := f.planned()
	if err != nil {
		return err
	}
	var dog *proc.Watchdog
	var refused error
	if cfg.Watchdog != "" {
		dog, refused = proc.OpenWatchdog(cfg.Watchdog)
	}
	var feeding sync.WaitGroup
	err = drive(ctx, cfg, f.latch(), func(ctx context.Context, g *guard.Guard, devices map[string]device.Device) error {
		if refused != nil { // nothing moves without what its owner wants behind it
			return refused
		}
		debug.FreeOSMemory() // what reading the plan took
		go stopOn(ctx, signals, g.Stop)
		if dog != nil {
			feeding.Go(func() { dog.Feed(ctx, g.Alive) })
		}
		return proc.Serve(ctx, conn, g, devices, buttons(cfg, devices), warning)
	})
	feeding.Wait()
	if dog != nil {
		err = errors.Join(err, dog.Close(err == nil))
	}
	return err
}

// Safe drives every output of the folder's site to safe, once whoever drives them has
// ended, and says how many there are. It returns those that are not known to be safe.
func Safe(ctx context.Context, f Folder) (outputs int, err error) {
	unlock, err := f.guardLock(ctx, true)
	if err != nil {
		return 0, err
	}
	defer unlock()
	cfg, err := f.planned()
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return outputs, drive(ctx, cfg, f.latch(), func(_ context.Context, g *guard.Guard, _ map[string]device.Device) error {
		outputs = len(g.Status())
		return nil
	})
}

// drive drives the outputs of a plan while serve runs, and to safe before and after.
func drive(ctx context.Context, cfg *config.Site, latch guard.Latch, serve func(context.Context, *guard.Guard, map[string]device.Device) error) error {
	wires, err := wireGuarded(cfg)
	if err != nil {
		return err
	}
	defer func() {
		if err := closeDevices(wires); err != nil {
			slog.Error("a device did not close well; look whether its outputs are safe", "err", err)
		}
	}()
	devices := make(map[string]device.Device)
	var actuated []guard.Actuated
	for _, w := range wires {
		devices[w.Name] = w.device
		if len(w.policies) > 0 {
			actuated = append(actuated, guard.Actuated{Actuator: w.device.(device.Actuator), Policies: w.policies})
		}
	}
	g, err := guard.New(actuated, latch)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	driven := make(chan error, 1)
	go func() { driven <- g.Run(ctx) }()
	err = serve(ctx, g, devices)
	end()
	return errors.Join(err, <-driven)
}

// planned reads the plan that the site has left.
func (f Folder) planned() (*config.Site, error) { return config.Load(f.planFile(), Drivers()) }

func (f Folder) planFile() string { return f.path("outputs.yaml") }

// stage writes a plan beside the one that is followed, install puts it in its place.
func (f Folder) stage(text []byte) error {
	if err := writeAtomic(f.planFile()+".next", text, 0o600); err != nil {
		return f.unusable(err)
	}
	return nil
}

func (f Folder) install() error { return os.Rename(f.planFile()+".next", f.planFile()) }

// makeWay waits until no guard of before drives the outputs, and leaves the plan for
// the next one. Where that is another plan, every output of the old one is driven to
// safe first: nobody will know of those that are not in the new one.
func (f Folder) makeWay(ctx context.Context, text []byte) error {
	unlock, err := f.guardLock(ctx, false)
	if err != nil {
		return err
	}
	unlock()
	if err := f.stage(text); err != nil {
		return err
	}
	old, err := os.ReadFile(f.planFile())
	if err == nil && !bytes.Equal(old, text) {
		if said, err := f.command(ctx, "safe").CombinedOutput(); err != nil {
			slog.Error("outputs of the configuration of before may not be safe", "err", err, "said", string(said))
		}
	}
	return f.install()
}

// guardLock takes the outputs for this process. It waits for a guard that is ending, or
// asks it to where end says so, and kills one that should have ended and has not: a guard
// that hangs leaves its outputs where they are.
func (f Folder) guardLock(ctx context.Context, end bool) (unlock func(), err error) {
	lock, err := os.OpenFile(f.path("guard.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, f.unusable(err)
	}
	defer func() {
		if err != nil {
			lock.Close()
		}
	}()
	begun, asked, killed := time.Now(), 0, false
	for lockFile(lock) != nil {
		text, _ := os.ReadFile(lock.Name())
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
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
	// As long as any other, so that a full disk has room for it.
	if _, err := lock.WriteAt(fmt.Appendf(nil, "%-10d\n", os.Getpid()), 0); err != nil {
		slog.Warn("the guard's lock cannot be signed", "err", err) // a full disk must not keep outputs from safe
	}
	return func() { lock.Close() }, nil
}

func signalTo(pid int, s os.Signal) {
	if p, err := os.FindProcess(pid); err == nil {
		p.Signal(s)
	}
}
